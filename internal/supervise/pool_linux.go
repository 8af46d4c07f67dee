package supervise

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
)

// maxIdle is how many supervisors without a command are kept: to start one costs several times what a command costs.
const maxIdle = 16

// Config says how supervisors are started. The zero value of every field but Args is a working default.
type Config struct {
	// Args bring this program into its hidden mode, which calls [Main]. Required.
	Args []string
	// Exe is the program. Default: this very one, also when its file has been replaced since.
	Exe string
	// Stdout is the commands' standard output. Default: os.Stdout.
	Stdout *os.File
	// Stderr gets what commands write to standard error. Default: os.Stderr. Writes come from several goroutines.
	Stderr io.Writer
}

// Pool runs commands, each under a supervisor of its own while it runs. Safe for concurrent use.
type Pool struct {
	cfg Config

	mu     sync.Mutex
	until  Moment
	idle   []*slot
	busy   map[*slot]bool
	closed bool
}

// New returns a pool that trusts nothing yet: a [Job] needs [Pool.Trust] to have been called.
func New(cfg Config) (*Pool, error) {
	if len(cfg.Args) == 0 {
		return nil, errors.New("supervise: Config.Args is required")
	}
	if cfg.Exe == "" {
		cfg.Exe = "/proc/self/exe"
		if _, err := os.Stat(cfg.Exe); err != nil {
			if cfg.Exe, err = os.Executable(); err != nil {
				return nil, fmt.Errorf("find this program: %w", err)
			}
		}
	}
	if cfg.Stdout == nil {
		cfg.Stdout = os.Stdout
	}
	if cfg.Stderr == nil {
		cfg.Stderr = os.Stderr
	}
	return &Pool{cfg: cfg, busy: map[*slot]bool{}}, nil
}

// Trust lets commands work until the given moment. It replaces what was said before, and may also shorten it. It returns after
// at most some seconds; a supervisor that does not take it in time is killed with its command.
func (p *Pool) Trust(until Moment) {
	p.mu.Lock()
	p.until = until
	busy := make([]*slot, 0, len(p.busy))
	for s := range p.busy {
		busy = append(busy, s)
	}
	p.mu.Unlock()
	for _, s := range busy {
		if err := s.w.send(frame{Op: opTrust, Until: until}); err != nil {
			s.kill()
		}
	}
}

// Run runs a command to its end. It returns when the command and all that it started are gone, and not before. When ctx ends
// they are told to stop (see [Job.Patience]) and killed, and the Result says so in Why. err is nil whenever the command ran
// and ended, however it did.
func (p *Pool) Run(ctx context.Context, j Job) (Result, error) {
	if len(j.Args) == 0 {
		return Result{}, errors.New("supervise: Job.Args is required")
	}
	s, err := p.take()
	if err != nil {
		return Result{}, err
	}
	res, err := s.run(ctx, j, p.trusted)
	p.give(s)
	return res, err
}

// Close ends the supervisors, and with them commands that are still running, and waits for their end until ctx ends: a command
// that the kernel cannot kill would hold it up.
func (p *Pool) Close(ctx context.Context) error {
	p.mu.Lock()
	p.closed = true
	all := p.idle
	p.idle = nil
	for s := range p.busy {
		all = append(all, s)
	}
	p.mu.Unlock()
	for _, s := range all {
		s.hangUp()
	}
	for _, s := range all {
		select {
		case <-s.ended:
		case <-ctx.Done():
			return fmt.Errorf("wait for the end of commands: %w", context.Cause(ctx))
		}
	}
	return nil
}

func (p *Pool) trusted() Moment {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.until
}

func (p *Pool) take() (*slot, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.idle) > 0 && !p.closed {
		s := p.idle[len(p.idle)-1]
		p.idle = p.idle[:len(p.idle)-1]
		select {
		case <-s.ended:
			continue // it died in its sleep
		default:
		}
		p.busy[s] = true
		return s, nil
	}
	if p.closed {
		return nil, ErrClosed
	}
	s, err := startSlot(p.cfg)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSupervisor, err)
	}
	p.busy[s] = true
	return s, nil
}

func (p *Pool) give(s *slot) {
	p.mu.Lock()
	delete(p.busy, s)
	keep := !p.closed && !s.broken && len(p.idle) < maxIdle
	if keep {
		p.idle = append(p.idle, s)
	}
	p.mu.Unlock()
	if !keep {
		s.hangUp()
		<-s.ended
	}
}

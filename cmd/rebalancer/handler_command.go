package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/group"
	"github.com/rebalancer-go/rebalancer/internal/supervise"
)

const (
	// exitPermanent is the exit code by which a command says that no retry can help (EX_DATAERR of sysexits.h).
	exitPermanent = 65
	// stopPatience is the time between SIGTERM and SIGKILL at the end of the drain. With the kill itself it must fit into
	// the group's grace, or the resource would be reported stuck.
	stopPatience = group.DefaultGrace * 3 / 5
	// lossPatience is that time when the claim is lost: somebody else may work the resource any moment.
	lossPatience = 100 * time.Millisecond
	// closeTime bounds the wait for commands that outlived their handlers.
	closeTime = 5 * time.Second
)

// commandHandler runs a command for each message.
type commandHandler struct {
	pool  *supervise.Pool
	path  string
	args  []string
	env   []string
	group *group.Group
	node  group.Status // the names in it
	quit  context.CancelFunc
	ended chan struct{}

	mu      sync.Mutex // orders looks at the trust with what is told of them
	trusted time.Time
}

func newCommandHandler(p *program, g *group.Group, args []string, ttl time.Duration) (*commandHandler, error) {
	path, err := exec.LookPath(args[0])
	if err != nil {
		return nil, usagef("command %q cannot be run: %v", args[0], errors.Unwrap(err))
	}
	pool, err := supervise.New(supervise.Config{Args: p.supervisor, Stdout: p.stdout, Stderr: p.stderr})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	h := &commandHandler{
		pool: pool, path: path, args: args, env: withoutOurs(os.Environ()), group: g, node: g.Status(),
		quit: cancel, ended: make(chan struct{}),
	}
	go h.feed(ctx, min(max(ttl/40, 10*time.Millisecond), 250*time.Millisecond))
	return h, nil
}

// close ends what still runs, at once. A command that even the kernel cannot end does not hold up the program.
func (h *commandHandler) close() {
	h.quit()
	<-h.ended
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	_ = h.pool.Close(ctx) // Consume has reported what is stuck
}

// feed tells the supervisors of the trust as it grows with each renewal.
func (h *commandHandler) feed(ctx context.Context, every time.Duration) {
	defer close(h.ended)
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			h.tell()
		}
	}
}

func (h *commandHandler) tell() {
	h.mu.Lock()
	defer h.mu.Unlock()
	until := h.group.Status().TrustedUntil
	// The same moment is computed anew each time, with the noise of two clocks.
	if d := until.Sub(h.trusted); d > -time.Millisecond && d < time.Millisecond {
		return
	}
	m, err := supervise.In(until)
	if err != nil || until.IsZero() {
		m = 0
	}
	h.trusted = until
	h.pool.Trust(m)
}

// handle is a rebalancer.Handler.
func (h *commandHandler) handle(ctx context.Context, m *rebalancer.Message) error {
	h.tell() // a claim may be younger than the last look
	res, err := h.pool.Run(ctx, supervise.Job{
		Path: h.path, Args: h.args, Env: append(h.env[:len(h.env):len(h.env)], h.variables(m)...), Body: m.Open, Patience: patience,
	})
	return verdict(res, err, context.Cause(ctx))
}

// verdict is what a run means for its message. cause is why the handler's time is over, nil when it is not.
func verdict(res supervise.Result, err, cause error) error {
	switch {
	case errors.Is(err, supervise.ErrStart) && errors.Is(err, syscall.E2BIG):
		return rebalancer.Permanent(fmt.Errorf("%w: the message's headers are too long for an environment", err))
	case err != nil:
		return err
	case res.Why == supervise.Stopped:
		return fmt.Errorf("command was stopped: %w", cause)
	case res.Why == supervise.Distrusted:
		return fmt.Errorf("command was killed, the store could not be reached in time: %w", rebalancer.ErrLost)
	case res.Exit == 0:
		return nil
	}
	err = errors.New("command " + outcome(res))
	if res.Exit == exitPermanent {
		return rebalancer.Permanent(err)
	}
	return err
}

func patience(cause error) time.Duration {
	if errors.Is(cause, rebalancer.ErrLost) {
		return lossPatience
	}
	return stopPatience
}

// outcome is how a command ended, in words.
func outcome(res supervise.Result) string {
	how := fmt.Sprintf("exited with %d", res.Exit)
	if res.Signal != 0 {
		how = fmt.Sprintf("was ended by signal %d (%v)", int(res.Signal), res.Signal)
	}
	if res.Tail != "" {
		how += ": " + res.Tail
	}
	return how
}

// variables are what a command learns of its message.
func (h *commandHandler) variables(m *rebalancer.Message) []string {
	headers := m.Headers
	if headers == nil {
		headers = map[string]string{}
	}
	var env []string
	for _, v := range [][2]string{
		{"GROUP", h.node.Group}, {"NODE", h.node.Node}, {"RESOURCE", m.Resource}, {"ID", m.ID}, {"KEY", m.Key},
		{"ATTEMPT", fmt.Sprint(m.Attempt)}, {"FENCE", fmt.Sprint(m.Fence)}, {"HEADERS", string(jsonOf(headers))},
	} {
		env = append(env, "RB_"+v[0]+"="+strings.ReplaceAll(v[1], "\x00", "\uFFFD"))
	}
	return env
}

// withoutOurs drops variables that a rebalancer around this one has set for its command.
func withoutOurs(env []string) []string {
	var out []string
	for _, v := range env {
		if !strings.HasPrefix(v, "RB_") {
			out = append(out, v)
		}
	}
	return out
}

package ftp

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rebalancer-go/rebalancer/sources"
)

const (
	// probeAfter is how long a connection may be idle before it is asked for a sign of life. One that is used more often is
	// kept alive by that.
	probeAfter = 5 * time.Second
	// idleFor is how long a connection is kept for the next use.
	idleFor = time.Minute
)

// pool keeps a bounded number of connections, those that are being made included. Files that are read take one for as long as they are
// open, and leave one for the rest: what settles or lists never waits for a handler.
type pool struct {
	dial  dialer
	slots chan struct{} // room for all connections
	seats seats         // for those that read files

	life  context.Context // until close
	end   context.CancelFunc
	dials sync.WaitGroup

	mu     sync.Mutex
	idle   []*lease // the last used last
	out    map[*lease]struct{}
	closed bool
}

// errGivenUp is an error that breaks one connection and says nothing of the others.
var errGivenUp = errors.New("given up in the middle of a file")

// lease is a connection in use.
type lease struct {
	remote
	body  bool
	since time.Time // when it became idle
}

// newPool makes a pool of at most size connections; patience is how long files wait for each other's when nothing is read.
func newPool(dial dialer, size int, patience time.Duration) *pool {
	p := &pool{dial: dial, slots: make(chan struct{}, size), seats: newSeats(size-1, patience), out: map[*lease]struct{}{}}
	p.life, p.end = context.WithCancel(context.Background())
	return p
}

// take waits for a connection, which give gives back. body: it is to read a file.
func (p *pool) take(ctx context.Context, body bool) (*lease, error) {
	if body {
		if err := p.seats.take(ctx); err != nil {
			return nil, err
		}
	}
	l, err := p.taken(ctx)
	if err != nil {
		if body {
			p.seats.give()
		}
		return nil, err
	}
	l.body = body
	return l, nil
}

func (p *pool) taken(ctx context.Context) (*lease, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	select {
	case p.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	l, err := p.connected(ctx)
	if err == nil {
		err = p.lend(l)
	}
	if err != nil && !errors.Is(err, errPending) {
		<-p.slots
	}
	return l, err
}

// connected returns the connection that was used last and lives, or a new one.
func (p *pool) connected(ctx context.Context) (*lease, error) {
	for {
		l := p.pick()
		if l == nil {
			break
		}
		if time.Since(l.since) < probeAfter || l.alive(ctx) == nil {
			return l, nil
		}
		_ = l.close()
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	return p.fresh(ctx)
}

// errPending is an error of a caller whose context ended while its connection was being made, which holds the slot until it is.
var errPending = errors.New("the connection is not made yet")

// fresh makes a connection. It goes on when ctx ends first, for the next one who asks: else callers in a hurry would never get one.
func (p *pool) fresh(ctx context.Context) (*lease, error) {
	type result struct {
		l   *lease
		err error
	}
	done := make(chan result)
	if err := p.begin(); err != nil {
		return nil, err
	}
	go func() {
		defer p.dials.Done()
		r, err := p.dial(p.life)
		l := &lease{remote: r, since: time.Now()}
		select {
		case done <- result{l, err}:
		case <-ctx.Done():
			if err == nil {
				p.keep(l)
			}
			<-p.slots
		}
	}()
	select {
	case r := <-done:
		return r.l, r.err
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: %w", ctx.Err(), errPending)
	}
}

func (p *pool) begin() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return sources.ErrClosed
	}
	p.dials.Add(1)
	return nil
}

// keep keeps an idle connection for the next use.
func (p *pool) keep(l *lease) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		_ = l.close()
		return
	}
	p.idle = append(p.idle, l)
}

// pick takes the connection that was used last, and closes those that were not used for long.
func (p *pool) pick() *lease {
	p.mu.Lock()
	defer p.mu.Unlock()
	old := 0
	for old < len(p.idle) && time.Since(p.idle[old].since) > idleFor {
		_ = p.idle[old].close()
		old++
	}
	p.idle = p.idle[old:]
	if len(p.idle) == 0 {
		return nil
	}
	l := p.idle[len(p.idle)-1]
	p.idle = p.idle[:len(p.idle)-1]
	return l
}

func (p *pool) lend(l *lease) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		_ = l.close()
		return sources.ErrClosed
	}
	p.out[l] = struct{}{}
	return nil
}

// give gives a connection back after a use that ended with err. After one that broke it, those that were idle meanwhile are
// likely to be broken too.
func (p *pool) give(l *lease, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.out, l)
	<-p.slots
	if l.body {
		p.seats.give()
	}
	switch {
	case broken(err):
		_ = l.close()
		if errors.Is(err, errGivenUp) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			return
		}
		for _, i := range p.idle {
			_ = i.close()
		}
		p.idle = nil
	case p.closed:
		_ = l.close()
	default:
		l.since = time.Now()
		p.idle = append(p.idle, l)
	}
}

// do uses a connection. When it breaks, again is asked whether to use another one, at most once; nil says no.
func (p *pool) do(ctx context.Context, again func() bool, use func(remote) error) error {
	for first := true; ; first = false {
		l, err := p.take(ctx, false)
		if err != nil {
			return err
		}
		err = use(l.remote)
		p.give(l, err)
		if !broken(err) || ctx.Err() != nil || !first || again == nil || !again() {
			return err
		}
	}
}

// close ends all connections, those in use too, and those that are being made.
func (p *pool) close() {
	p.end()
	defer p.dials.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, l := range p.idle {
		_ = l.close()
	}
	p.idle = nil
	for l := range p.out {
		_ = l.close()
	}
}

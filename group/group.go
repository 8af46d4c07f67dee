package group

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/coord"
)

// Group is one node of a group. It is safe for concurrent use.
type Group struct {
	cfg   Config
	names []string // canonical, of Static
	watch watch
	hooks hooks

	drained  chan struct{} // of capacity 1: draining has changed
	draining atomic.Bool

	mu      sync.Mutex
	running bool
	node    *node // the running one, or the last; nil before the first
}

// hooks are for tests; all nil in production.
type hooks struct {
	boot    func() (int64, bool) // instead of the system's clock that counts suspended time
	observe func(coord.Trace)    // each step of the machine
}

// New validates cfg, all violations at once (each wraps ErrInvalid), and does no I/O.
func New(cfg Config) (*Group, error) {
	cfg = cfg.withDefaults()
	err := cfg.validate()
	g := &Group{cfg: cfg, drained: make(chan struct{}, 1)}
	if cfg.Resources.origin == coord.OriginStatic && err == nil {
		g.names, err = canonical(cfg.Source, cfg.Resources.names)
		if err != nil {
			err = fmt.Errorf("%w: Resources: %w", ErrInvalid, err)
		}
	}
	if err != nil {
		return nil, err
	}
	return g, nil
}

// Consume joins the group and runs h on what this node holds until ctx ends; then it drains, settles, leaves, and
// returns nil. It returns earlier only for what no retry heals (wrong password, missing schema, ErrMismatch,
// ErrDeleted), ErrRunning, or ErrStuck when handlers outlived Drain + Grace while it stopped, or a source hung for
// 90 s + 2 × Grace more: their claims are then left to expire. A store that is away is waited for, logged, and seen in
// Ready. Nothing outlives the call but what is stuck. It may be called again after it returned.
func (g *Group) Consume(ctx context.Context, h rebalancer.Handler) error {
	switch {
	case h == nil:
		return fmt.Errorf("%w: the handler is nil", ErrInvalid)
	case g.cfg.Source == nil:
		return fmt.Errorf("%w: Source is nil: Consume needs a source", ErrInvalid)
	}
	return g.live(ctx, task{handle: h})
}

// ConsumeBatch is Consume with a handler of batches (see Config.BatchSize and BatchWait). What a *BatchError names is
// retried in place, as a smaller batch, before later messages.
func (g *Group) ConsumeBatch(ctx context.Context, h rebalancer.BatchHandler) error {
	switch {
	case h == nil:
		return fmt.Errorf("%w: the handler is nil", ErrInvalid)
	case g.cfg.Source == nil:
		return fmt.Errorf("%w: Source is nil: ConsumeBatch needs a source", ErrInvalid)
	case g.cfg.Concurrency > 1:
		return fmt.Errorf("%w: Concurrency is %d: it must be 1 for ConsumeBatch", ErrInvalid, g.cfg.Concurrency)
	}
	return g.live(ctx, task{batch: h})
}

// Run joins the group and calls f once for each resource that this node holds, each in its own goroutine, for resources
// that are only names. f's ctx ends at the revoke, stop or loss (see context.Cause), and f then returns within Drain +
// Grace. When f returns earlier, or panics, it is called again with backoff. For the rest Run is like Consume.
func (g *Group) Run(ctx context.Context, f func(ctx context.Context, c *rebalancer.Claim) error) error {
	if f == nil {
		return fmt.Errorf("%w: the function is nil", ErrInvalid)
	}
	return g.live(ctx, task{run: f})
}

// Drain asks that this node be given nothing until Undrain: what it holds is drained and moves to others, but the node stays a member,
// and State is StateDraining. It takes effect as soon as the store allows, also in a later Consume or Run.
func (g *Group) Drain() { g.setDraining(true) }

// Undrain takes Drain back.
func (g *Group) Undrain() { g.setDraining(false) }

func (g *Group) setDraining(on bool) {
	g.draining.Store(on)
	signal(g.drained)
}

// live is one life of the node.
func (g *Group) live(ctx context.Context, t task) error {
	g.mu.Lock()
	if g.running {
		g.mu.Unlock()
		return ErrRunning
	}
	g.running = true
	n := newNode(ctx, g, t)
	g.node = n
	g.mu.Unlock()
	g.watch.changed()
	end := n.probes.begin(g)
	err := n.run(ctx)
	g.mu.Lock()
	g.running = false
	g.mu.Unlock()
	g.watch.changed()
	end()
	return err
}

// current is the node that runs, or the last one; nil before the first.
func (g *Group) current() (n *node, running bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.node, g.running
}

// Status is a snapshot. It does no I/O.
func (g *Group) Status() Status {
	n, running := g.current()
	s := Status{State: StateIdle, Group: g.cfg.Name, Node: g.cfg.Node}
	switch {
	case n == nil:
	case running:
		n.fillStatus(&s)
	default:
		s.State = StateLeft
	}
	return s
}

// Wait returns nil as soon as until holds of the status, or ctx's error. It is for tests and start-up. until must not block.
func (g *Group) Wait(ctx context.Context, until func(Status) bool) error {
	return g.watch.wait(ctx, func() bool { return until(g.Status()) })
}

// Ready is nil when the node has joined, applied its assignment, and trusts its claims. Holding nothing is ready, and an
// outage of the store shorter than the trust keeps it so. Its errors wrap ErrNotReady.
func (g *Group) Ready() error {
	n, running := g.current()
	if !running {
		return fmt.Errorf("%w: neither Consume nor Run is running", ErrNotReady)
	}
	return n.ready()
}

// Live is nil when the group's loop turns, no handler is stuck (ErrStuck), and no resource stands still (ErrHalted). It
// never asks the store. It is nil too when nothing runs.
func (g *Group) Live() error {
	n, running := g.current()
	if !running {
		return nil
	}
	return errors.Join(n.turns(), n.standing())
}

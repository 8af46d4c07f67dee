package group

import (
	"context"

	"github.com/rebalancer-go/rebalancer"
)

// Group is one node of a group. It is safe for concurrent use.
type Group struct{ cfg Config }

// New validates cfg, all violations at once (each wraps ErrInvalid), and does no I/O.
func New(cfg Config) (*Group, error) { panic("being written") }

// Consume joins the group and runs h on what this node holds until ctx ends; then it drains, settles, leaves, and
// returns nil. It returns earlier only for what no retry heals (wrong password, missing schema, ErrMismatch,
// ErrDeleted), ErrRunning, or ErrStuck when handlers outlived Drain + Grace while it stopped: their claims are then left
// to expire. A store that is away is waited for, logged, and seen in Ready. Nothing outlives the call but stuck handlers.
// It may be called again after it returned.
func (g *Group) Consume(ctx context.Context, h rebalancer.Handler) error { panic("being written") }

// ConsumeBatch is Consume with a handler of batches (see Config.BatchSize and BatchWait). What a *BatchError names is
// retried in place, as a smaller batch, before later messages.
func (g *Group) ConsumeBatch(ctx context.Context, h rebalancer.BatchHandler) error {
	panic("being written")
}

// Run joins the group and calls f once for each resource that this node holds, each in its own goroutine, for resources
// that are only names. f's ctx ends at the revoke, stop or loss (see context.Cause), and f then returns within Drain +
// Grace. When f returns earlier, or panics, it is called again with backoff. For the rest Run is like Consume.
func (g *Group) Run(ctx context.Context, f func(ctx context.Context, c *rebalancer.Claim) error) error {
	panic("being written")
}

// Status is a snapshot. It does no I/O.
func (g *Group) Status() Status { panic("being written") }

// Wait returns nil as soon as until holds of the status, or ctx's error. It is for tests and start-up. until must not block.
func (g *Group) Wait(ctx context.Context, until func(Status) bool) error { panic("being written") }

// Ready is nil when the node has joined, applied its assignment, and trusts its claims. Holding nothing is ready, and an
// outage of the store shorter than the trust keeps it so. Its errors wrap ErrNotReady.
func (g *Group) Ready() error { panic("being written") }

// Live is nil when the group's loop turns, no handler is stuck, and no resource stands still (ErrHalted). It never asks the store. It is nil too
// when nothing runs.
func (g *Group) Live() error { panic("being written") }

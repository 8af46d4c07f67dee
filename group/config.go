package group

import (
	"context"
	"io"
	"log/slog"
	"time"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/sources"
)

// The defaults of [Config] and of what it contains.
const (
	DefaultBatchSize     = 100
	DefaultTTL           = 30 * time.Second
	DefaultDrain         = 20 * time.Second
	DefaultGrace         = 5 * time.Second
	DefaultAttempts      = 5
	DefaultRetryMin      = 100 * time.Millisecond
	DefaultRetryMax      = 30 * time.Second
	DefaultDebounce      = time.Second
	DefaultDebounceMax   = 10 * time.Second
	DefaultDiscoverEvery = 30 * time.Second
)

// Config describes one node. The zero value of every field but the first three (four for Consume) is a working default.
type Config struct {
	// Name of the group: the same on every node. 1 to 128 bytes of printable UTF-8 without "/". Required.
	Name string
	// Store keeps the group's metadata. The caller closes it, after Consume or Run returned. Required.
	Store backends.Store
	// Resources are what the group shares: Static, Registered or Discover, the same kind on every node. Required.
	Resources Resources
	// Source is where the messages come from. Required by Consume and ConsumeBatch, unused by Run. The caller closes
	// it, after Consume returned.
	Source sources.Source

	// Concurrency is the number of handlers at once on one resource. 1 means strict order; more means order per
	// message key (see Key), and messages without a key in any order. Must be 1 for ConsumeBatch. Defaults to 1.
	Concurrency int
	// Key gives the order key of a message when Concurrency is above 1; "" for none. It must not block; a message
	// for which it panics fails.
	// Defaults to Message.Key.
	Key func(*rebalancer.Message) string
	// MaxConcurrency is the number of handlers at once on this node, all resources together; they take turns.
	// 0 means no limit. Defaults to 0.
	MaxConcurrency int
	// BatchSize is the greatest number of messages that ConsumeBatch passes to its handler at once. Defaults to
	// DefaultBatchSize.
	BatchSize int
	// BatchWait is how long ConsumeBatch waits for an incomplete batch to fill. 0 means that it takes what is there.
	// Defaults to 0.
	BatchWait time.Duration
	// Timeout bounds one call of a handler: its context then ends with context.DeadlineExceeded. 0 means no bound.
	// Defaults to 0.
	Timeout time.Duration
	// Retry paces failures and says what becomes of messages that keep failing.
	Retry Retry

	// Drain is the time that handlers have to finish after a revoke or stop, before their context ends. With Grace it
	// should be below what whoever stops the process allows (Kubernetes: 30 s). Defaults to DefaultDrain.
	Drain time.Duration
	// Grace is the time to return after that, before the resource is reported stuck. Defaults to DefaultGrace.
	Grace time.Duration
	// StartDelay is the time between a claim and the opening of its source, for brokers that need time to notice that
	// the old owner's connection is gone. It delays nothing else. Defaults to 0.
	StartDelay time.Duration
	// TTL is the time after which a node that crashed is replaced: the life of its session without a renewal. At least
	// 5 × Tuning.Renew, more than 2 × Tuning.Margin, and the same on every node of the group. It should be above 1.5 ×
	// the store's own fail-over time. Defaults to DefaultTTL.
	TTL time.Duration

	// OnClaim runs before the first message of a claim; its ctx is like a handler's. An error is reported, and the
	// call repeated with backoff. It may block. nil means nothing to do.
	OnClaim func(ctx context.Context, c *rebalancer.Claim) error
	// OnRelease runs after the last handler of a claim for which OnClaim succeeded, and before the claim is given back.
	// Its ctx ends Grace later, or has ended already with cause ErrLost when the claim was lost. It may block. nil
	// means nothing to do.
	OnRelease func(ctx context.Context, c *rebalancer.Claim)
	// OnEvent observes what happens, in order, one call at a time, off the hot path. When it is so slow that 1,024
	// events wait, further ones are dropped and counted (see KindDropped). It must not call Consume or Wait. nil means
	// that nobody observes.
	OnEvent func(Event)
	// Probes measure the node, for metrics and traces (see package telemetry). Defaults to none, which costs nothing.
	Probes []*Probe
	// Logger gets a line for each event, from a goroutine of its own; like events, lines are dropped when it is too slow. The coordinator's line
	// about a rebalance ("rebalanced", at level Info) says in "moves" why each resource moves, of many the first 20. Defaults to slog.Default().
	Logger *slog.Logger

	// Trace gets what this node's side of the protocol does, as lines of JSON (see package coord/trace), to be judged by the specification. Each line is one
	// Write, before what it tells of takes effect; nodes may share a writer that is safe for concurrent use, and must for their steps to be in
	// order. One that blocks holds the node up, as far as the loss of its claims. Its first error ends the trace and is logged. nil means none.
	Trace io.Writer

	// Node is the unique name of this node in the group. 1 to 128 bytes of printable UTF-8 without "/". Defaults to the
	// host's name and a random suffix, new for each New.
	Node string
	// Static says that Node outlives its process (it must be set then): a restart under the same Node within TTL keeps its
	// resources, and nothing else moves. Leaving keeps its share reserved for TTL. A new process under the name ends an older one, which returns
	// ErrSuperseded; what that one holds comes when it releases it, or when its session ends. Defaults to false.
	Static bool
	// Priority: resources go to live nodes of the highest priority only, as far as these may take them. Defaults to 0.
	Priority int
	// Weight is this node's share of the resources in proportion to that of the others; at least 1. Defaults to 1.
	Weight int
	// MaxResources is the greatest number of resources that this node is given. 0 means no limit. Defaults to 0.
	MaxResources int
	// MaxActive is how many nodes of the group may hold resources at once; 1 is active-backup. Those of the highest Priority
	// do, and share them evenly, but a node that holds resources stays active while it is well (see FailBack). It must be the same on every node. 0 means all. Defaults to 0.
	MaxActive int
	// FailBack lets a node of a higher Priority take over from an active one that is well. Only with MaxActive; it must be
	// the same on every node. Defaults to false.
	FailBack bool
	// MaxMoving is how many resources of the group may be in hand-over at a time, and MaxMovingPerNode how many of one node; the rest
	// waits. What its node has lost is not limited. They must be the same on every node, and do not count with GlobalBarrier. 0
	// means no limit. Defaults to 0.
	MaxMoving, MaxMovingPerNode int
	// Labels are shown to operators, and what registered resources may require or prefer. At most 32, of up to 128 bytes each side. Defaults to none.
	Labels map[string]string
	// GlobalBarrier makes everybody stop for every change, rather than only what moves. It must be the same on every
	// node: one that differs from the group is refused with ErrMismatch. Defaults to false.
	GlobalBarrier bool
	// Tuning holds ratios that are best left alone.
	Tuning Tuning
}

// Retry paces failures. They are retried in place, which keeps order; a revoke or stop ends the wait at once and gives
// the message back without burning an attempt.
type Retry struct {
	// Attempts is how often a message is tried, those before this delivery included as far as the source knows, before
	// Exhausted decides. Negative means for ever. Defaults to DefaultAttempts where the source has a dead-letter place
	// or Exhausted is not DeadLetter, else to for ever.
	Attempts int
	// Min is the first backoff; it doubles with each further failure, and full jitter is applied: the wait is
	// random between 0 and the backoff. Defaults to DefaultRetryMin.
	Min time.Duration
	// Max is the longest backoff, at least Min. Defaults to DefaultRetryMax.
	Max time.Duration
	// Exhausted is what becomes of a message whose attempts are used up, or that failed with a Permanent error.
	// Defaults to DeadLetter.
	Exhausted Exhausted
}

// Exhausted says what becomes of a message whose attempts are used up.
type Exhausted int

const (
	// DeadLetter moves the message to the source's dead-letter place. Where there is none the message is kept, retried
	// at Retry.Max, and reported.
	DeadLetter Exhausted = iota
	// Stop lets the resource stand still until the node gives it up; Status, Live and an event say so.
	Stop
	// Skip settles the message as if it had been worked, and reports it.
	Skip
)

// Tuning holds the pace of the protocol.
type Tuning struct {
	// Renew is the time between renewals of the session. At most TTL/5 and below TTL − Margin. Defaults to TTL/6.
	Renew time.Duration
	// Margin is how long before the end of the session the node stops to trust its claims. Below TTL/2. Defaults to TTL/5.
	Margin time.Duration
	// Debounce is how long the coordinator waits after a join for others to follow. Defaults to DefaultDebounce.
	Debounce time.Duration
	// DebounceMax bounds how long joins that keep coming put off a plan. At least Debounce. Defaults to DefaultDebounceMax.
	DebounceMax time.Duration
}

// Package sources is the contract between the runtime and whatever messages come from. Package sourcetest checks an
// implementation of it.
package sources

import (
	"context"
	"errors"
	"time"

	"github.com/rebalancer-go/rebalancer"
)

// Source opens resources. It is safe for concurrent use by many groups. Whoever made a source closes it; a group
// never does.
type Source interface {
	// Names returns the canonical names of a group's whole list, in the order given, or why it cannot be worked: two
	// spellings of one queue, or one prefix inside another, must never be two resources. It does no I/O.
	Names(resources []string) ([]string, error)
	// Open starts to read a claimed resource. ctx bounds this call, not the Reader. It fails with ErrGone when the
	// resource does not exist.
	Open(ctx context.Context, c *rebalancer.Claim) (Reader, error)
	// DeadLetters reports whether this source has a place for messages that are given up (Reject).
	DeadLetters() bool
}

// Reader reads one claimed resource. One goroutine calls Fetch while another calls Settle; Close may come at any time.
type Reader interface {
	// Fetch blocks until it has 1 to max messages or ctx ends; it then returns ctx's error and no message is lost. It
	// returns ErrGone when the resource does not exist (any more). Messages in hand are kept alive until settled.
	// The slice belongs to the caller until the next Fetch; the messages do for good.
	Fetch(ctx context.Context, max int) ([]*rebalancer.Message, error)
	// Settle reports outcomes, batched as the source can. It never waits for a Fetch in progress. A message that was
	// not handed out, or was settled before, is ignored. When it returns an error, the settlements that failed may be
	// passed again (see SettleError).
	Settle(ctx context.Context, s []Settlement) error
	// Close gives back what is unsettled without burning an attempt where the source can. It is idempotent, ends a
	// Fetch in progress, and nothing is delivered after it.
	Close(ctx context.Context) error
}

// Keeper is optional for a Reader. When Fetch fails several times in a row, a group closes the Reader and opens another, unless
// Keep is true: because the Reader gets on by itself and holds messages that closing would give back, each with an attempt
// burnt. Keep is asked between two calls of Fetch.
type Keeper interface {
	Keep() bool
}

// Outcome is what became of one message.
type Outcome int

const (
	// Done acknowledges, deletes or moves the message away.
	Done Outcome = iota
	// Release gives it back unworked; burns no attempt where the source can.
	Release
	// Retry gives it back, to be delivered again not before Settlement.Delay.
	Retry
	// Reject moves it to the dead-letter place with Settlement.Err; fails with ErrNoDeadLetter when there is none, and with ErrRedelivered
	// when the message comes again instead.
	Reject
)

// Settlement is the outcome of one message.
type Settlement struct {
	Message *rebalancer.Message
	Outcome Outcome
	Delay   time.Duration // for Retry
	Err     error         // for Reject and Retry: why
}

// SettleError is returned by Settle when some of the settlements failed; those that it does not name are settled.
type SettleError struct{ Failed map[int]error }

// Error names the first failure by its index.
func (e *SettleError) Error() string { return settleErrorText(e) }

// Unwrap returns the single errors in the order of their indexes.
func (e *SettleError) Unwrap() []error { return settleErrorList(e) }

var (
	// ErrGone is returned by Open and Fetch when the resource does not exist (any more): reported, retried slowly.
	ErrGone = errors.New("resource does not exist (any more)")
	// ErrNoDeadLetter is returned by Settle for a Reject when no dead-letter place is configured.
	ErrNoDeadLetter = errors.New("no dead-letter place configured")
	// ErrRedelivered is returned by Settle for a Reject of a message that the source delivers again instead, because what it was delivered by
	// is lost, such as a connection: the message is not in the dead-letter place, and this rejection is not to be passed again.
	ErrRedelivered = errors.New("the message is delivered again")
	// ErrClosed is returned by calls on a closed Source or Reader.
	ErrClosed = errors.New("source is closed")
)

// Lagger is optional for a Source: how many messages wait in a resource.
type Lagger interface {
	Lag(ctx context.Context, resource string) (int64, error)
}

// Discoverer is optional for a Source: it lists the resources that match a pattern of path.Match's kind.
type Discoverer interface {
	Discover(ctx context.Context, pattern string) ([]string, error)
}

// Prefetcher is optional for a Source. Prefetch reports whether messages may be fetched ahead of free handlers. It is
// false where a receive costs an attempt, so that a message that only waited has not burnt one; a Source that does not
// implement it counts as true.
type Prefetcher interface {
	Prefetch() bool
}

// Holder is optional for a Source. HeldFor is how long at most its server may go on holding messages for a node that froze
// or was cut off; 0 for not at all. A group refuses a TTL within which such a node could lose a resource while the server
// still takes it for the consumer: HeldFor + Tuning.Renew must be below TTL − Tuning.Margin.
type Holder interface {
	HeldFor() time.Duration
}

package rebalancer

import (
	"errors"
	"fmt"
	"sort"
	"strings"
	"time"
)

var (
	// ErrPermanent is matched by every error that [Permanent] made.
	ErrPermanent = errors.New("permanent failure")
	// ErrRevoked is the cause of a handler's ended context when the group moves the resource: finish and return.
	ErrRevoked = errors.New("resource revoked")
	// ErrStopped is the cause of a handler's ended context when Consume's or Run's own context ended.
	ErrStopped = errors.New("node stopping")
	// ErrLost is the cause of a handler's ended context when the claim is no longer ours: write nothing. It is also
	// what Checkpoint.Save returns then, and what a handler returns when somebody downstream refused its fence.
	ErrLost = errors.New("claim lost")
	// ErrStale is returned by SaveIf of a [VersionedCheckpoint] when one of its checks did not hold: read again.
	ErrStale = errors.New("checkpoint is not as it was read")
	// ErrChanged is returned by a read of a payload that changed, or vanished, since it was listed.
	ErrChanged = errors.New("payload changed since it was listed")
)

// Permanent says that no retry can help: the message goes to the source's dead-letter place. A source that has none
// keeps it and it is retried at the longest backoff: nothing is dropped silently. Permanent(nil) is nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanentError{err}
}

type permanentError struct{ err error }

func (e *permanentError) Error() string        { return ErrPermanent.Error() + ": " + e.err.Error() }
func (e *permanentError) Unwrap() error        { return e.err }
func (e *permanentError) Is(target error) bool { return target == ErrPermanent }

// RetryAfterError asks for a retry no sooner than After; it counts as an attempt. [RetryAfter] makes one.
type RetryAfterError struct {
	After time.Duration
	Err   error
}

// Error is the text of Err.
func (e *RetryAfterError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("retry after %v", e.After)
	}
	return e.Err.Error()
}

// Unwrap returns Err.
func (e *RetryAfterError) Unwrap() error { return e.Err }

// RetryAfter fails a message with err and asks for the next attempt no sooner than d.
func RetryAfter(d time.Duration, err error) error { return &RetryAfterError{After: d, Err: err} }

// BatchError fails the messages at these indexes of a batch, each with its own error; the others are settled.
type BatchError struct{ Failed map[int]error }

// Error names the failed indexes in order.
func (e *BatchError) Error() string {
	idx := make([]int, 0, len(e.Failed))
	for i := range e.Failed {
		idx = append(idx, i)
	}
	sort.Ints(idx)
	var b strings.Builder
	fmt.Fprintf(&b, "%d messages of the batch failed", len(idx))
	for n, i := range idx {
		if n == 3 {
			b.WriteString("; …")
			break
		}
		fmt.Fprintf(&b, "; %d: %v", i, e.Failed[i])
	}
	return b.String()
}

// Unwrap returns the single errors, in the order of their indexes.
func (e *BatchError) Unwrap() []error {
	idx := make([]int, 0, len(e.Failed))
	for i := range e.Failed {
		idx = append(idx, i)
	}
	sort.Ints(idx)
	errs := make([]error, len(idx))
	for n, i := range idx {
		errs[n] = e.Failed[i]
	}
	return errs
}

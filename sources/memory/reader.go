package memory

import (
	"context"
	"fmt"
	"time"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/sources"
)

// reader is one opened claim. Its fields below wake are guarded by the queue's mutex.
type reader struct {
	source *Source
	queue  *queue
	fence  int64
	wake   chan struct{} // room for one signal

	waiting   bool
	delivered bool // has handed out a message: for Overlaps
	closed    bool
	flight    flight
	out       []*rebalancer.Message // handed to the caller until the next Fetch
}

// Fetch takes the messages with the smallest places in the order, at most max.
func (r *reader) Fetch(ctx context.Context, max int) ([]*rebalancer.Message, error) {
	if max < 1 {
		return nil, fmt.Errorf("memory source: fetch from %q: max is %d, must be at least 1", r.queue.name, max)
	}
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		ms, next, err := r.poll(max)
		if err != nil {
			return nil, fmt.Errorf("memory source: fetch from %q: %w", r.queue.name, err)
		}
		if len(ms) > 0 {
			return ms, nil
		}
		r.wait(ctx, next)
	}
}

// poll takes what is there, or registers the reader as waiting and says when the next delay ends (zero: none).
func (r *reader) poll(max int) ([]*rebalancer.Message, time.Time, error) {
	q := r.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	r.waiting = false
	switch {
	case r.closed:
		return nil, time.Time{}, sources.ErrClosed
	case q.cut:
		return nil, time.Time{}, ErrCut
	case q.gone:
		return nil, time.Time{}, sources.ErrGone
	}
	n := min(q.ready(), max)
	if n == 0 {
		r.waiting = true
		var next time.Time
		if len(q.delayed) > 0 {
			next = q.delayed[0].due
		}
		return nil, next, nil
	}
	r.noteOverlap()
	r.out = r.out[:0]
	batch := make([]rebalancer.Message, n) // one allocation for all of them
	for i := range batch {
		e, m := q.next(), &batch[i]
		*m = e.orig
		m.Fence = r.fence
		r.flight.add(m, e)
		r.out = append(r.out, m)
	}
	q.inFlight += n
	return r.out, time.Time{}, nil
}

// noteOverlap counts a delivery beside another open reader that has delivered too.
func (r *reader) noteOverlap() {
	r.delivered = true
	for _, other := range r.queue.readers {
		if other != r && other.delivered {
			r.source.overlaps.Add(1)
			return
		}
	}
}

// wait returns at a signal, when ctx ends, or at next.
func (r *reader) wait(ctx context.Context, next time.Time) {
	var due <-chan time.Time
	if !next.IsZero() {
		t := time.NewTimer(time.Until(next))
		defer t.Stop()
		due = t.C
	}
	select {
	case <-r.wake:
	case <-ctx.Done():
	case <-due:
	}
}

// signal ends a wait, or the next one if none is going on.
func (r *reader) signal() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Settle takes each message out of flight and does what its outcome says.
func (r *reader) Settle(ctx context.Context, s []sources.Settlement) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	q := r.queue
	q.mu.Lock()
	switch {
	case r.closed:
		q.mu.Unlock()
		return fmt.Errorf("memory source: settle in %q: %w", q.name, sources.ErrClosed)
	case q.cut:
		q.mu.Unlock()
		return fmt.Errorf("memory source: settle in %q: %w", q.name, ErrCut)
	}
	var failed map[int]error
	gone, given := 0, 0 // gone: settled for good
	for i := range s {
		final, taken, err := r.settle(&s[i])
		switch {
		case err != nil:
			if failed == nil {
				failed = map[int]error{}
			}
			failed[i] = fmt.Errorf("memory source: message %q of %q: %w", s[i].Message.ID, q.name, err)
		case final:
			gone++
		case taken:
			given++
		}
	}
	q.inFlight -= gone + given
	if given > 0 {
		q.tell()
	}
	q.mu.Unlock()
	r.source.settled(gone)
	if failed != nil {
		return &sources.SettleError{Failed: failed}
	}
	return nil
}

// settle carries out one settlement; final says that the message is gone for good, taken that it went back.
func (r *reader) settle(s *sources.Settlement) (final, taken bool, err error) {
	q := r.queue
	at := r.flight.find(s.Message)
	if at < 0 {
		return false, false, nil
	}
	if s.Outcome < sources.Done || s.Outcome > sources.Reject {
		return false, false, fmt.Errorf("unknown outcome %d", s.Outcome)
	}
	if s.Outcome == sources.Reject && r.source.noDeadLetters {
		return false, false, sources.ErrNoDeadLetter
	}
	e := r.flight.remove(at)
	e.orig.Attempt = max(e.orig.Attempt, s.Message.Attempt) // the runtime counted its retries there
	switch s.Outcome {
	case sources.Done:
		q.done++
		return true, false, nil
	case sources.Reject:
		m := e.orig
		m.Fence = r.fence
		q.rejected = append(q.rejected, Rejected{Message: m, Err: s.Err})
		return true, false, nil
	case sources.Retry:
		e.orig.Attempt++
		q.give(e, s.Delay)
	case sources.Release:
		q.give(e, 0)
	}
	return false, true, nil
}

// Close gives back what is in flight. It works on a resource that is cut off too, as a broker gives back what a lost
// connection had.
func (r *reader) Close(context.Context) error {
	r.giveBack()
	return nil
}

func (r *reader) giveBack() {
	q := r.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	if r.closed {
		return
	}
	r.closed = true
	for i, other := range q.readers {
		if other == r {
			q.readers = append(q.readers[:i], q.readers[i+1:]...)
			break
		}
	}
	r.signal()
	es := r.flight.all()
	for _, e := range es {
		q.give(e, 0)
	}
	q.inFlight -= len(es)
	if len(es) > 0 {
		q.tell()
	}
}

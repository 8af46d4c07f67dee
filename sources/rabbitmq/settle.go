package rabbitmq

import (
	"context"
	"fmt"
	"time"

	"github.com/rebalancer-go/rebalancer/sources"
)

// Settle takes outcomes in. Done is acknowledged soon, many in one; Release and Retry keep the message here, to be handed
// out again by this Reader; Reject is published and then acknowledged.
func (r *reader) Settle(ctx context.Context, ss []sources.Settlement) error {
	if err := ctx.Err(); err != nil {
		return r.wrap("settle in", err)
	}
	failed := map[int]error(nil)
	fail := func(i int, err error) {
		if failed == nil {
			failed = map[int]error{}
		}
		failed[i] = fmt.Errorf("message %q: %w", ss[i].Message.ID, err)
	}
	r.mu.Lock()
	l := r.live
	if r.closed {
		r.mu.Unlock()
		return r.wrap("settle in", sources.ErrClosed)
	}
	r.drop(ss, fail)
	var rejects []int
	if l != nil {
		rejects = r.take(l, ss, fail)
	}
	r.mu.Unlock()
	for _, i := range rejects {
		if err := r.reject(ctx, l, &ss[i]); err != nil {
			fail(i, err)
		}
	}
	if l != nil {
		r.flush.someWithin(ctx, l, len(rejects) > 0) // at once: until then a crash would bring what was rejected there again
	}
	if failed != nil {
		return r.wrap("settle in", &sources.SettleError{Failed: failed})
	}
	return nil
}

// drop takes notice of outcomes of messages that came by a channel that was lost, and come again; r.mu is held.
func (r *reader) drop(ss []sources.Settlement, fail func(int, error)) {
	if len(r.stale) == 0 {
		return
	}
	for i := range ss {
		if m := ss[i].Message; r.stale[m] {
			delete(r.stale, m)
			if ss[i].Outcome == sources.Reject {
				fail(i, sources.ErrRedelivered)
			}
		}
	}
}

// take carries out what needs no broker and returns the places of what does; r.mu is held.
func (r *reader) take(l *live, ss []sources.Settlement, fail func(int, error)) (rejects []int) {
	now := time.Now()
	w := &l.window
	for i := range ss {
		s := &ss[i]
		at := w.find(s.Message)
		if at < 0 {
			continue
		}
		e := w.list[at]
		switch s.Outcome {
		case sources.Done:
			r.done(l, at, now)
		case sources.Release:
			w.give(e, s.Message.Attempt, time.Time{})
		case sources.Retry:
			w.give(e, s.Message.Attempt+1, now.Add(s.Delay))
		case sources.Reject:
			rejects = append(rejects, i)
		default:
			fail(i, fmt.Errorf("unknown outcome %d", s.Outcome))
		}
	}
	r.adapt(l, now, w.out)
	if w.backs > 0 || w.next < len(w.list) { // the latter: a marker may wait for what was before it
		r.signalLocked()
	}
	return rejects
}

// done marks the entry at a place as settled; r.mu is held.
func (r *reader) done(l *live, at int, now time.Time) {
	e := l.window.list[at]
	l.window.finish(at, now)
	l.pace.settled(len(e.d.Body))
	if l.careful && !e.d.Redelivered {
		r.relax(l)
	}
}

// reject moves a message to the dead-letter place.
func (r *reader) reject(ctx context.Context, l *live, s *sources.Settlement) error {
	if r.source.DeadLetter.none() {
		return sources.ErrNoDeadLetter
	}
	r.mu.Lock()
	at := -1
	if r.live == l {
		at = l.window.find(s.Message)
	}
	var e *entry
	if at >= 0 {
		e = l.window.list[at]
	}
	r.mu.Unlock()
	if e == nil {
		return r.late(s)
	}
	if err := r.source.dead.put(ctx, r.claim, e, s.Message.Attempt, s.Err); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if at = l.window.find(s.Message); r.live == l && at >= 0 {
		r.done(l, at, time.Time{}) // not to wait for those below it
		r.signalLocked()           // a marker may wait for it
	}
	return nil
}

// late is the answer to a rejection during which the channel was lost, or that is repeated in one call.
func (r *reader) late(s *sources.Settlement) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.stale[s.Message] {
		return nil
	}
	delete(r.stale, s.Message)
	return sources.ErrRedelivered
}

package group

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/coord"
	"github.com/rebalancer-go/rebalancer/sources"
)

// verdict is what became of a message.
type verdict int

const (
	settled  verdict = iota
	again            // to be tried again
	unworked         // the resource is to be given back first
	halt             // it stays, and the resource with it
)

// item is a message in hand.
type item struct {
	m        *rebalancer.Message
	failures int   // in this process; paces the backoff
	err      error // why it fails without its handler being called; nil: it does not
}

// backoff is a random wait below the backoff after so many failures (from 0).
func (w *worker) backoff(failures int) time.Duration {
	r := w.env.cfg.Retry
	d := r.Max
	if failures < 40 && r.Min<<failures > 0 && r.Min<<failures < r.Max {
		d = r.Min << failures
	}
	return rand.N(d) + 1
}

// prepare makes a fetched message ready for its handler.
func (w *worker) prepare(m *rebalancer.Message) {
	m.Resource, m.Fence = w.claim.Resource, w.claim.Fence
	m.Attempt = max(m.Attempt, 1)
}

// failed decides about a message whose handler returned err, and reports it.
func (w *worker) failed(s *settler, it *item, err error) (verdict, time.Duration) {
	m := it.m
	switch {
	case w.lost.Load():
		return unworked, 0
	case errors.Is(err, rebalancer.ErrLost):
		return w.doubted(it, err)
	}
	final := errors.Is(err, rebalancer.ErrPermanent)
	if !final && w.closing.Load() {
		return unworked, 0 // it was cut short, or gave up early: no attempt is burnt
	}
	most := w.env.cfg.Retry.Attempts
	if final || most > 0 && m.Attempt >= most {
		return w.exhausted(s, it, err)
	}
	w.reportFailure(it, err)
	if errors.Is(err, rebalancer.ErrChanged) { // in place it would fail for ever: what the file is now comes as another message
		s.add(sources.Settlement{Message: m, Outcome: sources.Retry, Delay: w.backoff(m.Attempt - 1), Err: err})
		return settled, 0
	}
	wait := w.backoff(it.failures)
	var after *rebalancer.RetryAfterError
	if errors.As(err, &after) {
		wait = max(wait, after.After)
	}
	it.failures++
	m.Attempt++
	return again, wait
}

func (w *worker) reportFailure(it *item, err error) {
	w.troubled(fmt.Errorf("message %q failed (attempt %d): %w", it.m.ID, it.m.Attempt, err))
	w.emit(Event{Kind: KindFailed, Message: it.m.ID, Attempt: it.m.Attempt, Err: err})
}

// doubted: somebody downstream refused the fence. The claim is read at once; if it stands, the message is tried again.
func (w *worker) doubted(it *item, err error) (verdict, time.Duration) {
	w.reportFailure(it, err)
	w.env.post(coord.Doubt{Resource: w.claim.Resource, Fence: w.claim.Fence})
	wait := w.backoff(it.failures)
	it.failures++
	return again, wait
}

// exhausted does what the configuration says about a message whose attempts are used up.
func (w *worker) exhausted(s *settler, it *item, err error) (verdict, time.Duration) {
	ev := Event{Message: it.m.ID, Attempt: it.m.Attempt, Err: err}
	switch w.env.cfg.Retry.Exhausted {
	case Skip:
		ev.Kind = KindSkipped
		w.emit(ev)
		s.add(sources.Settlement{Message: it.m, Outcome: sources.Done})
		w.troubled(nil)
		return settled, 0
	case Stop:
		ev.Kind = KindHalted
		w.halted.Store(true)
		w.stopFetch() // also a fetch in progress, of other lanes
		w.troubled(fmt.Errorf("%w: message %q (attempt %d): %w", ErrHalted, it.m.ID, it.m.Attempt, err))
		w.emit(ev)
		return halt, 0
	}
	if w.env.cfg.Source.DeadLetters() {
		own := *it // the caller's is used for another message by then
		later := func(rejected error) { w.rejectedLate(s, &own, ev, rejected) }
		switch rejected := s.reject(sources.Settlement{Message: it.m, Outcome: sources.Reject, Err: err}, later); {
		case errors.Is(rejected, errAside):
			return settled, 0
		case rejected == nil:
			ev.Kind = KindRejected
			w.emit(ev)
			w.troubled(nil)
			return settled, 0
		case errors.Is(rejected, sources.ErrRedelivered):
			w.reportFailure(it, err) // the source has taken it back, and what becomes of it is told when it comes again
			return settled, 0
		case !errors.Is(rejected, sources.ErrNoDeadLetter):
			return unworked, 0 // the resource is to be given back
		}
	}
	return w.kept(it, ev)
}

// rejectedLate does what comes of a rejection that the source did not take at first; others were worked meanwhile.
func (w *worker) rejectedLate(s *settler, it *item, ev Event, rejected error) {
	switch {
	case rejected == nil:
		ev.Kind = KindRejected
		w.emit(ev)
	case errors.Is(rejected, sources.ErrRedelivered):
		w.reportFailure(it, ev.Err)
	default:
		ev.Kind = KindKept
		w.emit(ev)
		s.add(sources.Settlement{Message: it.m, Outcome: sources.Retry, Delay: w.env.cfg.Retry.Max, Err: ev.Err})
	}
}

// kept: there is no place for a message that is given up, so it stays.
func (w *worker) kept(it *item, ev Event) (verdict, time.Duration) {
	ev.Kind = KindKept
	w.troubled(fmt.Errorf("message %q (attempt %d) was given up, and there is no dead-letter place: %w", it.m.ID, it.m.Attempt, ev.Err))
	w.emit(ev)
	it.failures++
	it.m.Attempt++
	return again, w.env.cfg.Retry.Max
}

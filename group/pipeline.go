package group

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/sources"
)

const (
	// readAhead is how many messages are fetched at once, where fetching costs no attempt.
	readAhead = 256
	// Where it does cost one, so many messages for each handler, and so many at least, may wait to be tried again until nothing more is fetched: when
	// whatever handlers depend on is down, no more than these have burnt an attempt.
	parkedEach, leastParked = 4, 32
)

// consume works the messages of an open source until the resource is to be given back (see closing), or until the source
// is to be opened again (true). What was finished is then settled, and the rest given back, as far as the source let it.
func (w *worker) consume(r sources.Reader) (again bool) {
	s := newSettler(w, r)
	defer s.stop() // also when a handler ends the goroutine
	switch {
	case w.env.task.batch != nil:
		return w.batches(r, s)
	case w.env.cfg.Concurrency > 1:
		return w.lanes(r, s)
	}
	return w.ordered(r, s)
}

// ordered works one message after the other, in the worker's own goroutine.
func (w *worker) ordered(r sources.Reader, s *settler) (again bool) {
	most := readAhead
	if !w.mayPrefetch() {
		most = 1
	}
	for {
		if !s.room() {
			return false
		}
		ms, ok := w.fetch(r, most)
		if !ok {
			return !w.closing.Load()
		}
		for i, m := range ms {
			if !w.inOrder(s, m) {
				release(s, ms[i:])
				return false
			}
		}
		s.idle()
	}
}

// inOrder works a message until it is settled; false when the resource is to be given back first.
func (w *worker) inOrder(s *settler, m *rebalancer.Message) bool {
	w.prepare(m)
	it := item{m: m}
	for {
		v, wait := w.attempt(s, &it)
		switch v {
		case settled:
			return true
		case again:
			if !w.sleep(wait) {
				return false
			}
		case halt:
			<-w.draining // it stands still, and holds what it has, until it is given back
			return false
		default:
			return false
		}
	}
}

// attempt runs the handler on a message once, when the claim allows it, and does what comes of it.
func (w *worker) attempt(s *settler, it *item) (verdict, time.Duration) {
	if w.env.slots != nil {
		select {
		case w.env.slots <- struct{}{}:
		case <-w.draining:
			return unworked, 0
		}
	}
	if !w.admit() {
		w.freeSlot()
		return unworked, 0
	}
	err := it.err
	if err == nil {
		err = w.slotted(it.m)
	} else {
		w.freeSlot()
	}
	if err != nil {
		return w.failed(s, it, err)
	}
	if it.failures > 0 {
		w.troubled(nil)
	}
	s.add(sources.Settlement{Message: it.m}) // which settles nothing after a loss
	return settled, 0
}

// slotted calls the handler and gives its slot back, whatever happens.
func (w *worker) slotted(m *rebalancer.Message) error {
	if w.env.slots == nil {
		return w.call(m)
	}
	defer w.freeSlot()
	return w.call(m)
}

func (w *worker) freeSlot() {
	if w.env.slots != nil {
		<-w.env.slots
	}
}

// fetch waits for messages. False when the resource is to be given back, or the source to be opened again.
func (w *worker) fetch(r sources.Reader, most int) ([]*rebalancer.Message, bool) {
	keeper, _ := r.(sources.Keeper)
	for fails, gone := 0, false; ; {
		ms, err := w.fetchOnce(w.fetchCtx, r, most)
		if w.closing.Load() {
			return nil, false // what was fetched all the same goes back when the reader is closed
		}
		if w.fetchCtx.Err() != nil { // a handler's failure ended it
			if w.halted.Load() {
				<-w.draining
			}
			return nil, false
		}
		if err == nil {
			if fails > 0 || gone || w.unwell {
				w.unwell = false
				w.troubled(nil)
				w.emit(Event{Kind: KindRecovered})
			}
			if len(ms) > 0 {
				return ms, true
			}
			fails, gone = 0, false
			continue
		}
		err = w.fetchError(err)
		wait := w.env.cfg.Retry.Max
		switch {
		case !errors.Is(err, sources.ErrGone):
			w.trouble(err)
			if fails++; fails >= fetchTries && (keeper == nil || !keeper.Keep()) {
				return nil, false
			}
			wait = w.backoff(min(fails, fetchPatience))
		case !gone:
			gone = true
			w.trouble(err)
		}
		if !w.sleep(wait) {
			return nil, false
		}
	}
}

// fetchOnce is one Fetch, which probes are told of when it brought messages or failed.
func (w *worker) fetchOnce(ctx context.Context, r sources.Reader, most int) ([]*rebalancer.Message, error) {
	if !w.env.probes.on() {
		return r.Fetch(ctx, most)
	}
	began := time.Now()
	ms, err := r.Fetch(ctx, most)
	if len(ms) > 0 && !w.closing.Load() || err != nil && ctx.Err() == nil {
		w.env.probes.fetched(w, began, ms, err)
	}
	return ms, err
}

func (w *worker) fetchError(err error) error {
	return fmt.Errorf("source of resource %q: fetch: %w", w.claim.Resource, err)
}

// mayPrefetch: messages may be fetched ahead of free handlers.
func (w *worker) mayPrefetch() bool {
	p, ok := w.env.cfg.Source.(sources.Prefetcher)
	return !ok || p.Prefetch()
}

// release gives messages back that were not worked.
func release(s *settler, ms []*rebalancer.Message) {
	for _, m := range ms {
		s.add(sources.Settlement{Message: m, Outcome: sources.Release})
	}
}

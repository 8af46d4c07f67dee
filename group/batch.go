package group

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/sources"
)

// batches works batches of messages, one after the other.
func (w *worker) batches(r sources.Reader, s *settler) (again bool) {
	var items []item
	for {
		if !s.room() {
			return false
		}
		ms, ok := w.fetch(r, w.env.cfg.BatchSize)
		if !ok {
			return !w.closing.Load()
		}
		items = items[:0]
		for _, m := range ms {
			items = append(items, item{m: m})
		}
		items = w.fill(r, items)
		for i := range items {
			w.prepare(items[i].m)
		}
		left := w.workBatch(s, items)
		for i := range left {
			s.add(sources.Settlement{Message: left[i].m, Outcome: sources.Release})
		}
		if w.closing.Load() {
			return false
		}
		s.idle()
	}
}

// fill waits for more messages while the batch is incomplete.
func (w *worker) fill(r sources.Reader, items []item) []item {
	if w.env.cfg.BatchWait <= 0 || len(items) >= w.env.cfg.BatchSize {
		return items
	}
	ctx, cancel := context.WithTimeout(w.fetchCtx, w.env.cfg.BatchWait)
	defer cancel()
	for len(items) < w.env.cfg.BatchSize {
		ms, err := w.fetchOnce(ctx, r, w.env.cfg.BatchSize-len(items))
		if err != nil {
			if ctx.Err() == nil { // a source may tell it only once
				w.unwell = true
				w.trouble(w.fetchError(err))
			}
			break
		}
		for _, m := range ms {
			items = append(items, item{m: m})
		}
	}
	return items
}

// workBatch works a batch until all of it is settled, and returns what is to be given back because the resource is.
func (w *worker) workBatch(s *settler, items []item) []item {
	for len(items) > 0 {
		left, wait, stopped := w.attemptBatch(s, items)
		if stopped {
			return left
		}
		if len(left) > 0 && !w.sleep(wait) {
			return left
		}
		items = left
	}
	return nil
}

// attemptBatch runs the handler on a batch once. It returns what is to be tried again after a wait, or, when stopped, given back.
func (w *worker) attemptBatch(s *settler, items []item) (left []item, wait time.Duration, stopped bool) {
	if w.env.slots != nil {
		select {
		case w.env.slots <- struct{}{}:
		case <-w.draining:
			return items, 0, true
		}
	}
	if !w.admit() {
		w.freeSlot()
		return items, 0, true
	}
	ms := make([]*rebalancer.Message, len(items))
	for i := range items {
		ms[i] = items[i].m
	}
	err := w.slottedBatch(ms)
	if w.lost.Load() {
		return items, 0, true
	}
	var part *rebalancer.BatchError
	if err != nil && errors.As(err, &part) {
		err = checkIndexes(part, len(items))
	}
	halted := false
	for i := range items {
		e := err
		if e == nil && part != nil {
			e = part.Failed[i]
			if _, named := part.Failed[i]; named && e == nil {
				e = errUnnamed
			}
		}
		if e == nil {
			s.add(sources.Settlement{Message: items[i].m})
			continue
		}
		v, d := w.failed(s, &items[i], e)
		if v == settled {
			continue
		}
		left = append(left, items[i])
		wait = max(wait, d)
		stopped = stopped || v == unworked
		halted = halted || v == halt
	}
	if halted {
		<-w.draining // it stands still, and holds what it has, until it is given back
		return left, 0, true
	}
	if len(left) == 0 {
		w.troubled(nil)
	}
	return left, wait, stopped
}

func (w *worker) slottedBatch(ms []*rebalancer.Message) error {
	defer w.freeSlot()
	return w.callBatch(ms)
}

var errUnnamed = errors.New("failed without an error")

// checkIndexes refuses a BatchError that names messages that were not in the batch: nobody can tell which it means, so all fail.
func checkIndexes(e *rebalancer.BatchError, n int) error {
	for i := range e.Failed {
		if i < 0 || i >= n {
			return fmt.Errorf("BatchError names index %d in a batch of %d: %w", i, n, e)
		}
	}
	return nil
}

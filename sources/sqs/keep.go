package sqs

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// keep extends the visibility of what is in hand, until Close. It has a goroutine of its own.
func (r *reader) keep() {
	defer close(r.kept)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		at := r.extend()
		wait := time.Hour
		if !at.IsZero() {
			wait = time.Until(at)
		}
		timer.Reset(wait)
		select {
		case <-timer.C:
		case <-r.kick:
		case <-r.stop:
			return
		}
	}
}

// keepBy sees to it that the keeper looks no later than at a moment.
func (r *reader) keepBy(at time.Time) {
	if r.wakeAt.IsZero() || at.Before(r.wakeAt) {
		r.wakeAt = at
		signal(r.kick)
	}
}

// extend starts the extensions that are due, or nearly, gives up the lanes whose time is over, and says when to look again.
func (r *reader) extend() time.Time {
	cfg := &r.s.cfg
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return time.Time{}
	}
	soon := time.Now().Add(cfg.Visibility / 12)
	r.wakeAt = time.Time{}
	earliest := func(t time.Time) {
		if r.wakeAt.IsZero() || t.Before(r.wakeAt) {
			r.wakeAt = t
		}
	}
	var batch []*lane
	size := 0
	for _, la := range r.lanes {
		end, some := la.end()
		if la.lost || !some {
			continue
		}
		end = end.Add(-cfg.margin())
		if past(end) {
			r.lose(la, la.why())
			continue
		}
		earliest(end)
		if la.calling != nil {
			continue
		}
		if la.due.After(soon) {
			earliest(la.due)
			continue
		}
		n := la.extendable()
		if size+n > batchSize && size > 0 {
			r.startExtension(batch)
			batch, size = nil, 0
		}
		batch, size = append(batch, la), size+n
	}
	if size > 0 {
		r.startExtension(batch)
	}
	return r.wakeAt
}

// why is what a lane is lost for whose time is over.
func (la *lane) why() error {
	for _, e := range la.entries {
		if e.kept() && time.Since(e.since) > mostHeld-time.Hour {
			return fmt.Errorf("message %q: %w", e.id, errMostHeld)
		}
	}
	return errUnheard
}

// startExtension extends lanes in one call, or as many as it takes.
func (r *reader) startExtension(lanes []*lane) {
	calling := make(chan struct{})
	changes := make([]change, 0, batchSize)
	for _, la := range lanes {
		la.calling = calling
		for _, e := range la.entries {
			visibility := r.s.cfg.Visibility
			if left := mostHeld - time.Since(e.since); left < visibility {
				visibility = left.Truncate(time.Second)
			}
			if e.kept() && visibility >= time.Second {
				changes = append(changes, change{entry: e, receipt: e.receipt, visibility: visibility})
			}
		}
	}
	go r.extension(lanes, changes, calling)
}

// extension is one call and what comes of it.
func (r *reader) extension(lanes []*lane, changes []change, calling chan struct{}) {
	ctx, cancel := context.WithTimeout(r.s.ctx, r.s.cfg.Visibility/3)
	sent := time.Now()
	errs := r.changeVisibility(ctx, changes)
	cancel()

	r.mu.Lock()
	defer r.mu.Unlock()
	close(calling)
	for _, la := range lanes {
		la.calling = nil
		if !la.lost {
			r.extended(la, changes, errs, sent)
		}
	}
	signal(r.kick)
}

// extended notes the answer for one lane: what was refused is lost, and with it, in a FIFO queue, those behind it.
func (r *reader) extended(la *lane, changes []change, errs []error, sent time.Time) {
	cfg := &r.s.cfg
	var trouble error
	asked := 0
	for i, c := range changes {
		if c.entry.lane != la {
			continue
		}
		same := c.entry.receipt == c.receipt // else it came a second time, and what became of the old receipt does not matter
		if same && errs[i] == nil {
			c.entry.until = sent.Add(c.visibility)
		}
		if c.entry.leaving {
			continue
		}
		asked++
		var no *refusal
		switch {
		case !same || errs[i] == nil:
		case errors.As(errs[i], &no) || gone(errs[i]):
			r.lose(la, fmt.Errorf("message %q: extension refused: %w", c.entry.id, errs[i]))
			return
		default:
			trouble = errs[i]
		}
	}
	la.due = sent.Add(cfg.Visibility / 3)
	if trouble != nil {
		la.due = time.Now().Add(cfg.Visibility / 6) // twice as long as extend takes for soon
		r.report(aboutExtension, fmt.Errorf("the visibility of messages in hand could not be extended: %w", trouble))
	}
	if end, some := la.end(); some && asked == 0 { // nothing may be extended any more
		la.due = end
	}
}

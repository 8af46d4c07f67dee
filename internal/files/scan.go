package files

import (
	"cmp"
	"context"
	"slices"
	"time"
)

const (
	// statsPerPoll bounds the observations between two looks at the context.
	statsPerPoll = 2048
	// lookahead is how many files are observed before they are asked for, so that their stability is known by then.
	lookahead = 4 * statsPerPoll
	// listShare bounds the part of the time that is spent on listings: a listing is not repeated before listShare times
	// as long as it took.
	listShare = 20
	// slowest is the longest pause after errors of one file.
	slowest = time.Minute
	// rememberFor is how long a file that is not there any more is remembered, if there is anything to remember.
	rememberFor = time.Hour
	// partialFor is how long a set may lack files before that is reported.
	partialFor = 10 * time.Minute
	// mostAbsent bounds how many such files are.
	mostAbsent = 10_000
)

// poll looks once: a listing if one is due, then at the files in order. It returns what can be delivered, or when to
// look again. What it picked stays in items until it is delivered.
func (r *Reader) poll(ctx context.Context, max int) ([]*file, time.Time, error) {
	r.takeReturned()
	if !time.Now().Before(r.nextList) {
		if err := r.list(ctx); err != nil {
			return nil, time.Time{}, err
		}
	}
	if r.opt.ByTime && !r.observeAll(ctx) {
		return nil, time.Now(), ctx.Err()
	}
	picks, next := r.walk(ctx, max)
	if len(picks) > 0 {
		r.idle = r.opt.Interval
	}
	return picks, next, ctx.Err()
}

// takeReturned puts what Settle gave back into its place in the order.
func (r *Reader) takeReturned() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, f := range r.returned {
		i, _ := slices.BinarySearchFunc(r.items, f, r.order)
		r.items = slices.Insert(r.items, i, f)
		delete(r.owned, f.name)
	}
	r.returned = r.returned[:0]
}

// order is the order of deliveries: by the bytes of the names, or by time first.
func (r *Reader) order(a, b *file) int {
	if r.opt.ByTime {
		if c := a.info.ModTime.Compare(b.info.ModTime); c != 0 {
			return c
		}
	}
	return cmp.Compare(a.name, b.name)
}

// observeAll makes sure that every file's time is known before the first is delivered; false: it is not done yet.
func (r *Reader) observeAll(ctx context.Context) bool {
	budget, changed := statsPerPoll, false
	for _, f := range r.items {
		if f.observed || f.failures > 0 {
			continue
		}
		if budget == 0 || ctx.Err() != nil {
			return false
		}
		budget--
		changed = true
		r.observe(ctx, f)
	}
	if changed {
		slices.SortFunc(r.items, r.order)
	}
	return true
}

// walk goes through the files in order, picks at most max that are due and unchanged, and observes ahead.
func (r *Reader) walk(ctx context.Context, max int) ([]*file, time.Time) {
	var picks, vanished []*file
	next := r.nextList
	budget, ahead, blocked := statsPerPoll, 0, false
	began := time.Now() // what becomes due meanwhile waits for the next walk, or it would overtake what was not due yet
	now := began
	for _, f := range r.items {
		if ahead >= lookahead || ctx.Err() != nil {
			break
		}
		due := f.dueAt()
		wanted := len(picks) < max && !blocked
		if due.After(began) || f.observed && !wanted { // nothing to do about this one now
			if wanted && due.Before(next) {
				next = due
			}
			blocked = blocked || r.opt.Strict
			if !due.After(now.Add(r.opt.StableFor)) {
				ahead++
			}
			continue
		}
		if budget == 0 {
			next = now // there is more to look at, at once
			break
		}
		budget--
		v := r.waitsForContent(f, r.unworked(f, r.look(ctx, f)))
		now = time.Now()
		switch {
		case v == missing:
			vanished = append(vanished, f)
			continue
		case v == ready && wanted:
			picks = append(picks, f)
			continue
		case v == aside:
			continue
		}
		blocked = blocked || r.opt.Strict
		ahead++
		if due = f.dueAt(); due.Before(next) && len(picks) < max {
			next = due
		}
	}
	if ctx.Err() == nil {
		r.items = without(r.items, vanished)
		for _, f := range vanished {
			r.noteUnclaimed(f)
			r.remember(f)
		}
	}
	return picks, next
}

// dueAt is when to look at the file again.
func (f *file) dueAt() time.Time {
	if f.observed && f.stable.After(f.due) {
		return f.stable
	}
	return f.due
}

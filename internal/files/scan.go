package files

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
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

// list reads the place and makes items of it: files that are known keep what is known of them, others are forgotten.
func (r *Reader) list(ctx context.Context) error {
	start := time.Now()
	l := listing{opt: &r.opt}
	if err := r.place.List(ctx, l.add); err != nil {
		return err
	}
	entries := l.candidates()
	known := make(map[string]*file, len(r.items))
	for _, f := range r.items {
		known[f.name] = f
	}
	items, news := make([]*file, 0, len(entries)), 0
	r.mu.Lock()
	for _, e := range entries {
		if r.owned[e.Name] != nil {
			continue
		}
		f := known[e.Name]
		if f == nil {
			f = &file{name: e.Name, attempt: 1}
			news++
		}
		f.fresh = false
		if e.Info != nil {
			r.listed(f, *e.Info)
		}
		items = append(items, f)
	}
	r.mu.Unlock()
	slices.SortFunc(items, r.order)
	r.items = items
	now := time.Now()
	if news > 0 {
		r.idle = r.opt.Interval
	}
	r.nextList = now.Add(max(r.idle, listShare*now.Sub(start)))
	r.idle = min(r.idle*3/2, r.opt.IdleInterval)
	return nil
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
	now := time.Now()
	for _, f := range r.items {
		if ahead >= lookahead || ctx.Err() != nil {
			break
		}
		due := f.dueAt()
		wanted := len(picks) < max && !blocked
		if due.After(now) || f.observed && !wanted { // nothing to do about this one now
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
		v := r.look(ctx, f)
		now = time.Now()
		switch {
		case v == missing:
			vanished = append(vanished, f)
			continue
		case v == ready && wanted:
			picks = append(picks, f)
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

type verdict int

const (
	notYet verdict = iota
	ready
	missing
)

// listed notes what a listing says of a file. Where nothing need be stable that is enough, until it is delivered.
func (r *Reader) listed(f *file, info Info) {
	if f.observed && !f.info.Same(info) {
		f.attempt = 1 // another file under the old name
	}
	r.observation(f, info)
	f.fresh = r.opt.StableFor == 0
}

// look observes a file. It is ready when this observation equals the first, and that is old enough.
func (r *Reader) look(ctx context.Context, f *file) verdict {
	if f.fresh && !f.dueAt().After(time.Now()) {
		f.fresh = false
		return ready
	}
	before, had := f.info, f.observed
	if v := r.observe(ctx, f); v != notYet {
		return v
	}
	if !f.observed {
		return notYet
	}
	if had && !before.Same(f.info) {
		f.attempt = 1 // another file under the old name
	}
	if !f.dueAt().After(time.Now()) { // a new or changed observation has put that off
		return ready
	}
	return notYet
}

// observe looks at a file once; a file that cannot be looked at is left alone for a while.
func (r *Reader) observe(ctx context.Context, f *file) verdict {
	info, err := r.place.Stat(ctx, f.name)
	switch {
	case err == nil:
		f.failures = 0
		r.observation(f, info)
		return notYet
	case errors.Is(err, fs.ErrNotExist):
		return missing
	case ctx.Err() != nil:
		return notYet
	}
	if f.failures == 0 {
		r.opt.Logger.Warn("file cannot be looked at; tried again later", "resource", r.resource, "file", f.name, "error", err)
	}
	f.due = time.Now().Add(min(r.opt.Interval<<min(f.failures, 10), slowest))
	f.failures++
	f.observed = false
	return notYet
}

// observation notes what a file is; one that differs from the last starts its stability again.
func (r *Reader) observation(f *file, info Info) {
	now := time.Now()
	if f.observed && f.info.Same(info) {
		return
	}
	f.info, f.observed, f.stable = info, true, now.Add(r.opt.StableFor)
	if age := r.opt.MinAge; age > 0 {
		born := info.ModTime
		if born.After(now) { // a clock that is ahead must not hold the file up
			born = now
		}
		if old := born.Add(age); old.After(f.stable) {
			f.stable = old
		}
	}
}

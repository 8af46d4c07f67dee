package seen

import (
	"context"
	"time"
)

const (
	prunedAfter = 3              // complete plausible listings without a name
	prunedAge   = 24 * time.Hour // since the first of them
	tidyEvery   = 15 * time.Minute
	probes      = 8
)

// Listing is one listing of the resource while it is read. One goroutine uses it, and at most one is in use.
type Listing struct {
	s      *State
	number uint32
	total  int
}

// Begin starts a listing. One that is not ended with Complete proves of no name that it is missing.
func (s *State) Begin() *Listing {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listing++
	return &Listing{s: s, number: s.listing}
}

// Saw tells that the listing has a name, of whatever file. It returns what is known of it, and whether it was missing in an
// earlier listing: then its file is likely another one.
func (l *Listing) Saw(name string) (r Record, known, back bool) {
	s := l.s
	s.mu.Lock()
	defer s.mu.Unlock()
	l.total++
	e := s.find(name)
	if e == nil {
		return Record{}, false, false
	}
	if back = e.gone != 0; back && (e.saved != 0 || e.missed >= prunedAfter) {
		s.returned[name] = true // the store has it as missing, or is about to forget it
	}
	e.seen, e.gone, e.missed = l.number, 0, 0
	return e.Record, true, back
}

// Complete ends a listing that was read to its end. What is known and was not in it is missing, if the listing is plausible: not
// empty, and not much smaller than what was there before (by 3 in 10), or each of some of the missing names is absent when it is
// looked for by itself. Any other listing proves nothing. absent looks for one name.
func (l *Listing) Complete(ctx context.Context, absent func(ctx context.Context, name string) (bool, error)) error {
	s := l.s
	if l.total == 0 {
		return nil
	}
	for _, name := range l.doubtful() {
		gone, err := absent(ctx, name)
		if err == nil && gone {
			continue
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		s.opt.Logger.Warn("a listing has far fewer files than before, and one that it lacks is not proved to be gone; nothing is concluded from it",
			"resource", s.opt.Resource, "files", l.total, "missing", name, "error", err)
		return nil
	}
	l.mark(time.Now())
	return nil
}

// doubtful are names to look for before the listing is believed; none when it is plausible as it is.
func (l *Listing) doubtful() []string {
	s := l.s
	s.mu.Lock()
	defer s.mu.Unlock()
	expected, missing := 0, 0
	s.each(func(e *entry) {
		if e.gone == 0 {
			expected++
			if e.seen != l.number {
				missing++
			}
		}
	})
	if missing == 0 || missing*10 <= expected*3 && l.total*10 >= s.names*7 {
		return nil
	}
	var names []string
	step, n := (missing+probes-1)/probes, 0
	s.each(func(e *entry) {
		if e.gone == 0 && e.seen != l.number {
			if n%step == 0 {
				names = append(names, e.name)
			}
			n++
		}
	})
	return names
}

// mark notes what the listing proves.
func (l *Listing) mark(now time.Time) {
	s := l.s
	s.mu.Lock()
	defer s.mu.Unlock()
	s.names = l.total
	s.stale, s.forget = 0, 0
	s.each(func(e *entry) {
		if e.seen != l.number {
			if e.gone == 0 {
				e.gone = uint32(now.Unix())
				delete(s.returned, e.name)
			}
			e.missed = min(e.missed+1, prunedAfter)
		}
		if e.gone != e.saved {
			s.stale++
		}
		if e.prunable(now) {
			s.forget++
		}
	})
}

// prunable tells whether a name can be forgotten.
func (e *entry) prunable(now time.Time) bool {
	return e.gone != 0 && e.missed >= prunedAfter && now.Sub(time.Unix(int64(e.gone), 0)) >= prunedAge
}

// Tidy writes what listings proved: at once that a name is back which the store has as missing, all else once in 15 minutes.
// It does nothing while a Settle writes. Call it after each listing.
func (s *State) Tidy(ctx context.Context) error {
	select {
	case s.writing <- struct{}{}:
		defer s.unlock()
	default:
		return nil
	}
	now := time.Now()
	s.mu.Lock()
	back := len(s.returned) > 0
	off := s.names - s.listedOld
	due := now.Sub(s.lastTidy) >= tidyEvery && (s.stale > 0 || s.forget > 0 || max(off, -off)*10 > s.listedOld)
	s.mu.Unlock()
	switch {
	case due:
		return s.write(ctx, func() error { return s.tidy(ctx, now) })
	case back:
		return s.write(ctx, func() error { return s.settle(ctx, nil) })
	}
	return nil
}

func (s *State) tidy(ctx context.Context, now time.Time) error {
	puts, _ := s.merged(nil)
	before := s.Len()
	err := s.rewrite(ctx, now, puts, func(e *entry) bool { return e.prunable(now) }, func(l *leaf) bool {
		for i := range l.entries {
			if e := &l.entries[i]; e.gone != e.saved || e.prunable(now) {
				return true
			}
		}
		return false
	})
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.lastTidy, s.stale, s.forget = now, 0, 0
	forgot := before - s.count
	s.mu.Unlock()
	if forgot > 0 {
		s.opt.Logger.Info("worked files that are gone since a day are forgotten", "resource", s.opt.Resource, "files", forgot)
	}
	return nil
}

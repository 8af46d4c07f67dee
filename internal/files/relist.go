package files

import (
	"context"
	"slices"
	"time"
)

// list reads the place and makes items of it: files that are known keep what is known of them, others are forgotten.
func (r *Reader) list(ctx context.Context) error {
	if err := r.beginKept(ctx); err != nil {
		return err
	}
	start := time.Now()
	r.noteSettled(true)
	defer r.noteSettled(false)
	l := listing{opt: &r.opt, keep: r.keep}
	if err := r.place.List(ctx, l.add); err != nil {
		return err
	}
	if err := r.completeKept(ctx); err != nil {
		return err
	}
	entries, err := r.offered(ctx, &l)
	if err != nil {
		return err
	}
	r.tell(l.unsound)
	r.tellPartial(l.partial)
	items, news := r.itemsOf(entries, l.claimed)
	slices.SortFunc(items, r.order)
	r.items = items
	now := time.Now()
	if news > 0 || r.trigger != nil {
		r.idle = r.opt.Interval
	}
	took := now.Sub(start)
	gap := max(r.idle, listShare*min(took, r.took)) // one that took long, but for others' failures, must not make the next wait
	r.took = took
	r.nextList = now.Add(gap)
	r.keep.pause(gap)
	r.idle = min(r.idle*3/2, r.opt.IdleInterval)
	return nil
}

func (r *Reader) offered(ctx context.Context, l *listing) ([]candidate, error) {
	if r.opt.Trigger == "" {
		return l.candidates(), nil
	}
	return r.released(ctx, l)
}

// noteSettled makes Settle note what leaves during a listing, which may have it still.
func (r *Reader) noteSettled(on bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.left = nil
	if on {
		r.left = map[string]bool{}
	}
}

// itemsOf makes items of what a listing offers, and counts the new ones.
func (r *Reader) itemsOf(entries []candidate, claimed map[string]string) (items []*file, news int) {
	known := make(map[string]*file, len(r.items))
	for _, f := range r.items {
		known[f.name] = f
	}
	items = make([]*file, 0, len(entries))
	r.listing = time.Now() // one moment for all: else the last ones listed would be stable, and delivered, out of their order
	defer func() { r.listing = time.Time{} }()
	r.mu.Lock()
	for _, e := range entries {
		if r.owned[e.Name] != nil || r.left[e.Name] {
			continue
		}
		f := known[e.Name]
		delete(known, e.Name)
		if f == nil {
			if f = r.absent[e.Name]; f == nil {
				f = &file{part: part{name: e.Name}, attempt: 1}
			}
			delete(r.absent, e.Name)
			if !r.keep.knows(e.Name) {
				news++
			}
		}
		r.refresh(f, e, claimed)
		if r.opt.Claim {
			r.noteListed(f)
		}
		items = append(items, f)
	}
	for _, f := range known {
		delete(r.claimed, f)
	}
	r.mu.Unlock()
	for _, f := range known {
		r.remember(f)
	}
	return items, news
}

// refresh notes what a listing says of a file.
func (r *Reader) refresh(f *file, e candidate, claimed map[string]string) {
	if f.more == nil && len(e.more) > 0 {
		f.more = make([]part, len(e.more))
		for i, m := range e.more {
			f.more[i].name = m.Name
		}
	}
	for p := range f.parts() {
		p.as = claimed[p.name]
	}
	f.fresh = false
	if e.Info != nil && len(f.more) == 0 && len(r.opt.companions) == 0 { // it says nothing of the others
		r.listed(f, *e.Info)
	}
}

// remember keeps what is known of a file that is not there any more: a listing may lack what is there, as when a share
// comes and goes, and a file that failed would then begin anew. A file of which nothing is known is forgotten.
func (r *Reader) remember(f *file) {
	now := time.Now()
	for name, old := range r.absent {
		if len(r.absent) < mostAbsent && now.Sub(old.absent) < rememberFor {
			break // a few each time
		}
		delete(r.absent, name)
	}
	if f.attempt > 1 || f.failures+f.refused > 0 || f.due.After(now) {
		f.absent = now
		r.absent[f.name] = f
	}
}

// tell reports names that nothing can be done with, each once.
func (r *Reader) tell(names []string) {
	for _, name := range names {
		if r.told[name] || len(r.told) >= 10*mostUnsound {
			continue
		}
		r.told[name] = true
		r.opt.Logger.Warn("name cannot be that of a file in a folder; it is left alone", "resource", r.resource, "name", name)
	}
}

// tellPartial reports sets that lack files for long, each once: a crash within a settlement leaves the file that leads, which would
// be delivered with the others of the next set of the name.
func (r *Reader) tellPartial(names []string) {
	now, still := time.Now(), make(map[string]time.Time, len(names))
	for _, name := range names {
		since, known := r.partial[name]
		if !known {
			since = now
		}
		if !since.IsZero() && now.Sub(since) >= partialFor {
			since = time.Time{} // reported
			r.opt.Logger.Warn("set lacks files; when it is what a crash has left, take it away before the next set of the name comes",
				"resource", r.resource, "file", name)
		}
		still[name] = since
	}
	r.partial = still
}

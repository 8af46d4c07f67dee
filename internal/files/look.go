package files

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"github.com/rebalancer-go/rebalancer/sources/pickup"
)

type verdict int

const (
	notYet verdict = iota
	ready
	aside // as good as not there: not to be delivered, and nothing waits for it
	missing
)

// listed notes what a listing says of a file. Where nothing need be stable that is enough, until it is delivered.
func (r *Reader) listed(f *file, info Info) {
	if f.observed && !f.info.Same(info) {
		f.attempt = 1 // another file under the old name
	}
	r.observation(f, []Info{info})
	f.fresh = r.opt.StableFor == 0
}

// look observes a file. It is ready when this observation equals the first, and that is old enough.
func (r *Reader) look(ctx context.Context, f *file) verdict {
	if f.fresh && !f.dueAt().After(time.Now()) {
		f.fresh = false
		return ready
	}
	had := f.observed
	changed, v := r.observe(ctx, f)
	if v != notYet {
		return v
	}
	if !f.observed {
		return notYet
	}
	if had && changed {
		f.attempt = 1 // another file under the old name
	}
	if (!had || changed) && r.opt.StableFor > 0 { // there is nothing to hold it against, however long ago it seems by now
		return notYet
	}
	if f.dueAt().After(time.Now()) { // a new or changed observation has put that off
		return notYet
	}
	if !f.released() {
		f.due = time.Now().Add(r.opt.IdleInterval)
		if !f.unreleased {
			f.unreleased = true
			r.opt.Logger.Warn("done-file is older than its file and does not count; waiting for another one", "resource", r.resource, "file", f.name)
		}
		return aside
	}
	return ready
}

// observe looks at the files of a message once; one that cannot be looked at is left alone for a while.
func (r *Reader) observe(ctx context.Context, f *file) (changed bool, v verdict) {
	infos, err := r.stat(ctx, f)
	switch {
	case err == nil:
		f.failures = 0
		return r.observation(f, infos), notYet
	case errors.Is(err, fs.ErrNotExist):
		return false, missing
	case ctx.Err() != nil:
		return false, notYet
	}
	r.trouble(f, &f.failures, "file cannot be looked at; tried again later", err)
	f.observed = false
	return false, notYet
}

func (r *Reader) stat(ctx context.Context, f *file) ([]Info, error) {
	infos := r.infos[:0]
	defer r.keep.looked(time.Now())
	if f.beside == nil {
		f.beside = r.opt.besides(f)
	}
	for p := range f.all() {
		info, err := r.place.Stat(ctx, p.at())
		if err != nil {
			return nil, err
		}
		infos = append(infos, info)
	}
	r.infos = infos
	return infos, nil
}

// trouble leaves a file alone for a while, longer each time, and says so the first time.
func (r *Reader) trouble(f *file, times *int, what string, err error) {
	if *times == 0 {
		r.opt.Logger.Warn(what, "resource", r.resource, "file", f.name, "error", err)
	}
	f.due = time.Now().Add(min(r.opt.Interval<<min(*times, 10), slowest))
	*times++
}

// observation notes what the files of a message are; one that differs from the last starts its stability again.
func (r *Reader) observation(f *file, infos []Info) (changed bool) {
	now := time.Now()
	if !r.listing.IsZero() {
		now = r.listing
	}
	if f.observed && f.same(infos) {
		return false
	}
	i, born := 0, time.Time{}
	for p := range f.all() {
		p.info = infos[i]
		i++
	}
	for p := range f.parts() {
		if born.Before(p.info.ModTime) {
			born = p.info.ModTime
		}
	}
	f.observed, f.stable = true, now.Add(r.opt.StableFor)
	if age := r.opt.MinAge; age > 0 {
		if born.After(now) { // a clock that is ahead must not hold the file up
			born = now
		}
		if old := born.Add(age); old.After(f.stable) {
			f.stable = old
		}
	}
	return true
}

// waitsForContent keeps a file without content back under EmptyWait. It is looked at again as often as an idle place is
// listed.
func (r *Reader) waitsForContent(f *file, v verdict) verdict {
	if v != ready || r.opt.Empty != pickup.EmptyWait || !f.empty() {
		return v
	}
	f.due = time.Now().Add(r.opt.IdleInterval)
	return notYet
}

// rejectEmpty gives up files without content under EmptyReject, and returns the others.
func (r *Reader) rejectEmpty(ctx context.Context, picks []*file) []*file {
	if r.opt.Empty != pickup.EmptyReject {
		return picks
	}
	var full, gone []*file
	for _, f := range picks {
		if !f.empty() {
			full = append(full, f)
			continue
		}
		done := r.act()
		if done == nil {
			break
		}
		err := r.reject(ctx, f, f.attempt, pickup.ErrEmpty)
		done()
		if err != nil {
			r.trouble(f, &f.refused, "file without content cannot be given up; tried again later", err)
			continue
		}
		gone = append(gone, f)
		r.noteUnclaimed(f)
	}
	r.items = without(r.items, gone)
	return full
}

package ftp

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io/fs"
	"path"
	"strings"
	"sync"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/internal/files"
	"github.com/rebalancer-go/rebalancer/sources"
)

// place is a resource as a files.Place.
type place struct {
	source   *Source
	resource string

	mu    sync.Mutex
	made  map[string]bool // folders that are known to exist
	bogus int             // lines of the last listing that could not be used
}

// dir is the absolute path of the resource.
func (p *place) dir(r remote) string { return p.source.at(r, p.resource) }

// always is for what may be done twice.
func always() bool { return true }

// List passes the files of the directory. When the connection breaks it is listed once more, and what was passed before is
// not passed again.
func (p *place) List(ctx context.Context, each func([]files.Entry) error) error {
	l := lister{each: each, seed: maphash.MakeSeed(), seen: map[uint64]struct{}{}}
	err := p.source.pool.do(ctx, func() bool { return l.err == nil }, func(r remote) error {
		l.bogus, l.example = 0, ""
		return r.list(ctx, p.dir(r), l.page)
	})
	if err == nil {
		p.report(&l)
	}
	return err
}

// lister turns the entries of a directory into those of files. A name that comes twice, because the listing began again or a
// line of it is not what it seems, is one file.
type lister struct {
	each    func([]files.Entry) error
	seed    maphash.Seed
	seen    map[uint64]struct{} // 8 bytes a name: two names with one hash among a million are too rare to matter
	out     []files.Entry
	err     error // of each
	bogus   int
	example string
}

func (l *lister) page(page []entry) error {
	l.out = l.out[:0]
	for _, e := range page {
		switch {
		case e.kind == bogus || e.kind == regular && !usable(e.name):
			l.bogus++
			l.example = e.name
			continue
		case e.kind != regular:
			continue
		}
		h := maphash.String(l.seed, e.name)
		if _, ok := l.seen[h]; ok {
			continue
		}
		l.seen[h] = struct{}{}
		l.out = append(l.out, files.Entry{Name: e.name, Info: e.info})
	}
	if len(l.out) == 0 {
		return nil
	}
	l.err = l.each(l.out)
	return l.err
}

// usable reports whether a name from a server is one of a file in the directory and of nothing else.
func usable(name string) bool {
	return name != "" && name != "." && name != ".." && !strings.ContainsAny(name, "/\x00")
}

// report tells of lines that could not be used, once for as long as there are as many.
func (p *place) report(l *lister) {
	p.mu.Lock()
	changed := p.bogus != l.bogus
	p.bogus = l.bogus
	p.mu.Unlock()
	if changed && l.bogus > 0 {
		p.source.logger.Warn("the listing has lines without a usable name, such as names with a line end: they are no messages",
			"resource", p.resource, "lines", l.bogus, "example", files.Cut(l.example, 200))
	}
}

// Stat observes a file.
func (p *place) Stat(ctx context.Context, name string) (info files.Info, err error) {
	err = p.source.pool.do(ctx, always, func(r remote) error {
		info, err = statFile(ctx, r, path.Join(p.dir(r), name))
		return err
	})
	return info, err
}

// statFile observes a file; what is none does not exist.
func statFile(ctx context.Context, r remote, name string) (files.Info, error) {
	e, err := r.stat(ctx, name)
	switch {
	case err != nil:
		return files.Info{}, err
	case e.kind != regular || e.info == nil:
		return files.Info{}, &answer{what: fmt.Sprintf("look at %q", name), text: "it is not a file", err: fs.ErrNotExist}
	}
	return *e.info, nil
}

// errChanged is an answer: the connection is as good as before.
func errChanged(name string) error {
	return &answer{what: fmt.Sprintf("look at %q", name), text: "another size, time or identity", err: rebalancer.ErrChanged}
}

// is checks that a path has the file that is wanted.
func is(ctx context.Context, r remote, name string, want files.Info) error {
	got, err := statFile(ctx, r, name)
	if err == nil && !got.Same(want) {
		err = errChanged(name)
	}
	return err
}

// Remove deletes a file that is the one wanted.
func (p *place) Remove(ctx context.Context, name string, want files.Info) error {
	asked := false // a deletion whose outcome is not known
	return p.source.pool.do(ctx, always, func(r remote) error {
		file := path.Join(p.dir(r), name)
		if err := is(ctx, r, file, want); err != nil {
			if asked && errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			return err
		}
		p.source.pause()
		asked = true
		return r.remove(ctx, file)
	})
}

// Close ends the use of the place; connections belong to the source.
func (p *place) Close() error {
	p.source.readers.Forget(p)
	return nil
}

// missing says ErrGone of a resource that does not exist.
func missing(err error) error {
	if errors.Is(err, fs.ErrNotExist) && !errors.Is(err, sources.ErrGone) {
		return fmt.Errorf("%w: %w", sources.ErrGone, err)
	}
	return err
}

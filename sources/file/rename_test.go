//go:build linux

package file

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/internal/files"
	"github.com/rebalancer-go/rebalancer/internal/readertest"
	"github.com/rebalancer-go/rebalancer/sources"
	"github.com/rebalancer-go/rebalancer/sources/pickup"
)

// without takes ways away, as file systems lack them: a network file system has links only, some have nothing.
func (w ways) without(links bool) ways {
	no := func(*handle, string, *handle, string) error { return syscall.EINVAL }
	w.fresh = no
	if links {
		w.link = no
	}
	return w
}

// kinds are file systems with less and less.
var kinds = map[string]func() ways{
	"all":      kernel,
	"links":    func() ways { return kernel().without(false) },
	"no links": func() ways { return kernel().without(true) },
}

// openDir opens a directory for the test.
func openDir(t *testing.T, p string) *handle {
	t.Helper()
	s := newSource(t, quick(filepath.Dir(p)))
	h, err := s.openDir(filepath.Base(p))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.close)
	return h
}

func TestWaysToRename(t *testing.T) {
	t.Parallel()
	for what, kind := range kinds {
		w := kind()
		from, to := t.TempDir(), t.TempDir()
		src, dst := openDir(t, from), openDir(t, to)
		write(t, filepath.Join(from, "a"), "new")
		write(t, filepath.Join(to, "a"), "old")
		if err := w.place(src, "a", dst, "a"); !errors.Is(err, fs.ErrExist) {
			t.Errorf("%s: onto another file: %v", what, err)
		}
		want(t, from, "new")
		want(t, to, "old")
		if err := w.place(src, "a", dst, "b"); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		want(t, from)
		want(t, to, "old", "new")
		if err := w.place(src, "a", dst, "c"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: of nothing: %v", what, err)
		}
		want(t, to, "old", "new")
	}
}

// TestWeakFileSystemIsTold: that a crash may leave an empty file is told, once, and only where it is so.
func TestWeakFileSystemIsTold(t *testing.T) {
	t.Parallel()
	for _, links := range []bool{true, false} {
		var l logs
		root := t.TempDir()
		cfg := quick(root)
		cfg.Logger = l.logger()
		s := newSource(t, cfg)
		w := s.ways.without(!links)
		dir := openDir(t, root)
		for _, name := range []string{"a", "b"} {
			write(t, filepath.Join(root, name), "new")
			if err := w.place(dir, name, dir, name+"2"); err != nil {
				t.Fatal(err)
			}
		}
		if n := strings.Count(l.String(), "empty file"); n != 1 && !links || n > 0 && links {
			t.Errorf("links: %v: told %d times: %s", links, n, l.String())
		}
	}
}

// fault is what a step answers: it is carried out or not, whatever it says.
type fault struct {
	carriedOut bool
	err        error
}

func (f fault) rename(real func(*handle, string, *handle, string) error) func(*handle, string, *handle, string) error {
	return func(from *handle, name string, to *handle, as string) error {
		if f.carriedOut {
			_ = real(from, name, to, as)
		}
		return f.err
	}
}

func (f fault) unlink(real func(*handle, string) error) func(*handle, string) error {
	return func(h *handle, name string) error {
		if f.carriedOut {
			_ = real(h, name)
		}
		return f.err
	}
}

// TestRenameFailsInItsSecondStep: whatever a step answers and whether it was carried out, the file is there afterwards,
// and under one name where that can be known.
func TestRenameFailsInItsSecondStep(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		ways        func(w *ways)
		fails       bool
		left, moved int
	}{
		"at once, carried out": {func(w *ways) { w.fresh = fault{true, syscall.EIO}.rename(w.fresh) }, false, 0, 1},
		"at once, not":         {func(w *ways) { w.fresh = fault{false, syscall.EIO}.rename(w.fresh) }, true, 1, 0},
		"link, answered again": {func(w *ways) {
			*w = w.without(false)
			w.link = fault{true, syscall.EEXIST}.rename(w.link)
		}, false, 0, 1},
		"unlink, carried out": {func(w *ways) {
			*w = w.without(false)
			w.unlink = fault{true, syscall.EIO}.unlink(w.unlink)
		}, false, 0, 1},
		"unlink, nobody knows": {func(w *ways) {
			*w = w.without(false)
			w.unlink = fault{false, syscall.EIO}.unlink(w.unlink)
		}, true, 1, 1},
		"unlink, refused": {func(w *ways) {
			*w = w.without(false)
			real, n := w.unlink, 0
			w.unlink = func(h *handle, name string) error {
				if n++; n == 1 {
					return syscall.EACCES
				}
				return real(h, name)
			}
		}, true, 1, 0},
		"over an empty file, carried out": {func(w *ways) {
			*w = w.without(true)
			w.over = fault{true, syscall.EIO}.rename(w.over)
		}, false, 0, 1},
		"over an empty file, not": {func(w *ways) {
			*w = w.without(true)
			w.over = fault{false, syscall.EIO}.rename(w.over)
		}, true, 1, 0},
	} {
		from, to := t.TempDir(), t.TempDir()
		write(t, filepath.Join(from, "own"), "body")
		w := kernel()
		c.ways(&w)
		if err := w.place(openDir(t, from), "own", openDir(t, to), "a"); (err != nil) != c.fails {
			t.Errorf("%s: %v", what, err)
		}
		for dir, n := range map[string]int{from: c.left, to: c.moved} {
			if got := plain(t, dir); len(got) != n {
				t.Errorf("%s: %q has %q, want %d", what, dir, got, n)
			}
			for _, p := range plain(t, dir) {
				if b, err := os.ReadFile(p); string(b) != "body" {
					t.Errorf("%s: %q holds %q, %v", what, p, b, err)
				}
			}
		}
	}
}

// TestReplacedWithinASettlement: a writer who replaces a file at any moment of its settlement loses nothing, on no kind of
// file system.
func TestReplacedWithinASettlement(t *testing.T) {
	t.Parallel()
	for what, kind := range kinds {
		for _, success := range []pickup.Action{pickup.Delete(), pickup.MoveTo("done")} {
			for at := range 6 {
				top := root(t)
				in := filepath.Join(top, "in")
				cfg := quick(top)
				cfg.OnSuccess = success
				s := newSource(t, cfg)
				write(t, filepath.Join(in, "a"), "old")
				r := open(t, s)
				m := readertest.Fetch(t, r, 1)
				steps := 0
				step := func() {
					if steps++; steps == at+1 {
						write(t, filepath.Join(in, ".new"), "new")
						if err := os.Rename(filepath.Join(in, ".new"), filepath.Join(in, "a")); err != nil {
							t.Error(err)
						}
					}
				}
				s.ways = watched(kind(), step)
				readertest.Settle(t, r, sources.Done, m...)
				s.ways = kernel()
				if steps <= at {
					continue // it had no more steps
				}
				ms := readertest.Fetch(t, r, 1)
				if got, err := readertest.Read(context.Background(), ms[0]); got != "new" || err != nil {
					t.Fatalf("%s, step %d: got %q, %v", what, at, got, err)
				}
				readertest.Settle(t, r, sources.Done, ms...)
				want(t, in)
			}
		}
	}
}

// watched calls step before and after each change of names.
func watched(w ways, step func()) ways {
	watch := func(real func(*handle, string, *handle, string) error) func(*handle, string, *handle, string) error {
		return func(from *handle, name string, to *handle, as string) error {
			step()
			defer step()
			return real(from, name, to, as)
		}
	}
	unlink := w.unlink
	w.over, w.fresh, w.link = watch(w.over), watch(w.fresh), watch(w.link)
	w.unlink = func(h *handle, name string) error {
		step()
		defer step()
		return unlink(h, name)
	}
	return w
}

// TestSettlementThatFailsHalfway: a file that was taken and cannot be deleted or moved has its name again, so that the
// settlement can be repeated; one that cannot be given back is no settled file, and comes again.
func TestSettlementThatFailsHalfway(t *testing.T) {
	t.Parallel()
	for _, success := range []pickup.Action{pickup.Delete(), pickup.MoveTo("done")} {
		top := root(t)
		in := filepath.Join(top, "in")
		cfg := quick(top)
		cfg.OnSuccess = success
		s := newSource(t, cfg)
		r := open(t, s)
		write(t, filepath.Join(in, "a"), "body")
		ms := readertest.Fetch(t, r, 1)
		fails := func(from *handle, name string, to *handle, as string) error {
			if as == "a" && from == to {
				return kernel().fresh(from, name, to, as)
			}
			return syscall.EIO
		}
		s.ways.unlink, s.ways.fresh = fault{false, syscall.EIO}.unlink(nil), fails
		if err := readertest.TrySettle(r, sources.Done, ms...); !errors.Is(err, syscall.EIO) {
			t.Errorf("a step failed: %v", err)
		}
		if b, err := os.ReadFile(filepath.Join(in, "a")); string(b) != "body" {
			t.Fatalf("after a failed settlement: %q, %v", b, err)
		}
		s.ways = kernel()
		readertest.Settle(t, r, sources.Done, ms...)
		want(t, in)
	}
}

// TestCannotBePutBack: a file that came between and cannot be put back is told, and not taken for settled.
func TestCannotBePutBack(t *testing.T) {
	t.Parallel()
	for _, success := range []pickup.Action{pickup.Delete(), pickup.MoveTo("done")} {
		top := root(t)
		in := filepath.Join(top, "in")
		cfg := quick(top)
		cfg.OnSuccess = success
		s := newSource(t, cfg)
		r := open(t, s)
		write(t, filepath.Join(in, "a"), "old")
		ms := readertest.Fetch(t, r, 1)
		s.pause = func() {
			write(t, filepath.Join(in, ".new"), "new")
			if err := os.Rename(filepath.Join(in, ".new"), filepath.Join(in, "a")); err != nil {
				t.Error(err)
			}
		}
		s.ways.fresh = fault{false, syscall.EIO}.rename(nil)
		if err := readertest.TrySettle(r, sources.Done, ms...); err == nil {
			t.Error("a file that was taken by mistake and not put back counts as settled")
		}
		want(t, filepath.Join(in, "done"))
		s.pause, s.ways = func() {}, kernel()
		left := plain(t, in)
		if len(left) != 1 || !strings.HasPrefix(filepath.Base(left[0]), takenPrefix) {
			t.Fatalf("left: %q", left)
		}
		// As if takenFor had passed.
		if err := os.Rename(left[0], filepath.Join(in, takenName("a", time.Now().Add(-2*takenFor), files.MaxName))); err != nil {
			t.Fatal(err)
		}
		readertest.Settle(t, r, sources.Retry, ms...)
		ms = readertest.Fetch(t, r, 1)
		if got, err := readertest.Read(context.Background(), ms[0]); got != "new" || err != nil {
			t.Fatalf("got %q, %v", got, err)
		}
	}
}

// TestDeletionAnsweredLate: a deletion or a taking that was carried out, though its answer was an error, is one.
func TestDeletionAnsweredLate(t *testing.T) {
	t.Parallel()
	for what, fail := range map[string]func(w *ways){
		"take":   func(w *ways) { w.over = fault{true, syscall.ENOENT}.rename(w.over) },
		"unlink": func(w *ways) { w.unlink = fault{true, syscall.ENOENT}.unlink(w.unlink) },
	} {
		top := root(t)
		in := filepath.Join(top, "in")
		s := newSource(t, quick(top))
		r := open(t, s)
		write(t, filepath.Join(in, "a"), "body")
		ms := readertest.Fetch(t, r, 1)
		fail(&s.ways)
		if err := readertest.TrySettle(r, sources.Done, ms...); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if left, _ := os.ReadDir(in); len(left) != 0 {
			t.Errorf("%s: left %v", what, left)
		}
	}
}

// TestCopyWhoseOriginalStays: the copy on another device goes only where the original certainly is there.
func TestCopyWhoseOriginalStays(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		fresh  error // of giving back
		copies int
	}{"given back": {nil, 0}, "not given back": {syscall.EIO, 1}} {
		top, away := root(t), elsewhereDir(t)
		cfg := quick(top)
		cfg.OnSuccess = pickup.MoveTo(away)
		s := newSource(t, cfg)
		in := filepath.Join(top, "in")
		r := open(t, s)
		write(t, filepath.Join(in, "a"), "body")
		ms := readertest.Fetch(t, r, 1)
		s.ways.unlink = fault{false, syscall.EIO}.unlink(nil)
		s.ways.fresh = func(from *handle, name string, to *handle, as string) error {
			if strings.HasPrefix(name, takenPrefix) && from == to && len(plain(t, filepath.Join(away, "in"))) > 0 && c.fresh != nil {
				return c.fresh
			}
			return kernel().fresh(from, name, to, as)
		}
		if err := readertest.TrySettle(r, sources.Done, ms...); err == nil {
			t.Errorf("%s: a move whose original stayed is settled", what)
		}
		want(t, in, "body")
		want(t, filepath.Join(away, "in"), []string{"body"}[:c.copies]...)
	}
}

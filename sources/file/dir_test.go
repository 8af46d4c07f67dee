//go:build linux

package file

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/rebalancer-go/rebalancer/internal/files"
	"github.com/rebalancer-go/rebalancer/internal/readertest"
	"github.com/rebalancer-go/rebalancer/sources"
)

func onlyDir(s *Source) *dir {
	for d := range s.readers.All() {
		return d
	}
	return nil
}

// TestDirectoryIsOpenedAnewDuringASettlement: the settlement goes on in the directory that it began in, which is closed
// afterwards.
func TestDirectoryIsOpenedAnewDuringASettlement(t *testing.T) {
	t.Parallel()
	top := root(t)
	s := newSource(t, quick(top))
	r := open(t, s)
	write(t, filepath.Join(top, "in", "a"), "a")
	ms := readertest.Fetch(t, r, 1)
	d := onlyDir(s)
	old := d.cur
	s.pause = func() {
		d.mu.Lock()
		d.doubt = true
		d.mu.Unlock()
		if err := d.refresh(); err != nil {
			t.Error(err)
		}
	}
	readertest.Settle(t, r, sources.Done, ms...)
	want(t, filepath.Join(top, "in"))
	if _, err := old.self.Stat(); !errors.Is(err, fs.ErrClosed) || d.cur == old {
		t.Errorf("the old directory was not closed: %v", err)
	}
}

// TestListingCalledOff: it is no reason to doubt the open directory; one that fails is.
func TestListingCalledOff(t *testing.T) {
	t.Parallel()
	top := root(t)
	s := newSource(t, quick(top))
	open(t, s)
	d := onlyDir(s)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	list := func() error { return d.List(ctx, func([]files.Entry) error { return nil }) }
	if err := list(); !errors.Is(err, context.Canceled) || d.doubt {
		t.Errorf("called off: %v, doubt %v", err, d.doubt)
	}
	ctx = t.Context()
	d.cur.root.Close()
	if err := list(); err == nil || !d.doubt {
		t.Errorf("failed: %v, doubt %v", err, d.doubt)
	}
}

// TestTakenFileCannotBeSeen: that is no change of the file, which would settle it.
func TestTakenFileCannotBeSeen(t *testing.T) {
	t.Parallel()
	top := root(t)
	in := filepath.Join(top, "in")
	s := newSource(t, quick(top))
	r := open(t, s)
	write(t, filepath.Join(in, "a"), "a")
	ms := readertest.Fetch(t, r, 1)
	s.ways.over = func(from *handle, name string, to *handle, as string) error {
		err := kernel().over(from, name, to, as)
		from.self.Close()
		return err
	}
	s.ways.fresh = func(from *handle, name string, to *handle, as string) (err error) {
		if from.self, err = from.root.Open("."); err != nil {
			return err
		}
		return kernel().fresh(from, name, to, as)
	}
	if err := readertest.TrySettle(r, sources.Done, ms...); err == nil {
		t.Error("a file that nobody saw counts as settled")
	}
	want(t, in, "a")
}

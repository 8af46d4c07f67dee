package file

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rebalancer-go/rebalancer/internal/readertest"
	"github.com/rebalancer-go/rebalancer/sources"
	"github.com/rebalancer-go/rebalancer/sources/pickup"
)

// mount mounts something for the test.
func mount(tb testing.TB, source, dir, kind string, flags uintptr) {
	tb.Helper()
	if err := unix.Mount(source, dir, kind, flags, ""); err != nil {
		if os.Getenv("REBAL_REQUIRE") != "" {
			tb.Fatalf("shares that come and go cannot be tested: mount of %s at %q: %v", kind, dir, err)
		}
		tb.Skipf("NOT TESTED: shares that come and go; mount of %s at %q: %v", kind, dir, err)
	}
	tb.Cleanup(func() { unmount(dir) })
}

// unmount takes a mount away although it is in use, as the loss of a share does.
func unmount(dir string) { _ = unix.Unmount(dir, unix.MNT_DETACH) }

// lost checks that a Fetch fails for the share and not because the directory is gone.
func lost(t *testing.T, s *Source, r sources.Reader) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	ms, err := r.Fetch(ctx, 1)
	var share *errShare
	if !errors.As(err, &share) || errors.Is(err, sources.ErrGone) {
		t.Fatalf("Fetch without the share: %d files, %v", len(ms), err)
	}
	if n, err := s.Lag(t.Context(), "in"); !errors.As(err, &share) {
		t.Errorf("Lag without the share: %d, %v", n, err)
	}
	if _, err := s.Open(t.Context(), claim("g", "in")); !errors.As(err, &share) {
		t.Errorf("Open without the share: %v", err)
	}
}

// TestLostShare: a share that is unmounted shows an empty directory, or none; that is neither an empty nor a missing
// resource. What was in hand is settled when the share is back, not taken for gone.
func TestLostShare(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"in", ".", ".."} { // where the share is mounted, from the root
		for _, success := range []pickup.Action{pickup.Delete(), pickup.MoveTo("done")} {
			top := root(t)
			disk := t.TempDir()
			mount(t, "tmpfs", disk, "tmpfs", 0)
			point := filepath.Join(top, at)
			in := filepath.Join(top, "in")
			mount(t, disk, point, "", unix.MS_BIND)
			mkdir(t, in)
			cfg := quick(top)
			cfg.OnSuccess = success
			s := newSource(t, cfg)
			r := open(t, s)
			write(t, filepath.Join(in, "a"), "a")
			m := readertest.Fetch(t, r, 1)[0]
			write(t, filepath.Join(in, "b"), "b")
			unmount(point)
			lost(t, s, r)
			readertest.Settle(t, r, sources.Retry, m)
			lost(t, s, r)
			mount(t, disk, point, "", unix.MS_BIND)
			ms := readertest.Fetch(t, r, 2)
			if ms[0].Key != "a" || ms[0].Attempt != 2 || ms[1].Key != "b" {
				t.Errorf("at %q: after the share came back: %q (attempt %d), %q", at, ms[0].Key, ms[0].Attempt, ms[1].Key)
			}
			unmount(point)
			lost(t, s, r)
			readertest.Settle(t, r, sources.Done, ms...) // through the directory that is open still
			mount(t, disk, point, "", unix.MS_BIND)
			readertest.Nothing(t, r)
			want(t, in)
			unmount(point)
			unmount(disk)
		}
	}
}

// TestOtherDevice: another file system with something in it is the share by now; what came of the old one is left alone.
func TestOtherDevice(t *testing.T) {
	t.Parallel()
	top := root(t)
	in := filepath.Join(top, "in")
	mount(t, "tmpfs", in, "tmpfs", 0)
	s := newSource(t, quick(top))
	r := open(t, s)
	write(t, filepath.Join(in, "a"), "old")
	old := readertest.Fetch(t, r, 1)[0]
	unmount(in)
	lost(t, s, r)
	write(t, filepath.Join(in, "a"), "new")
	write(t, filepath.Join(in, "b"), "new too")
	readertest.Settle(t, r, sources.Done, readertest.Fetch(t, r, 1)...)
	want(t, in, "new")
	if got, err := readertest.Read(context.Background(), old); err == nil {
		t.Errorf("read %q through the message of the other share", got)
	}
	readertest.Settle(t, r, sources.Done, old) // what it was is gone, what has its name is not it
	want(t, in, "new")
	readertest.Settle(t, r, sources.Done, readertest.Fetch(t, r, 1)...)
	want(t, in)
	// A directory that is removed where nothing is mounted is gone.
	if err := os.RemoveAll(in); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Fetch(t.Context(), 1); !errors.Is(err, sources.ErrGone) {
		t.Errorf("Fetch of a removed directory: %v", err)
	}
}

// TestStaleHandle: a share that is mounted anew may have the same numbers, and what was opened before is of no use.
func TestStaleHandle(t *testing.T) {
	t.Parallel()
	top := root(t)
	s := newSource(t, quick(top))
	r := open(t, s)
	write(t, filepath.Join(top, "in", "a"), "a")
	d := onlyDir(s)
	d.mu.Lock()
	d.cur.root.Close() // what the kernel does to a stale one
	d.mu.Unlock()
	if _, err := r.Fetch(t.Context(), 1); err == nil || errors.Is(err, sources.ErrGone) {
		t.Fatalf("Fetch through a stale directory: %v", err)
	}
	readertest.Settle(t, r, sources.Done, readertest.Fetch(t, r, 1)...)
	want(t, filepath.Join(top, "in"))
}

func TestErrShare(t *testing.T) {
	t.Parallel()
	if s := (&errShare{"x is empty"}).Error(); !strings.Contains(s, "x is empty") || !strings.Contains(s, "mount") {
		t.Error(s)
	}
}

// TestLostShareOfAFolder: the folder is not made below the mount point of a share that is gone; the files wait.
func TestLostShareOfAFolder(t *testing.T) {
	t.Parallel()
	top, disk, away := root(t), t.TempDir(), t.TempDir()
	mount(t, "tmpfs", disk, "tmpfs", 0)
	mount(t, disk, away, "", unix.MS_BIND)
	in := filepath.Join(top, "in")
	cfg := quick(top)
	cfg.OnSuccess = pickup.MoveTo(filepath.Join(away, "2006", "done"))
	r := open(t, newSource(t, cfg))
	write(t, filepath.Join(in, "a"), "a")
	readertest.Settle(t, r, sources.Done, readertest.Fetch(t, r, 1)...)
	write(t, filepath.Join(in, "b"), "b")
	ms := readertest.Fetch(t, r, 1)
	unmount(away)
	if err := readertest.TrySettle(r, sources.Done, ms...); err == nil || !strings.Contains(err.Error(), "not mounted") {
		t.Errorf("settled without the share of the folder: %v", err)
	}
	want(t, in, "b")
	if left, err := os.ReadDir(away); len(left) > 0 {
		t.Fatalf("made below the mount point: %v, %v", left, err)
	}
	mount(t, disk, away, "", unix.MS_BIND)
	readertest.Settle(t, r, sources.Done, ms...)
	want(t, in)
	want(t, filepath.Join(away, "2006", "done", "in"), "a", "b")
	unmount(away)
	unmount(disk)
}

// TestMissingOnAnotherDevice: below the mount point of a share there may be files too. With Keep, what the share had is not
// proved to be gone by a look for it there, until the share is back.
func TestMissingOnAnotherDevice(t *testing.T) {
	t.Parallel()
	for _, keep := range []bool{true, false} {
		top, disk := root(t), t.TempDir()
		in := filepath.Join(top, "in")
		write(t, filepath.Join(in, "stray"), "stray")
		mount(t, "tmpfs", disk, "tmpfs", 0)
		mount(t, disk, in, "", unix.MS_BIND)
		write(t, filepath.Join(in, "kept"), "kept")
		cfg := quick(top)
		if keep {
			cfg.OnSuccess = pickup.Keep()
		}
		s := newSource(t, cfg)
		d := &dir{source: s, group: "g", resource: "in"}
		t.Cleanup(d.release)
		gone := func() bool {
			if err := d.refresh(); err != nil {
				t.Fatal(err)
			}
			_, err := d.Stat(t.Context(), "a")
			return errors.Is(err, os.ErrNotExist)
		}
		if !gone() {
			t.Error("a missing file is not gone")
		}
		unmount(in)
		if gone() == keep {
			t.Errorf("keep %v: a file that another device lacks is gone: %v", keep, !keep)
		}
		if _, err := d.Stat(t.Context(), "stray"); err != nil {
			t.Error(err)
		}
		mount(t, disk, in, "", unix.MS_BIND)
		if !gone() {
			t.Error("a missing file is not gone after the share came back")
		}
		unmount(in)
		unmount(disk)
	}
}

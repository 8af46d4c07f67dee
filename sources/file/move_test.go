//go:build linux

package file

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/internal/readertest"
	"github.com/rebalancer-go/rebalancer/sources"
	"github.com/rebalancer-go/rebalancer/sources/pickup"
)

// elsewhereDir makes a directory on another device.
func elsewhereDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "rebalancer-test-")
	if err != nil {
		if os.Getenv("REBAL_REQUIRE") != "" {
			t.Fatalf("moves to another device cannot be tested: no second file system at /dev/shm: %v", err)
		}
		t.Skipf("NOT TESTED: moves to another device; this machine has no second file system at /dev/shm: %v", err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func TestMoveToAnotherDevice(t *testing.T) {
	t.Parallel()
	top, away := root(t), elsewhereDir(t)
	cfg := quick(top)
	cfg.OnSuccess, cfg.OnFailure = pickup.MoveTo(filepath.Join(away, "done")), pickup.MoveTo(filepath.Join(away, "failed"))
	s := newSource(t, cfg)
	r := open(t, s)
	in := filepath.Join(top, "in")
	for _, o := range []sources.Outcome{sources.Done, sources.Done, sources.Reject} {
		write(t, filepath.Join(in, "a.txt"), "body")
		if err := os.Chmod(filepath.Join(in, "a.txt"), 0o640); err != nil {
			t.Fatal(err)
		}
		m := readertest.Fetch(t, r, 1)[0]
		readertest.Settle(t, r, o, m)
		for _, p := range plain(t, filepath.Join(away, "done", "in")) {
			fi, err := os.Stat(p)
			if err != nil || fi.Mode().Perm() != 0o640 {
				t.Errorf("%q: mode %v, %v", p, fi.Mode(), err)
			}
			if o == sources.Done && filepath.Base(p) != "a.txt" && !fi.ModTime().Equal(m.Published) {
				t.Errorf("%q: time %v, want %v", p, fi.ModTime(), m.Published)
			}
		}
	}
	want(t, in)
	want(t, filepath.Join(away, "done", "in"), "body", "body")
	want(t, filepath.Join(away, "failed", "in"), "body")
}

func TestFailedCopyLeavesTheOriginal(t *testing.T) {
	t.Parallel()
	top, away := root(t), elsewhereDir(t)
	cfg := quick(top)
	cfg.OnSuccess = pickup.MoveTo(away)
	s := newSource(t, cfg)
	in := filepath.Join(top, "in")
	grow := func() { write(t, filepath.Join(in, "a"), "another body") }
	for _, c := range []struct {
		what  string
		copy  func(io.Writer, io.Reader) (int64, error)
		fails bool
		left  string
	}{
		{"disk full", func(w io.Writer, r io.Reader) (int64, error) {
			_, _ = w.Write([]byte("bo"))
			return 2, syscall.ENOSPC
		}, true, "body"},
		{"short copy", func(w io.Writer, r io.Reader) (int64, error) { return io.Copy(w, io.LimitReader(r, 2)) }, false, "body"},
		{"changed during the copy", func(w io.Writer, r io.Reader) (int64, error) {
			defer grow()
			return io.Copy(w, r)
		}, false, "another body"},
	} {
		write(t, filepath.Join(in, "a"), "body")
		s.copy = c.copy
		r := open(t, s)
		ms := readertest.Fetch(t, r, 1)
		err := readertest.TrySettle(r, sources.Done, ms...)
		if (err != nil) != c.fails || c.fails && !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("%s: %v", c.what, err)
		}
		want(t, in, c.left)
		want(t, filepath.Join(away, "in"))
		if err := r.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	s.copy = io.Copy
	r := open(t, s)
	readertest.Settle(t, r, sources.Done, readertest.Fetch(t, r, 1)...)
	want(t, in)
	want(t, filepath.Join(away, "in"), "another body")
}

func TestFailedMoveLeavesTheFile(t *testing.T) {
	t.Parallel()
	top := root(t)
	in := filepath.Join(top, "in")
	cfg := quick(top)
	cfg.OnSuccess = pickup.MoveTo(".done")
	r := open(t, newSource(t, cfg))
	write(t, filepath.Join(in, "a"), "body")
	ms := readertest.Fetch(t, r, 1)
	for what, obstacle := range map[string]func(p string) error{
		"a file where the folder must be": func(p string) error { return os.WriteFile(p, nil, 0o600) },
		"a link to the directory itself":  func(p string) error { return os.Symlink("../in", p) },
		"a link that leads outside":       func(p string) error { return os.Symlink("/tmp", p) },
		"a link that leads nowhere":       func(p string) error { return os.Symlink("nowhere", p) },
	} {
		p := filepath.Join(in, ".done")
		if err := obstacle(p); err != nil {
			t.Fatal(err)
		}
		err := readertest.TrySettle(r, sources.Done, ms...)
		if some := new(sources.SettleError); !errors.As(err, &some) {
			t.Errorf("%s: %v", what, err)
		}
		if b, err := os.ReadFile(filepath.Join(in, "a")); string(b) != "body" {
			t.Fatalf("%s: the file holds %q, %v", what, b, err)
		}
		if err := os.Remove(p); err != nil {
			t.Fatal(err)
		}
	}
	readertest.Settle(t, r, sources.Done, ms...)
	want(t, filepath.Join(in, ".done"), "body")
}

// TestFolderThatIsTheDirectory: a folder that leads back would deliver its files again and again.
func TestFolderThatIsTheDirectory(t *testing.T) {
	t.Parallel()
	top := root(t)
	in, away := filepath.Join(top, "in"), filepath.Join(filepath.Dir(top), "away")
	mkdir(t, away)
	if err := os.Symlink(in, filepath.Join(away, "in")); err != nil {
		t.Fatal(err)
	}
	cfg := quick(top)
	cfg.OnSuccess = pickup.MoveTo(away)
	r := open(t, newSource(t, cfg))
	write(t, filepath.Join(in, "a"), "body")
	if err := readertest.TrySettle(r, sources.Done, readertest.Fetch(t, r, 1)...); err == nil {
		t.Error("a file was moved into its own directory")
	}
	if _, err := os.Stat(filepath.Join(in, "a")); err != nil {
		t.Error(err)
	}
}

func TestNothingIsOverwritten(t *testing.T) {
	t.Parallel()
	top := root(t)
	in := filepath.Join(top, "in")
	cfg := quick(top)
	cfg.OnSuccess = pickup.MoveTo("done")
	r := open(t, newSource(t, cfg))
	for _, body := range []string{"1", "2", "3"} {
		write(t, filepath.Join(in, "a.csv"), "%s", body)
		readertest.Settle(t, r, sources.Done, readertest.Fetch(t, r, 1)...)
	}
	want(t, filepath.Join(in, "done"), "1", "2", "3")
	for _, p := range plain(t, filepath.Join(in, "done")) {
		if !strings.HasSuffix(p, ".csv") {
			t.Errorf("%q lost its type", p)
		}
	}
}

// TestCopyWithoutModeAndTime: some file systems have none, and refuse to set them.
func TestCopyWithoutModeAndTime(t *testing.T) {
	t.Parallel()
	top, away := root(t), elsewhereDir(t)
	cfg := quick(top)
	cfg.OnSuccess = pickup.MoveTo(away)
	s := newSource(t, cfg)
	s.dress = func(*os.Root, string, fs.FileMode, time.Time) error { return syscall.EPERM }
	r := open(t, s)
	write(t, filepath.Join(top, "in", "a"), "body")
	readertest.Settle(t, r, sources.Done, readertest.Fetch(t, r, 1)...)
	want(t, filepath.Join(top, "in"))
	want(t, filepath.Join(away, "in"), "body")
}

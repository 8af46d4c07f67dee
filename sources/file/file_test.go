//go:build linux

package file

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/internal/readertest"
	"github.com/rebalancer-go/rebalancer/sources"
	"github.com/rebalancer-go/rebalancer/sources/pickup"
)

func TestStrangeNames(t *testing.T) {
	t.Parallel()
	names := []string{"-rf *", " a ", "line\nbreak", "\xff\xfe\x80", "a;b|c", "ünïcode", strings.Repeat("x", 255), "%2e%2e", "*"}
	for _, success := range []pickup.Action{pickup.Delete(), pickup.MoveTo("done")} {
		top := root(t)
		cfg := quick(top)
		cfg.OnSuccess = success
		r := open(t, newSource(t, cfg))
		for _, o := range []sources.Outcome{sources.Done, sources.Reject} {
			for _, n := range names {
				write(t, filepath.Join(top, "in", n), "body of %s", n)
			}
			for _, m := range readertest.Fetch(t, r, len(names)) {
				if got, err := readertest.Read(context.Background(), m); err != nil || got != "body of "+m.Key {
					t.Errorf("%q: got %q, %v", m.Key, got, err)
				}
				if _, ok := m.Native.(fs.FileInfo); !ok || m.Published.IsZero() {
					t.Errorf("%q: native %T, published %v", m.Key, m.Native, m.Published)
				}
				readertest.Settle(t, r, o, m)
			}
		}
		want(t, filepath.Join(top, "in"))
		if n := len(plain(t, filepath.Join(top, "in", "failed"))); n != len(names) {
			t.Errorf("%d rejected, want %d", n, len(names))
		}
	}
}

func TestOnlyRegularFiles(t *testing.T) {
	t.Parallel()
	top := root(t)
	in := filepath.Join(top, "in")
	write(t, filepath.Join(top, "target"), "secret")
	for _, err := range []error{
		os.Symlink(filepath.Join(top, "target"), filepath.Join(in, "link")),
		os.Symlink("nowhere", filepath.Join(in, "dangling")),
		syscall.Mkfifo(filepath.Join(in, "fifo"), 0o600),
		os.Mkdir(filepath.Join(in, "directory"), 0o700),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	l, err := net.Listen("unix", filepath.Join(in, "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	s := newSource(t, quick(top))
	r := open(t, s)
	readertest.Nothing(t, r)
	if n, err := s.Lag(t.Context(), "in"); n != 0 || err != nil {
		t.Errorf("Lag = %d, %v", n, err)
	}
	h, err := s.open("in")
	if err != nil {
		t.Fatal(err)
	}
	defer h.close()
	for _, name := range []string{"link", "dangling", "fifo", "directory", "s"} { // what takes a name after the listing
		if i, err := stat(h.root, name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("stat of %q: %+v, %v", name, i, err)
		}
	}
	// What takes the name of a delivered file is not read, and a pipe does not block.
	for what, replace := range map[string]func(p string) error{
		"pipe":         func(p string) error { return syscall.Mkfifo(p, 0o600) },
		"link outside": func(p string) error { return os.Symlink("/etc/hostname", p) },
		"link inside":  func(p string) error { return os.Symlink("fifo", p) },
		"nothing":      func(string) error { return nil },
		"directory":    func(p string) error { return os.Mkdir(p, 0o700) },
	} {
		p := filepath.Join(in, "x")
		write(t, p, "body")
		m := readertest.Fetch(t, r, 1)[0]
		if err := os.Remove(p); err != nil {
			t.Fatal(err)
		}
		if err := replace(p); err != nil {
			t.Fatal(err)
		}
		if got, err := readertest.Read(context.Background(), m); err == nil {
			t.Errorf("%s: read %q", what, got)
		}
		readertest.Settle(t, r, sources.Done, m)
		if _, err := os.Lstat(p); what != "nothing" && err != nil {
			t.Errorf("%s was deleted: %v", what, err)
		}
		_ = os.Remove(p)
	}
}

func TestLinksOfDirectories(t *testing.T) {
	t.Parallel()
	top := root(t)
	for link, to := range map[string]string{"inside": "in", "outside": "/tmp", "up": ".."} {
		if err := os.Symlink(to, filepath.Join(top, link)); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(top, "plain"), "")
	s := newSource(t, quick(top))
	for _, name := range []string{"outside", "up"} {
		if _, err := s.Open(t.Context(), claim("g", name)); err == nil || errors.Is(err, sources.ErrGone) {
			t.Errorf("Open(%q), which leads outside: %v", name, err)
		}
	}
	if _, err := s.Open(t.Context(), claim("g", "plain")); !errors.Is(err, sources.ErrGone) {
		t.Errorf("Open of a file: %v", err)
	}
	if _, err := s.Open(t.Context(), claim("g", "inside")); err != nil {
		t.Errorf("Open of a link that stays inside: %v", err)
	}
}

// TestReplacedDirectory: a Reader follows the name of its directory, not the inode.
func TestReplacedDirectory(t *testing.T) {
	t.Parallel()
	top := root(t)
	in := filepath.Join(top, "in")
	r := open(t, newSource(t, quick(top)))
	write(t, filepath.Join(in, "a"), "old")
	old := readertest.Fetch(t, r, 1)
	if err := os.Rename(top, top+".old"); err != nil { // the whole root
		t.Fatal(err)
	}
	if _, err := r.Fetch(t.Context(), 1); !errors.Is(err, sources.ErrGone) {
		t.Fatalf("Fetch without the directory: %v", err)
	}
	mkdir(t, in)
	write(t, filepath.Join(in, "b"), "new")
	m := readertest.Fetch(t, r, 1)[0]
	if got, err := readertest.Read(context.Background(), m); got != "new" || err != nil {
		t.Fatalf("got %q, %v", got, err)
	}
	readertest.Settle(t, r, sources.Done, append(old, m)...)
	want(t, in)
	want(t, filepath.Join(top+".old", "in"), "old")
}

// asNobody runs f without the rights of root, which may read everything.
func asNobody(t *testing.T, f func()) {
	t.Helper()
	if os.Getuid() != 0 {
		f()
		return
	}
	if runtime.GOOS != "linux" {
		t.Fatal("run the tests as another user than root")
	}
	done := make(chan struct{})
	go func() { // its thread ends with it
		defer close(done)
		runtime.LockOSThread()
		if _, _, e := syscall.RawSyscall(syscall.SYS_SETFSUID, 65534, 0, 0); e != 0 {
			t.Errorf("setfsuid: %v", e)
		}
		f()
	}()
	<-done
}

func TestUnreadable(t *testing.T) {
	t.Parallel()
	top := root(t)
	in := filepath.Join(top, "in")
	for p := in; p != "/"; p = filepath.Dir(p) {
		if strings.HasPrefix(p, os.TempDir()+"/") {
			_ = os.Chmod(p, 0o755)
		}
	}
	write(t, filepath.Join(in, "a"), "")
	write(t, filepath.Join(in, "b"), "fine")
	for name, mode := range map[string]fs.FileMode{"a": 0, "b": 0o644} {
		if err := os.Chmod(filepath.Join(in, name), mode); err != nil {
			t.Fatal(err)
		}
	}
	s := newSource(t, quick(top))
	asNobody(t, func() {
		r, err := s.Open(context.Background(), claim("g", "in"))
		if err != nil {
			t.Error(err)
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		ms, err := r.Fetch(ctx, 2)
		if err != nil || len(ms) != 2 {
			t.Errorf("Fetch: %d files, %v", len(ms), err)
			return
		}
		if _, err := readertest.Read(context.Background(), ms[0]); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("read of a file that must not be read: %v", err)
		}
		if got, err := readertest.Read(context.Background(), ms[1]); got != "fine" || err != nil {
			t.Errorf("the other file: %q, %v", got, err)
		}
		if err := os.Chmod(in, 0); err != nil && os.Getuid() != 0 {
			t.Error(err)
		}
	})
	if err := os.Chmod(in, 0); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.Chmod(in, 0o755) }()
	asNobody(t, func() {
		if _, err := s.Open(context.Background(), claim("g2", "in")); !errors.Is(err, fs.ErrPermission) || errors.Is(err, sources.ErrGone) {
			t.Errorf("Open of a directory that must not be read: %v", err)
		}
		if n, err := s.Lag(context.Background(), "in"); err == nil {
			t.Errorf("its Lag is %d", n)
		}
		if got, err := s.Discover(context.Background(), "in/*"); err == nil {
			t.Errorf("Discover in it found %q", got)
		}
	})
}

// TestBigFileInLittleMemory reads a part of a sparse file of 10 GiB and all of one of 256 MiB; that the engine's checks
// hold to the end of 10 GiB is a test of package files, without a disk.
func TestBigFileInLittleMemory(t *testing.T) {
	top := root(t)
	sizes := map[string]int64{"a": 256 << 20, "b": 10 << 30}
	for name, size := range sizes {
		p := filepath.Join(top, "in", name)
		write(t, p, "")
		if err := os.Truncate(p, size); err != nil {
			t.Fatalf("a sparse file of %d bytes: %v", size, err)
		}
	}
	r := open(t, newSource(t, quick(top)))
	ms := readertest.Fetch(t, r, 2)
	buf := make([]byte, 1<<20)
	for _, m := range ms {
		rc, err := m.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		var n int64
		for n < sizes["a"] {
			k, err := rc.Read(buf)
			if n += int64(k); err != nil {
				t.Fatalf("%s after %d bytes: %v", m.Key, n, err)
			}
		}
		runtime.ReadMemStats(&after)
		if m.Size != sizes[m.Key] {
			t.Errorf("%s: Size %d", m.Key, m.Size)
		}
		if k, err := rc.Read(buf); (err == io.EOF) != (m.Key == "a") {
			t.Errorf("%s after %d bytes: %d more, %v", m.Key, n, k, err)
		}
		if grown := after.TotalAlloc - before.TotalAlloc; grown > 16<<20 {
			t.Errorf("%s: %d bytes were allocated for a read", m.Key, grown)
		}
		if err := rc.Close(); err != nil {
			t.Fatal(err)
		}
	}
	readertest.Settle(t, r, sources.Done, ms...)
}

func TestChangedFileIsNotDeleted(t *testing.T) {
	t.Parallel()
	for what, change := range map[string]func(p string) error{
		"appended": func(p string) error {
			f, err := os.OpenFile(p, os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			_, err = f.WriteString(" and more")
			return errors.Join(err, f.Close())
		},
		"touched": func(p string) error { return os.Chtimes(p, time.Time{}, time.Now().Add(time.Hour)) },
		"replaced by its like": func(p string) error { // only the inode differs
			fi, err := os.Stat(p)
			if err != nil {
				return err
			}
			return errors.Join(os.WriteFile(p+".tmp", []byte("body"), 0o600),
				os.Chtimes(p+".tmp", fi.ModTime(), fi.ModTime()), os.Rename(p+".tmp", p))
		},
	} {
		for _, success := range []pickup.Action{pickup.Delete(), pickup.MoveTo("done")} {
			top := root(t)
			cfg := quick(top)
			cfg.OnSuccess = success
			var l logs
			cfg.Logger = l.logger()
			r := open(t, newSource(t, cfg))
			p := filepath.Join(top, "in", "a")
			write(t, p, "body")
			m := readertest.Fetch(t, r, 1)[0]
			if err := change(p); err != nil {
				t.Fatal(err)
			}
			if rc, err := m.Open(t.Context()); !errors.Is(err, rebalancer.ErrChanged) {
				t.Errorf("%s: open: %v, %v", what, rc, err)
			}
			readertest.Settle(t, r, sources.Done, m)
			if !strings.Contains(l.String(), "changed while") {
				t.Errorf("%s: nobody was told: %s", what, l.String())
			}
			again := readertest.Fetch(t, r, 1)[0]
			if again.ID == m.ID {
				t.Errorf("%s: the ID is the same", what)
			}
			readertest.Settle(t, r, sources.Done, again)
			want(t, filepath.Join(top, "in"))
		}
	}
}

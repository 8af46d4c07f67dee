package sqlite

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/backends"
	"golang.org/x/sys/unix"
)

// tinyDisk is a file system of its own of that many bytes.
func tinyDisk(t *testing.T, size int) string {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size="+strconv.Itoa(size)); err != nil {
		if strings.Contains(os.Getenv("REBAL_REQUIRE"), "tmpfs") {
			t.Fatalf("REBAL_REQUIRE names tmpfs, but it cannot be mounted: %v", err)
		}
		t.Skipf("NOT TESTED: a disk that is really full. It needs the right to mount a tmpfs: run the test as root: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// A disk fills up under two stores, and is given room again: what was acknowledged is there, what was refused is not, every
// refusal says so for certain, and all go on without being opened again.
func TestDiskThatIsReallyFull(t *testing.T) {
	t.Parallel()
	dir := tinyDisk(t, 2<<20)
	path := dir + "/store.db"
	stores := []*Store{openStore(t, path), openStore(t, path)}
	sessions := []backends.Session{openSession(t, stores[0]), openSession(t, stores[1])}
	ballast := dir + "/ballast"
	if err := os.WriteFile(ballast, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	acknowledged := map[string]bool{}
	put := func(i int) error {
		key := strconv.Itoa(i)
		r, err := sessions[i%2].Commit(t.Context(), request(sessions[i%2], txn(key, make([]byte, 20_000))))
		if err == nil {
			err = r.Results[0].Err
		}
		if err == nil {
			acknowledged[key] = true
		}
		return err
	}
	check := func(when string) {
		t.Helper()
		for _, h := range append(sessions, openLook(t, path)...) {
			r, err := h.Read(t.Context(), backends.ReadRequest{Prefixes: []string{""}})
			if err != nil {
				t.Fatalf("%s: %v", when, err)
			}
			for _, e := range r.Entries {
				if !acknowledged[e.Key] || len(e.Value) != 20_000 {
					t.Errorf("%s: %q was refused, but is there", when, e.Key)
				}
			}
			if len(r.Entries) != len(acknowledged) {
				t.Errorf("%s: %d entries of %d that were acknowledged", when, len(r.Entries), len(acknowledged))
			}
		}
	}
	i, refused := 0, 0
	for ; refused < 6 && i < 1000; i++ {
		start := time.Now()
		if err := put(i); err != nil {
			refused++
			if !strings.Contains(err.Error(), "disk is full") || errors.Is(err, backends.ErrFatal) || errors.Is(err, backends.ErrUnknown) {
				t.Fatalf("a full disk: %v", err)
			}
			if took := time.Since(start); took > 10*time.Second {
				t.Fatalf("the refusal took %v", took)
			}
		}
	}
	if refused < 6 || len(acknowledged) < 5 {
		t.Fatalf("%d refused, %d acknowledged", refused, len(acknowledged))
	}
	check("while it is full")
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	for end := i + 4; i < end; i++ {
		if err := put(i); err != nil {
			t.Fatalf("there is room again: %v", err)
		}
	}
	check("when there is room again")
	t.Logf("%d commits acknowledged, %d refused", len(acknowledged), refused)
}

// openLook opens the file once more, if that is possible while the disk is full.
func openLook(t *testing.T, path string) []backends.Session {
	t.Helper()
	s, err := Open(path)
	if err != nil {
		if !strings.Contains(err.Error(), "disk is full") {
			t.Fatalf("opening: %v", err)
		}
		return nil
	}
	t.Cleanup(func() { _ = s.Close() })
	h, err := s.Open(t.Context(), backends.SessionOptions{Group: "g", TTL: time.Minute})
	if err != nil {
		if !strings.Contains(err.Error(), "disk is full") {
			t.Fatalf("opening a session: %v", err)
		}
		return nil
	}
	return []backends.Session{h}
}

// A store that was closed needs room for its -shm file to be opened again.
func TestOpenOnAFullDisk(t *testing.T) {
	t.Parallel()
	dir := tinyDisk(t, 1<<20)
	path := dir + "/store.db"
	s, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	ballast := dir + "/ballast"
	if err := os.WriteFile(ballast, make([]byte, 1<<20), 0o600); !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("the disk should be full: %v", err)
	}
	if s, err := Open(path); err == nil || !strings.Contains(err.Error(), "disk is full") {
		t.Errorf("opening: %v, %v", s, err)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	if s, err = Open(path); err != nil {
		t.Fatalf("there is room again: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

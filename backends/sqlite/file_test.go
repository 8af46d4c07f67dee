package sqlite

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/backends"
)

// Several open a fresh file at once: they agree, and nobody waits for a grace.
func TestFreshFileNeedsNoGrace(t *testing.T) {
	t.Parallel()
	path := tempPath(t)
	stamps := make([]backends.Stamp, 6)
	var wg sync.WaitGroup
	for i := range stamps {
		wg.Go(func() { stamps[i] = openSession(t, openStore(t, path)).Opened() })
	}
	wg.Wait()
	for _, s := range stamps {
		if s.Incarnation != stamps[0].Incarnation || !s.Since.IsZero() {
			t.Fatalf("stamps %+v", stamps)
		}
	}
}

// Not parallel: a process that another test starts meanwhile would inherit the lock on the folder, as it should.
func TestFileDeletedWhileNobodyWorksNeedsNoGrace(t *testing.T) {
	path := tempPath(t)
	s := openStore(t, path)
	first := openSession(t, s).Opened()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	remove(t, path)
	if o := openSession(t, openStore(t, path)).Opened(); o.Incarnation == first.Incarnation || !o.Since.IsZero() {
		t.Fatalf("stamp %+v, before %+v", o, first)
	}
}

func TestFileDeletedUnderAnotherStoreWaitsTheGrace(t *testing.T) {
	t.Parallel()
	path := tempPath(t)
	old := openSession(t, openStore(t, path))
	remove(t, path)
	o := openSession(t, openStore(t, path)).Opened()
	if o.Since.IsZero() {
		t.Fatal("a new file is passed off as proof that nobody works, while a store is open under the deleted one")
	}
	r, err := old.Renew(t.Context(), backends.RenewRequest{Incarnation: old.Opened().Incarnation})
	if !errors.Is(err, backends.ErrSessionLost) || r.Incarnation != o.Incarnation {
		t.Fatalf("the old session: %+v, %v", r, err)
	}
}

func TestCallsWithShortDeadlinesFindTheNewFile(t *testing.T) {
	t.Parallel()
	path := tempPath(t)
	h := openSession(t, openStore(t, path))
	remove(t, path)
	for range 50 {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		_, err := h.Renew(ctx, backends.RenewRequest{Incarnation: h.Opened().Incarnation})
		cancel()
		if errors.Is(err, backends.ErrSessionLost) {
			return
		}
	}
	t.Fatal("no call got as far as the new file")
}

func TestRebootEndsSessionsWithoutAGrace(t *testing.T) {
	t.Parallel()
	path := tempPath(t)
	s := openStore(t, path)
	h := openSession(t, s)
	mustCommit(t, h, backends.Txn{Puts: []backends.Put{{Key: "bound", Bound: true}, {Key: "free"}}})
	// The record as an earlier boot would have left it, in a young incarnation.
	execRaw(t, raw(t, path), `UPDATE record SET boot = 'earlier', since = zero + 1`)
	other := openSession(t, openStore(t, path))
	if o := other.Opened(); o.Incarnation != h.Opened().Incarnation || !o.Since.IsZero() {
		t.Fatalf("stamp after a reboot: %+v", o)
	}
	r, err := other.Read(t.Context(), backends.ReadRequest{Prefixes: []string{""}})
	if err != nil || len(r.Entries) != 1 || r.Entries[0].Key != "free" {
		t.Fatalf("entries after a reboot: %+v, %v", r.Entries, err)
	}
	if _, err := h.Renew(t.Context(), backends.RenewRequest{Incarnation: h.Opened().Incarnation}); !errors.Is(err, backends.ErrSessionLost) {
		t.Fatalf("a session of the earlier boot: %v", err)
	}
}

func TestOpenRefusesWhatCannotWork(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	garbage := filepath.Join(dir, "garbage.db")
	if err := os.WriteFile(garbage, []byte(strings.Repeat("not a database ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	linked := filepath.Join(dir, "linked.db")
	openStore(t, linked)
	if err := os.Link(linked, filepath.Join(dir, "second name.db")); err != nil {
		t.Fatal(err)
	}
	future := filepath.Join(dir, "future.db")
	openStore(t, future)
	execRaw(t, raw(t, future), `UPDATE record SET format = 99`)
	for name, path := range map[string]string{"garbage": garbage, "a folder": dir, "hard links": linked, "a later format": future} {
		s, err := Open(path)
		if !errors.Is(err, backends.ErrFatal) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v, %v", name, s, err)
		}
	}
	if _, err := Open(filepath.Join(dir, "no folder", "x.db")); err == nil || !strings.Contains(err.Error(), "folder must exist") {
		t.Errorf("a folder that is missing: %v", err)
	}
}

func TestNetworkFileSystemsAreRefused(t *testing.T) {
	t.Parallel()
	for magic, name := range networked {
		if err := refuse(magic); !errors.Is(err, backends.ErrFatal) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, local := range []int64{0xef53, 0x01021994, 0x58465342, 0x9123683e, 0x794c7630} { // ext4, tmpfs, xfs, btrfs, overlay
		if err := refuse(local); err != nil {
			t.Errorf("%x: %v", local, err)
		}
	}
}

// A file that turns to garbage gives errors, and the store goes on when it is put right.
func TestReplacedByGarbageAndBack(t *testing.T) {
	t.Parallel()
	path := tempPath(t)
	s := openStore(t, path)
	h := openSession(t, s)
	remove(t, path)
	if err := os.WriteFile(path, []byte(strings.Repeat("not a database ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := h.Renew(t.Context(), backends.RenewRequest{Incarnation: h.Opened().Incarnation})
	if !errors.Is(err, backends.ErrFatal) {
		t.Fatalf("renewal in a file of garbage: %v", err)
	}
	remove(t, path)
	if o := openSession(t, s).Opened(); o.Since.IsZero() {
		t.Fatalf("stamp %+v", o)
	}
}

func TestFullDiskIsAnErrorThatPasses(t *testing.T) {
	t.Parallel()
	s := openStore(t, tempPath(t), func(s *Store) { s.tune = []string{"max_page_count(300)"} })
	h := openSession(t, s)
	applied := 0
	var failure error
	for ; failure == nil && applied < 100; applied++ {
		_, failure = h.Commit(t.Context(), request(h, txn("small", nil), txn(strconv.Itoa(applied), make([]byte, 100_000))))
	}
	applied--
	if failure == nil || errors.Is(failure, backends.ErrFatal) || !strings.Contains(failure.Error(), "disk is full") {
		t.Fatalf("a full disk: %v", failure)
	}
	r, err := h.Read(t.Context(), backends.ReadRequest{Prefixes: []string{""}, NamesOnly: true})
	if err != nil || len(r.Entries) != applied+1 {
		t.Fatalf("%d entries after %d commits, %v", len(r.Entries), applied, err)
	}
	if _, err := h.Renew(t.Context(), backends.RenewRequest{Incarnation: h.Opened().Incarnation}); err != nil {
		t.Fatalf("a renewal needs no room: %v", err)
	}
	if _, err := s.file.writer.ExecContext(t.Context(), `PRAGMA max_page_count = 100000`); err != nil {
		t.Fatal(err)
	}
	mustCommit(t, h, txn("more", make([]byte, 100_000)))
}

func TestLockOfAnotherProgramIsWaitedFor(t *testing.T) {
	t.Parallel()
	path := tempPath(t)
	h := openSession(t, openStore(t, path))
	other := raw(t, path)
	execRaw(t, other, `BEGIN EXCLUSIVE`)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	start := time.Now()
	_, err := h.Commit(ctx, request(h, txn("k", nil)))
	if err == nil || errors.Is(err, backends.ErrFatal) || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "lock") {
		t.Fatalf("commit into a locked file: %v", err)
	}
	if took := time.Since(start); took > 10*time.Second {
		t.Fatalf("it returned after %v", took)
	}
	done := make(chan error, 1)
	go func() {
		_, err := h.Commit(t.Context(), request(h, backends.Txn{Checks: []backends.Check{{Key: "k"}}, Puts: []backends.Put{{Key: "k"}}}))
		done <- err
	}()
	select {
	case err := <-done:
		t.Fatalf("a commit went through a lock: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	execRaw(t, other, `ROLLBACK`)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func TestOldHintsAreRemoved(t *testing.T) {
	t.Parallel()
	path := tempPath(t)
	h := openSession(t, openStore(t, path))
	db := raw(t, path)
	for range 50 {
		execRaw(t, db, `INSERT INTO hints (grp, address, origin, at) VALUES (x'00', x'00', 'old', 0)`)
	}
	for i := range 5 {
		mustCommit(t, h, txn(strconv.Itoa(i), nil))
	}
	var n int
	if err := db.QueryRow(`SELECT count(*) FROM hints`).Scan(&n); err != nil || n != 5 {
		t.Fatalf("%d hints are left, %v; want the 5 new ones", n, err)
	}
}

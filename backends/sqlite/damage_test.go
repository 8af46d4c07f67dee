package sqlite

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/internal/sqlstore"
	"github.com/rebalancer-go/rebalancer/internal/waittest"
)

// A file that somebody cuts short under the store gives a clear error at once, at every call, also at one that would not
// have met the hole. When it is deleted the store goes on, in a new incarnation.
func TestFileCutShortWhileOpen(t *testing.T) {
	t.Parallel()
	for _, size := range []int64{0, 100, 4096, 20_000, 400_000} {
		t.Run(strconv.FormatInt(size, 10), func(t *testing.T) {
			t.Parallel()
			path := tempPath(t)
			s := openStore(t, path)
			h := openSession(t, s)
			for i := range 30 {
				mustCommit(t, h, txn(strconv.Itoa(i), make([]byte, 20_000)))
			}
			execRaw(t, raw(t, path), `PRAGMA wal_checkpoint(TRUNCATE)`)
			mustCommit(t, h, txn("seen", nil))
			if err := os.Truncate(path, size); err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			for range 3 {
				_, renew := h.Renew(t.Context(), backends.RenewRequest{Incarnation: h.Opened().Incarnation})
				_, read := h.Read(t.Context(), backends.ReadRequest{Keys: []string{"seen"}})
				_, commit := h.Commit(t.Context(), request(h, txn("x", nil)))
				_, open := s.Open(t.Context(), backends.SessionOptions{Group: "g", TTL: time.Minute})
				for _, err := range []error{renew, read, commit, open} {
					if !errors.Is(err, backends.ErrFatal) || !strings.Contains(err.Error(), "cut short") || strings.Count(err.Error(), path) != 1 {
						t.Fatalf("error %v", err)
					}
				}
			}
			if took := time.Since(start); took > 5*time.Second {
				t.Fatalf("the errors took %v", took)
			}
			remove(t, path)
			if o := openSession(t, s).Opened(); o.Incarnation == h.Opened().Incarnation || o.Since.IsZero() {
				t.Fatalf("stamp %+v", o)
			}
		})
	}
}

// A file that is replaced after a call has found it in place is noticed within the transaction: nothing is written into the
// old one, nothing read from it.
func TestFileReplacedDuringACall(t *testing.T) {
	t.Parallel()
	path := tempPath(t)
	s := openStore(t, path)
	f, err := s.acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer s.release(f)
	remove(t, path)
	openStore(t, path)
	reached := func(*sqlstore.Tx) error { return errors.New("the call went on in the old file") }
	if err := f.write(t.Context(), reached); !errors.Is(err, errMoved) {
		t.Errorf("write: %v", err)
	}
	if err := f.read(t.Context(), reached); !errors.Is(err, errMoved) {
		t.Errorf("read: %v", err)
	}
}

// Content that was copied over the open file has the record of another file: that is data which was rolled back.
func TestRecordOfAnotherFileBeginsAnIncarnation(t *testing.T) {
	t.Parallel()
	path := tempPath(t)
	h := openSession(t, openStore(t, path))
	mustCommit(t, h, txn("k", nil))
	execRaw(t, raw(t, path), `UPDATE record SET identity = '1:2'`)
	r, err := h.Renew(t.Context(), backends.RenewRequest{Incarnation: h.Opened().Incarnation})
	if !errors.Is(err, backends.ErrIncarnation) || r.Since.IsZero() {
		t.Fatalf("renewal: %+v, %v", r, err)
	}
}

// freeze stops the whole process in the middle of a commit, while it holds the file's lock.
func freeze(path string) error {
	s, err := Open(path)
	if err != nil {
		return err
	}
	ctx := context.Background()
	return s.base().Write(ctx, func(t *sqlstore.Tx) error {
		t.Add(sqlstore.Statement{SQL: `INSERT INTO entries (grp, name, value, version, session, gone) VALUES (?, ?, ?, 1, ?, 0)`,
			Args: []any{[]byte("g"), []byte("of the frozen"), []byte("v"), []byte{}}})
		if err := t.Flush(); err != nil {
			return err
		}
		fmt.Println("frozen")
		return syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	})
}

// Others wait for a process that is frozen inside a commit: reads go on, writes end with their context, and go on after
// the thaw. Nothing is lost, and what the frozen one was writing is there.
func TestProcessFrozenInsideACommit(t *testing.T) {
	t.Parallel()
	path := tempPath(t)
	h := openSession(t, openStore(t, path))
	mustCommit(t, h, txn("before", nil))
	cmd := process(t, "freezer", path)
	out, err := cmd.StdoutPipe()
	if err != nil || cmd.Start() != nil {
		t.Fatal("cannot start a process", err)
	}
	defer func() { _ = cmd.Process.Kill() }()
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "frozen\n" {
		t.Fatal(line, err)
	}
	waittest.Until(t, "the process is stopped", func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", cmd.Process.Pid))
		return err == nil && strings.Contains(string(stat), ") T ")
	})
	for _, f := range []func(context.Context) error{
		func(ctx context.Context) error { _, err := h.Commit(ctx, request(h, txn("given up", nil))); return err },
		func(ctx context.Context) error {
			_, err := h.Renew(ctx, backends.RenewRequest{Incarnation: h.Opened().Incarnation})
			return err
		},
		func(ctx context.Context) error { _, err := h.Supersede(ctx, "n"); return err },
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		start := time.Now()
		err := f(ctx)
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, backends.ErrFatal) || errors.Is(err, backends.ErrUnknown) {
			t.Fatalf("a write beside a frozen process: %v", err)
		}
		if took := time.Since(start); took > 10*time.Second {
			t.Fatalf("it took %v", took)
		}
	}
	names := func() (names []string) {
		r, err := h.Read(t.Context(), backends.ReadRequest{Prefixes: []string{""}, NamesOnly: true})
		if err != nil {
			t.Fatalf("a read beside a frozen process: %v", err)
		}
		for _, e := range r.Entries {
			names = append(names, e.Key)
		}
		return names
	}
	if got := names(); len(got) != 1 {
		t.Fatalf("read %q", got)
	}
	waiting := make(chan error, 1)
	go func() {
		r, err := h.Commit(t.Context(), request(h, txn("waited", nil)))
		if err == nil {
			err = r.Results[0].Err
		}
		waiting <- err
	}()
	select {
	case err := <-waiting:
		t.Fatalf("a commit went through the lock of a frozen process: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	if err := cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if err := <-waiting; err != nil {
		t.Fatalf("the commit that waited: %v", err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("the frozen process: %v", err)
	}
	if got := strings.Join(names(), ", "); got != "before, of the frozen, waited" {
		t.Fatalf("read %q after the thaw", got)
	}
}

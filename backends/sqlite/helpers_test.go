package sqlite

import (
	"database/sql"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/backends"
)

func openStore(t testing.TB, path string, opts ...Option) *Store {
	t.Helper()
	s, err := Open(path, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func openSession(t testing.TB, s *Store) backends.Session {
	t.Helper()
	h, err := s.Open(t.Context(), backends.SessionOptions{Group: "g", Node: "n", TTL: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func txn(key string, value []byte) backends.Txn {
	return backends.Txn{Puts: []backends.Put{{Key: key, Value: value}}, Wake: []string{"a"}}
}

func request(h backends.Session, txns ...backends.Txn) backends.CommitRequest {
	return backends.CommitRequest{Incarnation: h.Opened().Incarnation, Txns: txns}
}

// mustCommit fails the test unless all transactions were applied.
func mustCommit(t testing.TB, h backends.Session, txns ...backends.Txn) {
	t.Helper()
	r, err := h.Commit(t.Context(), request(h, txns...))
	if err != nil {
		t.Fatal(err)
	}
	for _, res := range r.Results {
		if res.Err != nil {
			t.Fatal(res.Err)
		}
	}
}

// raw opens the file as any other program would.
func raw(t testing.TB, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func execRaw(t testing.TB, db *sql.DB, query string, args ...any) {
	t.Helper()
	if _, err := db.Exec(query, args...); err != nil {
		t.Fatal(err)
	}
}

func tempPath(t testing.TB) string { return filepath.Join(t.TempDir(), "store.db") }

// process is this test program once more, in a role.
func process(t testing.TB, role, path string, more ...string) *exec.Cmd {
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), "REBALANCER_TEST_ROLE="+role, "REBALANCER_TEST_PATH="+path)
	cmd.Env = append(cmd.Env, more...)
	cmd.Stderr = os.Stderr
	return cmd
}

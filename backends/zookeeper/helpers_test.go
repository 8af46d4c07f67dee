//go:build linux

package zookeeper

import (
	"context"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/backends"
)

const (
	// long is a TTL of sessions that are not to end in a test, however busy the machine is.
	long = time.Minute
	// patient lets a server grant such sessions. The benchmark does not even renew while it commits.
	patient = "maxSessionTimeout=3600000"
)

func openStore(t testing.TB, connect string, opts ...Option) *Store {
	t.Helper()
	s, err := Open(connect, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func openSession(t testing.TB, s *Store, node string, ttl time.Duration) *session {
	t.Helper()
	h, err := s.Open(t.Context(), backends.SessionOptions{Group: "g", Node: node, TTL: ttl})
	if err != nil {
		t.Fatal(err)
	}
	return h.(*session)
}

func put(key string, checks ...backends.Check) backends.Txn {
	return backends.Txn{Checks: checks, Puts: []backends.Put{{Key: key, Value: []byte("v")}}, Wake: []string{"a"}}
}

func bind(key string, checks ...backends.Check) backends.Txn {
	return backends.Txn{Checks: checks, Puts: []backends.Put{{Key: key, Value: []byte("v"), Bound: true}}}
}

func commitAll(ctx context.Context, h *session, txns ...backends.Txn) ([]backends.Result, error) {
	r, err := h.Commit(ctx, backends.CommitRequest{Incarnation: h.Opened().Incarnation, Txns: txns})
	return r.Results, err
}

// mustCommit fails the test unless all transactions were applied.
func mustCommit(t testing.TB, h *session, txns ...backends.Txn) []backends.Result {
	t.Helper()
	results, err := commitAll(t.Context(), h, txns...)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		if r.Err != nil {
			t.Fatal(r.Err)
		}
	}
	return results
}

func renew(ctx context.Context, h *session) error {
	_, err := h.Renew(ctx, backends.RenewRequest{Incarnation: h.Opened().Incarnation})
	return err
}

func mustRenew(t testing.TB, h *session) {
	t.Helper()
	if err := renew(t.Context(), h); err != nil {
		t.Fatal(err)
	}
}

// has tells whether a key is there.
func has(t testing.TB, h *session, key string) bool {
	t.Helper()
	r, err := h.Read(t.Context(), backends.ReadRequest{Keys: []string{key}})
	if err != nil {
		t.Fatal(err)
	}
	return len(r.Entries) == 1
}

// within is a context that ends after d, or with the test.
func within(t testing.TB, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

package sqlserver

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	_ "github.com/microsoft/go-mssqldb"
	"go.uber.org/goleak"

	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/internal/sqlservertest"
)

var databases sqlservertest.Maker

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func ask[T any](t testing.TB, db sqlservertest.Execer, query string, args ...any) (v T) {
	t.Helper()
	if err := db.QueryRowContext(t.Context(), query, args...).Scan(&v); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return v
}

func openStore(t testing.TB, dsn string, opts ...Option) *Store {
	t.Helper()
	s, err := Open(dsn, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

var places atomic.Int64

// newSchema is an odd name.
func newSchema() string { return fmt.Sprintf(`S "?%d" {t}é'.;`, places.Add(1)) }

// fresh is a store in a schema of its own.
func fresh(t testing.TB, dsn string, opts ...Option) *Store {
	t.Helper()
	return openStore(t, dsn, append([]Option{Schema(newSchema()), CreateSchema()}, opts...)...)
}

// withClockBehind sets back the clock by what is in d.
func withClockBehind(d *atomic.Int64) Option { return func(s *Store) { s.behind = d.Load } }

func session(t testing.TB, s *Store, node string, ttl time.Duration) backends.Session {
	t.Helper()
	h, err := s.Open(t.Context(), backends.SessionOptions{Group: "g", Node: node, TTL: ttl})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func claim(key string, checks ...backends.Check) backends.Txn {
	return backends.Txn{Checks: checks, Puts: []backends.Put{{Key: key, Value: []byte("v"), Bound: true}}}
}

func commitTo(ctx context.Context, h backends.Session, txns ...backends.Txn) ([]backends.Result, error) {
	r, err := h.Commit(ctx, backends.CommitRequest{Incarnation: h.Opened().Incarnation, Txns: txns})
	return r.Results, err
}

// must fails the test unless all was applied.
func must(t testing.TB, h backends.Session, txns ...backends.Txn) []backends.Result {
	t.Helper()
	rs, err := commitTo(t.Context(), h, txns...)
	for _, r := range rs {
		err = errors.Join(err, r.Err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return rs
}

func renew(ctx context.Context, h backends.Session, keys ...string) (backends.RenewReply, error) {
	return h.Renew(ctx, backends.RenewRequest{Incarnation: h.Opened().Incarnation, Keys: keys})
}

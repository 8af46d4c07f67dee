//go:build linux

package postgres

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/internal/sqlstore"
	"github.com/rebalancer-go/rebalancer/internal/testserver"
)

// fresh is a store in a schema of its own, on the server.
func fresh(t testing.TB, p *testserver.Postgres, opts ...Option) *Store {
	t.Helper()
	return openStore(t, p.URL("postgres", ""), append([]Option{Schema(newSchema()), CreateSchema()}, opts...)...)
}

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

func commit(ctx context.Context, h backends.Session, txns ...backends.Txn) ([]backends.Result, error) {
	r, err := h.Commit(ctx, backends.CommitRequest{Incarnation: h.Opened().Incarnation, Txns: txns})
	return r.Results, err
}

// must fails the test unless all was applied.
func must(t testing.TB, h backends.Session, txns ...backends.Txn) []backends.Result {
	t.Helper()
	rs, err := commit(t.Context(), h, txns...)
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

// connect is a connection beside the store.
func connect(t testing.TB, url string) *pgx.Conn {
	t.Helper()
	c, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.WithoutCancel(t.Context())) })
	return c
}

func exec(t testing.TB, c *pgx.Conn, s *Store, sql string, args ...any) int64 {
	t.Helper()
	tag, err := c.Exec(t.Context(), in(s.schema, sql), args...)
	if err != nil {
		t.Fatal(err)
	}
	return tag.RowsAffected()
}

func ask[T any](t testing.TB, c *pgx.Conn, s *Store, sql string, args ...any) (v T) {
	t.Helper()
	if err := c.QueryRow(t.Context(), in(s.schema, sql), args...).Scan(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

// waits tells whether a statement on the store's tables waits for a lock.
func waits(t testing.TB, c *pgx.Conn, s *Store) bool {
	return ask[bool](t, c, s, `SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND strpos(query, $1) > 0`, quote(s.schema))
}

type (
	sqlstoreTx        = sqlstore.Tx
	sqlstoreStatement = sqlstore.Statement
	conn              = pgx.Conn
	connConfig        = pgx.ConnConfig
)

var errSecondTry = errors.New("tried again")

func keysNamed(names ...string) (keys []sqlstore.Key) {
	for _, n := range names {
		keys = append(keys, sqlstore.Key{Name: n, Write: true})
	}
	return keys
}

func keyNumber(i int) string { return fmt.Sprintf("key %06d", i) }

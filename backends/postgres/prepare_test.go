//go:build linux

package postgres

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/internal/testserver"
	"github.com/rebalancer-go/rebalancer/internal/waittest"
)

// one is added to a URL: a pool of one connection.
const one = "&pool_max_conns=1"

// preparedOn gives the statements that are prepared on the store's only pooled connection, by how often a plan was made for them.
func preparedOn(t *testing.T, s *Store) map[string]int64 {
	t.Helper()
	rows, err := s.pool.Query(t.Context(), `SELECT statement, custom_plans FROM pg_prepared_statements WHERE name LIKE 'rebalancer%'`, pgx.QueryExecModeExec)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]int64{}
	var statement string
	var plans int64
	if _, err := pgx.ForEachRow(rows, []any{&statement, &plans}, func() error { found[statement] = plans; return nil }); err != nil {
		t.Fatal(err)
	}
	return found
}

// work does a little of everything.
func work(t *testing.T, h backends.Session) {
	t.Helper()
	for range 10 {
		must(t, h, claim("k"), claim("l", backends.Check{Key: "absent"}))
		if _, err := h.Read(t.Context(), backends.ReadRequest{Keys: []string{"k"}, Prefixes: []string{"a"}}); err != nil {
			t.Fatal(err)
		}
		if _, err := renew(t.Context(), h, "k"); err != nil {
			t.Fatal(err)
		}
	}
}

// A connection that leads straight to the server keeps its statements, in no more round trips (TestRoundTrips) and not more than it needs.
func TestStatementsArePrepared(t *testing.T) {
	t.Parallel()
	p := testserver.StartPostgres(t, 15)
	s := openStore(t, p.URL("postgres", "")+one, Schema(newSchema()), CreateSchema())
	h := session(t, s, "n", time.Minute)
	work(t, h)
	first := preparedOn(t, s)
	if n := len(first); n < 8 || n > 30 {
		t.Errorf("%d statements are prepared, want about a dozen", n)
	}
	work(t, h)
	second := preparedOn(t, s)
	if len(second) != len(first) {
		t.Errorf("%d statements are prepared, then %d", len(first), len(second))
	}
	for statement, plans := range second {
		if plans > first[statement] {
			t.Errorf("it was planned again: %s", statement)
		}
	}
	if !s.prepares.Load() {
		t.Error("the store has given up preparing")
	}
}

// A plan that was made while there was next to nothing, and is kept, serves as well when there is much: it looks entries up by their whole keys.
func TestPreparedPlansServeLargeGroups(t *testing.T) {
	t.Parallel()
	p := testserver.StartPostgres(t, 15, "-c", "autovacuum=off")
	s := openStore(t, p.URL("postgres", "")+one, Schema(newSchema()), CreateSchema())
	h := session(t, s, "n", 10*time.Minute)
	work(t, h)
	var all backends.Txn
	for i := range 10_000 {
		all.Puts = append(all.Puts, backends.Put{Key: keyNumber(i), Value: []byte("v")})
	}
	must(t, h, all)
	read := func() int64 { // rows of entries that were read
		return ask[int64](t, connect(t, p.URL("postgres", "")), s, `SELECT (seq_tup_read + idx_tup_fetch)::bigint FROM pg_stat_user_tables WHERE relid = '{t}entries'::regclass`)
	}
	settled := func() (n int64) {
		waittest.Until(t, "the statistics are up to date", func() bool { n = read(); <-time.After(1100 * time.Millisecond); return n == read() })
		return n
	}
	before := settled()
	for range 10 {
		if _, err := h.Read(t.Context(), backends.ReadRequest{Keys: []string{"k", keyNumber(1)}}); err != nil {
			t.Fatal(err)
		}
		if _, err := renew(t.Context(), h, "k"); err != nil {
			t.Fatal(err)
		}
	}
	if n := settled() - before; n > 500 {
		t.Errorf("10 reads and 10 renewals of a few entries read %d", n)
	}
}

// Behind a pooler, where the settings say no, and where a hook of the pool discards what is prepared, all goes on without.
func TestStatementsAreNotPrepared(t *testing.T) {
	t.Parallel()
	p := testserver.StartPostgres(t, 15)
	schema := newSchema()
	created(t, p, schema)
	_, transaction := testserver.StartPgBouncer(t, p, "transaction")
	_, whole := testserver.StartPgBouncer(t, p, "session")
	for what, url := range map[string]string{
		"pooler in transaction mode": p.URLAt(transaction, "postgres", ""),
		"pooler in session mode":     p.URLAt(whole, "postgres", ""),
		"exec mode":                  p.URL("postgres", "") + "&default_query_exec_mode=exec",
		"no cache":                   p.URL("postgres", "") + "&statement_cache_capacity=0",
	} {
		s := openStore(t, url+one, Schema(schema))
		work(t, session(t, s, "n", time.Minute))
		if found := preparedOn(t, s); len(found) > 0 {
			t.Errorf("%s: %d statements are prepared", what, len(found))
		}
	}
	config, err := pgxpool.ParseConfig(p.URL("postgres", "") + one)
	if err != nil {
		t.Fatal(err)
	}
	config.PrepareConn = func(ctx context.Context, c *pgx.Conn) (bool, error) {
		_, err := c.Exec(ctx, `DISCARD ALL`, pgx.QueryExecModeExec)
		return true, err
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	s, err := New(pool, Schema(schema))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	work(t, session(t, s, "n", time.Minute))
	if s.prepares.Load() {
		t.Error("the store prepares although what it prepared is gone each time")
	}
}

// What is prepared has a name that nothing else has: whoever finds the name finds this statement.
func TestNamesOfStatements(t *testing.T) {
	t.Parallel()
	k := &known{direct: true, prepared: map[string]bool{}}
	a, b := k.name(&sqlstoreStatement{}, "SELECT 1"), k.name(&sqlstoreStatement{}, "SELECT 2")
	if a == b || a == "" || a != k.name(&sqlstoreStatement{}, "SELECT 1") || len(a) > 63 || strings.ContainsAny(a, ` "'-`) {
		t.Errorf("names %q and %q", a, b)
	}
	for range mostPrepared {
		k.prepared[strings.Repeat("x", len(k.prepared)+1)] = true
	}
	for _, none := range []string{k.name(&sqlstoreStatement{}, "SELECT 3"), k.name(&sqlstoreStatement{Growing: true}, "SELECT 1"), k.name(&sqlstoreStatement{}, "BEGIN"),
		(*known)(nil).name(&sqlstoreStatement{}, "SELECT 1"), (&known{}).name(&sqlstoreStatement{}, "SELECT 1")} {
		if none != "" {
			t.Errorf("a statement is to be prepared as %q", none)
		}
	}
}

//go:build linux

package postgres

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/internal/testserver"
	"github.com/rebalancer-go/rebalancer/internal/waittest"
)

// A pool that its user has emptied stops neither renewals nor the hints that come in.
func TestBusyPool(t *testing.T) {
	t.Parallel()
	p := testserver.StartPostgres(t, 15)
	config, err := pgxpool.ParseConfig(p.URL("postgres", ""))
	if err != nil {
		t.Fatal(err)
	}
	config.MaxConns = 1
	var befores, afters atomic.Int64 // the own connection is made as those of the pool
	config.BeforeConnect = func(context.Context, *connConfig) error { befores.Add(1); return nil }
	config.AfterConnect = func(context.Context, *conn) error { afters.Add(1); return nil }
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	s, err := New(pool, CreateSchema())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	h := session(t, s, "n", time.Minute)
	var hints atomic.Int64
	if err := h.Listen(t.Context(), "a", func() { hints.Add(1) }); err != nil {
		t.Fatal(err)
	}
	busy, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if _, err := renew(t.Context(), h); err != nil {
			t.Fatalf("renewal: %v", err)
		}
	}
	other := session(t, openStore(t, p.URL("postgres", "")), "m", time.Minute)
	must(t, other, backends.Txn{Puts: []backends.Put{{Key: "k"}}, Wake: []string{"a"}})
	waittest.Until(t, "a hint arrived", func() bool { return hints.Load() > 0 })
	err = within(t, 300*time.Millisecond, func(ctx context.Context) error { _, err := commit(ctx, h, claim("k")); return err })
	if err == nil || !strings.Contains(err.Error(), "1 of 1 are in use") {
		t.Errorf("a commit while the pool is empty: %v", err)
	}
	busy.Release()
	if befores.Load() != 2 || afters.Load() != 2 {
		t.Errorf("%d and %d calls of the pool's hooks, want 2: one connection of the pool and one more", befores.Load(), afters.Load())
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := pool.Ping(t.Context()); err != nil {
		t.Errorf("the user's pool after the store was closed: %v", err)
	}
}

// Hints survive a cut of the connection: it listens again, and hints once at everybody for what it may have missed.
func TestHintsAfterACut(t *testing.T) {
	t.Parallel()
	p := testserver.StartPostgres(t, 15)
	link := testserver.Proxy(t, p.Addr())
	schema := newSchema()
	s := openStore(t, p.URLAt(link.Addr(), "postgres", ""), Schema(schema), CreateSchema())
	h := session(t, s, "n", time.Minute)
	var hints atomic.Int64
	if err := h.Listen(t.Context(), "a", func() { hints.Add(1) }); err != nil {
		t.Fatal(err)
	}
	link.Cut()
	link.Heal()
	waittest.Until(t, "it was hinted at after the cut", func() bool { return hints.Load() > 0 })
	other := session(t, openStore(t, p.URL("postgres", ""), Schema(schema)), "m", time.Minute)
	before := hints.Load()
	must(t, other, backends.Txn{Puts: []backends.Put{{Key: "k"}}, Wake: []string{"a"}})
	waittest.Until(t, "a hint arrived", func() bool { return hints.Load() > before })
}

// NOTIFY has a transaction of its own, after the commits that it is for, and one serves many of them. A listener hears only of its own address.
func TestHintsAreSentAfterCommitsAndTogether(t *testing.T) {
	t.Parallel()
	p := testserver.StartPostgres(t, 15, "-c", "log_statement=all", "-c", "log_line_prefix=[%p] ", "-c", "max_connections=200")
	s := fresh(t, p)
	there := openStore(t, p.URL("postgres", ""), Schema(s.schema))
	h := session(t, s, "n", time.Minute)
	listener := session(t, there, "m", time.Minute)
	var hints, others atomic.Int64
	if err := listener.Listen(t.Context(), "a", func() { hints.Add(1) }); err != nil {
		t.Fatal(err)
	}
	if err := listener.Listen(t.Context(), "b", func() { others.Add(1) }); err != nil {
		t.Fatal(err)
	}
	const commits = 200
	var wg sync.WaitGroup
	for i := range commits {
		wg.Go(func() {
			rs, err := commit(t.Context(), h, backends.Txn{Puts: []backends.Put{{Key: keyNumber(i)}}, Wake: []string{"a"}})
			if err != nil || rs[0].Err != nil {
				t.Errorf("%v, %v", rs, err)
			}
		})
	}
	wg.Wait()
	waittest.Until(t, "a hint arrived", func() bool { return hints.Load() > 0 })
	if others.Load() != 0 {
		t.Errorf("%d hints for another address", others.Load())
	}
	sent := 0
	inside := map[string]bool{} // by process: whether the transaction wrote something
	line := regexp.MustCompile(`^\[(\d+)\] LOG:  execute <unnamed>: (\w+)(.*)`)
	for _, text := range strings.Split(p.Output(), "\n") {
		m := line.FindStringSubmatch(text)
		switch {
		case m == nil:
		case m[2] == "BEGIN" || m[2] == "COMMIT":
			inside[m[1]] = false
		case m[2] == "UPDATE" || m[2] == "INSERT" || m[2] == "DELETE":
			inside[m[1]] = true
		case strings.Contains(m[3], "pg_notify"):
			if sent++; inside[m[1]] {
				t.Fatal("a notification within a commit")
			}
		}
	}
	if sent == 0 || sent > commits/2 {
		t.Errorf("%d notifications for %d commits", sent, commits)
	}
}

// Above a number of processes nobody listens or notifies; below it they begin again.
func TestManyProcessesPoll(t *testing.T) {
	t.Parallel()
	p := testserver.StartPostgres(t, 15)
	schema := newSchema()
	few := func(s *Store) { s.mostProcesses, s.countEvery = 2, 50*time.Millisecond }
	open := func() *Store { return openStore(t, p.URL("postgres", ""), Schema(schema), CreateSchema(), few) }
	var hints atomic.Int64
	first := session(t, open(), "1", time.Minute)
	if err := first.Listen(t.Context(), "a", func() { hints.Add(1) }); err != nil {
		t.Fatal(err)
	}
	second, third := session(t, open(), "2", time.Minute), session(t, open(), "3", time.Minute)
	if err := third.Listen(t.Context(), "a", func() {}); !errors.Is(err, backends.ErrNoHints) || !strings.Contains(err.Error(), "processes") {
		t.Fatalf("Listen as the third of at most two: %v", err)
	}
	c := connect(t, p.URL("postgres", ""))
	quiet := func() bool {
		return ask[int](t, c, &Store{schema: schema}, `SELECT count(*)::int FROM pg_stat_activity WHERE query LIKE 'UNLISTEN%'`) == 1
	}
	waittest.Until(t, "the first stopped listening", quiet)
	for _, h := range []backends.Session{second, third} {
		if err := h.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	other := session(t, openStore(t, p.URL("postgres", ""), Schema(schema)), "4", time.Minute)
	if err := first.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	again := session(t, open(), "1", time.Minute)
	waittest.Until(t, "it may listen again", func() bool { return again.Listen(t.Context(), "b", func() { hints.Add(1) }) == nil })
	waittest.Until(t, "a hint arrived", func() bool {
		must(t, other, backends.Txn{Puts: []backends.Put{{Key: "k"}}, Wake: []string{"b"}})
		return hints.Load() > 0
	})
}

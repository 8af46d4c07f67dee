//go:build linux

package postgres

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/backends/storetest"
	"github.com/rebalancer-go/rebalancer/internal/testserver"
	"github.com/rebalancer-go/rebalancer/internal/waittest"
)

// Behind PgBouncer in transaction mode everything works but hints, and that is noticed.
func TestContractBehindPgBouncer(t *testing.T) {
	t.Parallel()
	p := testserver.StartPostgres(t, 15, "-c", "max_connections=200")
	t.Cleanup(func() { noDeadlock(t, p) })
	_, addr := testserver.StartPgBouncer(t, p, "transaction")
	storetest.Run(t, storetest.Driver{TTL: 3 * time.Second, Rounds: 5, Place: func(t *testing.T) storetest.Place {
		schema := newSchema()
		created(t, p, schema)
		var behind atomic.Int64
		return storetest.Place{
			Open: func(t *testing.T) backends.Store {
				return openStore(t, p.URLAt(addr, "postgres", ""), Schema(schema), withClockBehind(&behind))
			},
			Lose:     func(t *testing.T) { p.Exec(t, in(schema, "TRUNCATE {t}record, {t}sessions, {t}entries")) },
			RollBack: func(t *testing.T) func(*testing.T) { return dump(t, p, schema) },
			StepBack: func(_ *testing.T, d time.Duration) { behind.Add(d.Microseconds()) },
			Rows:     rows(p.URLAt(addr, "postgres", ""), schema),
			Cannot:   map[storetest.Ability]string{storetest.Hints: "PgBouncer in transaction mode passes no notifications on"},
		}
	}})
}

// In session mode hints work.
func TestHintsBehindPgBouncerInSessionMode(t *testing.T) {
	t.Parallel()
	p := testserver.StartPostgres(t, 15)
	_, session2 := testserver.StartPgBouncer(t, p, "session")
	_, transaction := testserver.StartPgBouncer(t, p, "transaction")
	schema := newSchema()
	created(t, p, schema)
	h := session(t, openStore(t, p.URLAt(session2, "postgres", ""), Schema(schema)), "n", time.Minute)
	polling := session(t, openStore(t, p.URLAt(transaction, "postgres", ""), Schema(schema)), "m", time.Minute)
	var hints atomic.Int64
	if err := h.Listen(t.Context(), "a", func() { hints.Add(1) }); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	if err := polling.Listen(t.Context(), "a", func() {}); !errors.Is(err, backends.ErrNoHints) || !strings.Contains(err.Error(), "pooler") {
		t.Fatalf("Listen in transaction mode: %v", err)
	}
	if err := polling.Listen(t.Context(), "b", func() {}); !errors.Is(err, backends.ErrNoHints) || time.Since(start) > 2*probeFor {
		t.Fatalf("Listen once more, after %v: %v", time.Since(start), err)
	}
	before := hints.Load()
	must(t, polling, backends.Txn{Puts: []backends.Put{{Key: "k"}}, Wake: []string{"a"}}) // who polls hints at those who do not
	waittest.Until(t, "a hint arrived", func() bool { return hints.Load() > before })
}

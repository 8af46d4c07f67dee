//go:build linux

package stores

import (
	"database/sql"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/rebalancer-go/rebalancer/admin"
	"github.com/rebalancer-go/rebalancer/group"
	"github.com/rebalancer-go/rebalancer/internal/testserver"
)

// counters are what a server has counted since it started.
type counters struct{ operations, bytes int64 }

// Many nodes share one store in this process, and very many resources. It settles, and a table says what that costs the server: at rest, and while a node
// joins. The long version has 1,000 nodes and 20,000 resources on Redis, 200 and 5,000 on PostgreSQL.
func TestScale(t *testing.T) {
	for _, c := range []struct {
		name             string
		nodes, resources int
		long, longRes    int
		start            func(t *testing.T) (*system, func() counters)
	}{
		{"redis-7.0", 100, 2_000, 1_000, 20_000, scaleRedis},
		{"postgres-15", 20, 500, 200, 5_000, scalePostgres},
	} {
		if !strings.HasPrefix(c.name, *only) {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			nodes, resources := c.nodes, c.resources
			if *soak {
				nodes, resources = c.long, c.longRes
			}
			sys, count := c.start(t)
			if !*soak {
				sys.ttl = 6 * time.Second
			}
			scale(t, sys, count, nodes, resources)
		})
	}
}

func scaleRedis(t *testing.T) (*system, func() counters) {
	s := testserver.StartRedis(t, testserver.Redis)
	sys := &system{group: "g", ttl: 30 * time.Second, addr: s.Addr(), open: openRedis}
	return sys, func() counters {
		info := s.Must("INFO", "stats")
		return counters{infoOf(t, info, "total_commands_processed"), infoOf(t, info, "total_net_input_bytes") + infoOf(t, info, "total_net_output_bytes")}
	}
}

// infoOf reads a number from the answer of INFO.
func infoOf(t *testing.T, info, name string) int64 {
	t.Helper()
	_, after, ok := strings.Cut(info, name+":")
	n, err := strconv.ParseInt(strings.TrimSpace(strings.SplitN(after, "\n", 2)[0]), 10, 64)
	if !ok || err != nil {
		t.Fatalf("INFO has no %s: %v", name, err)
	}
	return n
}

func scalePostgres(t *testing.T) (*system, func() counters) {
	s := testserver.StartPostgres(t, 15)
	db, err := sql.Open("pgx", s.URL("postgres", ""))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	sys := &system{group: "g", ttl: 30 * time.Second, addr: s.Addr(), open: openPostgres(s)}
	return sys, func() (c counters) {
		t.Helper()
		const all = `SELECT (SELECT xact_commit FROM pg_stat_database WHERE datname = 'postgres'), pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::bigint`
		if err := db.QueryRow(all).Scan(&c.operations, &c.bytes); err != nil {
			t.Fatal(err)
		}
		return c
	}
}

func scale(t *testing.T, sys *system, count func() counters, nodes, resources int) {
	f := newFleet(t, sys, false)
	f.common = sys.open(t, sys.addr)
	defer f.common.Close()
	defer f.stopAll()
	report := func(what string, do func()) {
		t.Helper()
		before, began := count(), time.Now()
		do()
		took, after := time.Since(began), count()
		t.Logf("%4d nodes, %5d resources, %-22s %8v %8.0f operations/s %10.0f bytes/s", nodes, resources, what, took.Round(10*time.Millisecond),
			float64(after.operations-before.operations)/took.Seconds(), float64(after.bytes-before.bytes)/took.Seconds())
	}
	first := f.start("n0", group.Registered())
	f.until("the first node is a member", time.Minute, func() bool { return first.Status().Applied })
	if _, err := admin.AddResources(t.Context(), f.common, sys.group, names(resources)...); err != nil {
		t.Fatal(err)
	}
	report("one node takes all", func() { f.evenly("in balance", 10*time.Minute, resources) })
	report("all the others join", func() {
		for i := 1; i < nodes; i++ {
			f.start(fmt.Sprintf("n%d", i), group.Registered())
		}
		f.evenly("in balance", 10*time.Minute, resources)
	})
	report("at rest", func() { time.Sleep(sys.ttl) }) // what is measured, not a synchronisation
	report("one more joins", func() { f.start("more", group.Registered()); f.evenly("in balance", 10*time.Minute, resources) })
	report("one leaves", func() { f.stop("more"); f.evenly("in balance", 10*time.Minute, resources) })
}

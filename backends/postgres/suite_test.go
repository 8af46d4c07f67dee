package postgres

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/backends/storetest"
	"github.com/rebalancer-go/rebalancer/internal/sqlstore"
	"github.com/rebalancer-go/rebalancer/internal/testserver"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

func TestContractOnPostgres15(t *testing.T) { t.Parallel(); contract(t, 15) }

func TestContractOnPostgres17(t *testing.T) { t.Parallel(); contract(t, 17) }

// contract runs the suite: the cases that lose data on a server of their own, whose files are lost or rolled back, the others in schemas of one.
func contract(t *testing.T, version int) {
	shared := testserver.StartPostgres(t, version, "-c", "max_connections=300")
	storetest.Run(t, storetest.Driver{TTL: 3 * time.Second, Rounds: 10, Place: func(t *testing.T) storetest.Place {
		for _, word := range []string{"Loss", "RollBack", "AllAgree", "Abilities"} {
			if strings.Contains(t.Name(), word) {
				return place(t, testserver.StartPostgres(t, version))
			}
		}
		return place(t, shared)
	}})
}

var places atomic.Int64

// withClockBehind sets back the clock by what is in d.
func withClockBehind(d *atomic.Int64) Option { return func(s *Store) { s.behind = d.Load } }

func place(t *testing.T, p *testserver.Postgres) storetest.Place {
	schema := fmt.Sprintf(`S "%d" é.;`, places.Add(1))
	var behind atomic.Int64
	open := func(t *testing.T) *Store {
		t.Helper()
		s, err := Open(p.URL("postgres", ""), Schema(schema), CreateSchema(), withClockBehind(&behind))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	made := func(t *testing.T) { // so that a copy of the files has the tables
		s := open(t)
		defer s.Close()
		if err := s.Create(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return storetest.Place{
		Open: func(t *testing.T) backends.Store { return open(t) },
		Lose: func(t *testing.T) {
			p.Exec(t, "DROP SCHEMA "+quote(schema)+" CASCADE")
			p.Restart()
		},
		RollBack: func(t *testing.T) func(*testing.T) {
			made(t)
			restore := p.Copy()
			return func(*testing.T) { restore() }
		},
		StepBack: func(_ *testing.T, d time.Duration) { behind.Add(d.Microseconds()) },
		Rows: func(t *testing.T) int {
			s := open(t)
			defer s.Close()
			n, err := sqlstore.Rows(t.Context(), base{s})
			if err != nil {
				t.Fatal(err)
			}
			return n
		},
	}
}

// exec runs statements on a connection of the store's pool.
func (s *Store) exec(t testing.TB, sql string) {
	t.Helper()
	err := s.pooled(t.Context(), func(c *pgconn.PgConn) error { return c.Exec(context.WithoutCancel(t.Context()), in(s.schema, sql)).Close() })
	if err != nil {
		t.Fatal(err)
	}
}

//go:build linux

package postgres

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/backends/storetest"
	"github.com/rebalancer-go/rebalancer/internal/sqlstore"
	"github.com/rebalancer-go/rebalancer/internal/testserver"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, testserver.Leftovers()...)
}

func TestContractOnPostgres15(t *testing.T) { t.Parallel(); contract(t, 15) }

func TestContractOnPostgres17(t *testing.T) { t.Parallel(); contract(t, 17) }

// contract runs the suite as a role that has the printed grants alone, in schemas of one server, whose tables are dropped or restored as from a dump, and the cases about loss again on servers
// of their own, which are killed and started over older files.
func contract(t *testing.T, version int) {
	shared := testserver.StartPostgres(t, version, "-c", "max_connections=300")
	shared.Exec(t, `CREATE ROLE "a user" LOGIN`)
	t.Cleanup(func() { noDeadlock(t, shared) })
	storetest.Run(t, storetest.Driver{TTL: 3 * time.Second, Rounds: 10, Place: func(t *testing.T) storetest.Place {
		pl, schema := place(shared, "a user")
		make := func(t *testing.T) { shared.Exec(t, DDL(schema)+Grants(schema, "a user")) }
		make(t)
		pl.Lose = func(t *testing.T) {
			shared.Exec(t, "DROP SCHEMA "+quote(schema)+" CASCADE")
			make(t)
		}
		pl.RollBack = func(t *testing.T) func(*testing.T) { return dump(t, shared, schema) }
		return pl
	}})
	t.Run("Files", func(t *testing.T) {
		t.Parallel()
		template := testserver.StartPostgres(t, version)
		template.Stop()
		storetest.Run(t, storetest.Driver{TTL: 15 * time.Second, Only: aboutLoss, Place: func(t *testing.T) storetest.Place {
			p := template.Clone(t)
			pl, schema := place(p, "postgres")
			empty := p.Copy()
			pl.Lose = func(*testing.T) { empty() }
			pl.RollBack = func(t *testing.T) func(*testing.T) {
				created(t, p, schema)
				restore := p.Copy()
				return func(*testing.T) { restore() }
			}
			return pl
		}})
	})
}

// noDeadlock fails if the server had to break one: everybody takes locks in one order.
func noDeadlock(t *testing.T, p *testserver.Postgres) {
	t.Helper()
	if _, after, found := strings.Cut(p.Output(), "deadlock detected"); found {
		t.Errorf("a deadlock: %.2000s", after)
	}
}

func aboutLoss(name string) bool {
	return strings.Contains(name, "Loss") || strings.Contains(name, "RollBack") || name == "AllAgreeOnTheIncarnation"
}

// dump copies the rows; the function that it returns puts them back into the tables, with a server that runs on.
func dump(t *testing.T, p *testserver.Postgres, schema string) (restore func(*testing.T)) {
	created(t, p, schema)
	var save, load string
	for _, table := range []string{"record", "sessions", "entries"} {
		save += "CREATE TABLE {t}saved_" + table + " AS SELECT * FROM {t}" + table + ";"
		load += "INSERT INTO {t}" + table + " SELECT * FROM {t}saved_" + table + ";"
	}
	p.Exec(t, in(schema, save))
	return func(t *testing.T) {
		p.Exec(t, in(schema, "BEGIN; TRUNCATE {t}record, {t}sessions, {t}entries; "+load+" COMMIT"))
	}
}

// created makes sure that the tables are there.
func created(t *testing.T, p *testserver.Postgres, schema string) {
	t.Helper()
	s := openStore(t, p.URL("postgres", ""), Schema(schema))
	if err := s.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func openStore(t testing.TB, url string, opts ...Option) *Store {
	t.Helper()
	s, err := Open(url, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

var places atomic.Int64

// newSchema is an odd name.
func newSchema() string { return fmt.Sprintf(`S "%d" é.;`, places.Add(1)) }

// withClockBehind sets back the clock by what is in d.
func withClockBehind(d *atomic.Int64) Option { return func(s *Store) { s.behind = d.Load } }

// place is a schema of its own, without loss and rollback, that is used as a role.
func place(p *testserver.Postgres, role string) (storetest.Place, string) {
	schema := newSchema()
	var behind atomic.Int64
	return storetest.Place{
		Open: func(t *testing.T) backends.Store {
			return openStore(t, p.URL(role, ""), Schema(schema), CreateSchema(), withClockBehind(&behind))
		},
		StepBack: func(_ *testing.T, d time.Duration) { behind.Add(d.Microseconds()) },
		Rows:     rows(p.URL(role, ""), schema),
	}, schema
}

func rows(url, schema string) func(*testing.T) int {
	return func(t *testing.T) int {
		n, err := sqlstore.Rows(t.Context(), base{openStore(t, url, Schema(schema))})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
}

package sqlserver

import (
	"flag"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/backends/storetest"
	"github.com/rebalancer-go/rebalancer/internal/sqlservertest"
	"github.com/rebalancer-go/rebalancer/internal/sqlstore"
)

// A server that is slow, or busy, needs a longer ttl.
var (
	ttl    = flag.Duration("ttl", 6*time.Second, "of the sessions of the contract's cases")
	rounds = flag.Int("rounds", 10, "of the contract's cases that race")
)

func TestContractWithRowVersions(t *testing.T) { t.Parallel(); contract(t, true) }

func TestContractWithoutRowVersions(t *testing.T) { t.Parallel(); contract(t, false) }

func contract(t *testing.T, rowVersions bool) {
	dsn := databases.Database(t, rowVersions)
	storetest.Run(t, storetest.Driver{TTL: *ttl, Rounds: *rounds, Place: func(*testing.T) storetest.Place {
		schema := newSchema()
		var behind atomic.Int64
		return storetest.Place{
			Open: func(t *testing.T) backends.Store {
				return openStore(t, dsn, Schema(schema), CreateSchema(), withClockBehind(&behind))
			},
			StepBack: func(_ *testing.T, d time.Duration) { behind.Add(d.Microseconds()) },
			Rows: func(t *testing.T) int {
				n, err := sqlstore.Rows(t.Context(), base{openStore(t, dsn, Schema(schema))})
				if err != nil {
					t.Fatal(err)
				}
				return n
			},
			Lose: func(t *testing.T) {
				db := sqlservertest.Connect(t, dsn)
				for _, table := range []string{"record", "sessions", "entries"} {
					sqlservertest.Exec(t, db, in(schema, "DROP TABLE {t}"+table))
				}
			},
			RollBack: func(t *testing.T) func(*testing.T) { return export(t, dsn, schema) },
			Cannot:   map[storetest.Ability]string{storetest.Hints: "the server has nothing that wakes a client"},
		}
	}})
}

// columns are those that an export of a table has: what the server itself gives a row is not among them.
var columns = map[string]string{
	"record":   "one, format, incarnation, since, origin, fork",
	"sessions": "id, grp, node, expires, ttl, touched, opened, superseded, proof",
	"entries":  "grp, name, value, version, session, gone",
}

// export copies the rows; the function that it returns puts them back into the tables.
func export(t *testing.T, dsn, schema string) (restore func(*testing.T)) {
	if err := openStore(t, dsn, Schema(schema)).Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	db := sqlservertest.Connect(t, dsn)
	for table, list := range columns {
		sqlservertest.Exec(t, db, in(schema, "SELECT "+list+" INTO {t}saved_"+table+" FROM {t}"+table))
	}
	return func(t *testing.T) {
		text := "SET XACT_ABORT ON; BEGIN TRANSACTION;"
		for table, list := range columns {
			text += "DELETE FROM {t}" + table + "; INSERT INTO {t}" + table + " (" + list + ") SELECT " + list + " FROM {t}saved_" + table + ";"
		}
		sqlservertest.Exec(t, sqlservertest.Connect(t, dsn), in(schema, text+"COMMIT"))
	}
}

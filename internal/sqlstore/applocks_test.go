//go:build linux

package sqlstore_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"hash/fnv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/backends/storetest"
	"github.com/rebalancer-go/rebalancer/internal/sqlstore"
	"github.com/rebalancer-go/rebalancer/internal/testserver"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, testserver.Leftovers()...) }

// The contract over a database that has application locks and conditional statements, but no SELECT that locks rows, as package sqlserver uses it. It is
// played here by PostgreSQL, whose statements see row versions, with a Base as small as one can be.
func TestContractWithApplicationLocks(t *testing.T) {
	t.Parallel()
	p := testserver.StartPostgres(t, 15, "-c", "max_connections=300")
	var places atomic.Int64
	storetest.Run(t, storetest.Driver{TTL: 6 * time.Second, Rounds: 10, Place: func(*testing.T) storetest.Place {
		schema := fmt.Sprintf("s%d", places.Add(1))
		var behind atomic.Int64
		dsn := p.URL("postgres", "")
		p.Exec(t, fmt.Sprintf("CREATE SCHEMA %s", schema))
		p.Exec(t, fmt.Sprintf(applockTables, schema))
		open := func(t *testing.T) *applockStore {
			db, err := sql.Open("pgx", dsn)
			if err != nil {
				t.Fatal(err)
			}
			s := &applockStore{db: db, schema: schema, behind: &behind}
			s.ctx, s.cancel = context.WithCancel(context.Background())
			t.Cleanup(func() { _ = s.Close() })
			return s
		}
		return storetest.Place{
			Open:     func(t *testing.T) backends.Store { return open(t) },
			StepBack: func(_ *testing.T, d time.Duration) { behind.Add(d.Microseconds()) },
			Rows: func(t *testing.T) int {
				n, err := sqlstore.Rows(t.Context(), open(t))
				if err != nil {
					t.Fatal(err)
				}
				return n
			},
			Lose: func(t *testing.T) {
				p.Exec(t, fmt.Sprintf("TRUNCATE %[1]s.record, %[1]s.sessions, %[1]s.entries", schema))
			},
			Cannot: map[storetest.Ability]string{storetest.Hints: "none were built", storetest.RollBack: "the drivers' own tests do it"},
		}
	}})
}

const applockTables = `
CREATE TABLE %[1]s.record (one smallint PRIMARY KEY, incarnation text NOT NULL, since bigint NOT NULL);
CREATE TABLE %[1]s.sessions (id bytea PRIMARY KEY, grp bytea NOT NULL, node bytea NOT NULL, expires bigint NOT NULL, ttl bigint NOT NULL,
	touched bigint NOT NULL, opened bigint NOT NULL, superseded smallint NOT NULL, proof bytea NOT NULL);
CREATE TABLE %[1]s.entries (grp bytea NOT NULL, name bytea NOT NULL, value bytea NOT NULL, version bigint NOT NULL, session bytea NOT NULL,
	gone smallint NOT NULL, PRIMARY KEY (grp, name))`

type applockStore struct {
	db     *sql.DB
	schema string
	behind *atomic.Int64
	ctx    context.Context
	cancel context.CancelFunc
	once   sync.Once
}

func (s *applockStore) Open(ctx context.Context, o backends.SessionOptions) (backends.Session, error) {
	return sqlstore.Open(ctx, s, o)
}
func (s *applockStore) Groups(ctx context.Context) ([]string, error) { return sqlstore.Groups(ctx, s) }
func (s *applockStore) Close() error {
	s.once.Do(func() { s.cancel(); _ = s.db.Close() })
	return nil
}

func (s *applockStore) dialect() sqlstore.Dialect {
	clock := func(of string) string {
		return fmt.Sprintf("((extract(epoch FROM %s) * 1000000)::bigint - %d)", of, s.behind.Load())
	}
	lock := func(shared string, names ...string) sqlstore.Statement {
		h := fnv.New64a()
		fmt.Fprintf(h, "%q %q", s.schema, names)
		return sqlstore.Statement{SQL: `SELECT pg_advisory_xact_lock` + shared + `(?)`, Args: []any{int64(h.Sum64())}}
	}
	return sqlstore.Dialect{
		Tables: s.schema + ".", Now: clock("now()"), Wall: clock("clock_timestamp()"),
		Incarnation: "(SELECT incarnation FROM " + s.schema + ".record)", KeysHold: true,
		Lock: func(group string, keys []sqlstore.Key) (ss []sqlstore.Statement) {
			for _, k := range keys {
				shared := "_shared"
				if k.Write {
					shared = ""
				}
				ss = append(ss, lock(shared, "key", group, k.Name))
			}
			return ss
		},
		Order: func(group, node string) []sqlstore.Statement {
			return []sqlstore.Statement{lock("", "node", group, node)}
		},
	}
}

// run carries out statements, with the types of their arguments.
func (s *applockStore) run(ctx context.Context, tx *sql.Tx, d sqlstore.Dialect, ss []sqlstore.Statement) error {
	for _, one := range ss {
		var types []string
		for _, a := range one.Args {
			switch a := a.(type) {
			case [][]byte:
				for range a {
					types = append(types, "bytea")
				}
			case []byte:
				types = append(types, "bytea")
			case int64:
				types = append(types, "bigint")
			default:
				types = append(types, "text")
			}
		}
		d.Mark = func(n int) string { return fmt.Sprintf("$%d::%s", n, types[n-1]) }
		if err := sqlstore.Run(ctx, tx, &d, []sqlstore.Statement{one}); err != nil {
			return err
		}
	}
	return nil
}

// try runs f once. sent tells whether the commit was sent.
func (s *applockStore) try(ctx context.Context, f func(*sqlstore.Tx) error) (sent bool, err error) {
	tx, err := s.db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		return false, err
	}
	defer func() { _ = tx.Rollback() }()
	t := &sqlstore.Tx{Dialect: s.dialect()}
	guard := sqlstore.Statement{SQL: `SELECT {now}, incarnation, since FROM {t}record`, Row: func(scan sqlstore.Scan) error {
		return scan(&t.Now, &t.Incarnation, &t.Since)
	}}
	for range 2 {
		if err := s.run(ctx, tx, t.Dialect, []sqlstore.Statement{guard}); err != nil {
			return false, err
		}
		if t.Incarnation != "" {
			break
		}
		fresh := sqlstore.Statement{SQL: `INSERT INTO {t}record (one, incarnation, since) VALUES (1, ?, {now}) ON CONFLICT DO NOTHING`, Args: []any{rand.Text()}}
		if err := s.run(ctx, tx, t.Dialect, []sqlstore.Statement{fresh}); err != nil {
			return false, err
		}
	}
	t.Run = func(ss []sqlstore.Statement) error { return s.run(ctx, tx, t.Dialect, ss) }
	if err := f(t); err != nil {
		return false, err
	}
	if err := t.Flush(); err != nil {
		return false, err
	}
	if err := ctx.Err(); err != nil {
		return false, err
	}
	return true, tx.Commit()
}

func (s *applockStore) Write(ctx context.Context, f func(*sqlstore.Tx) error) error {
	if s.ctx.Err() != nil {
		return backends.ErrClosed
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	for {
		sent, err := s.try(ctx, f)
		var e *pgconn.PgError
		server := errors.As(err, &e)
		switch {
		case err == nil:
			return nil
		case server && (e.Code == "40P01" || e.Code == "40001" || e.Code == "23505"):
			continue // a deadlock, or a row that another one was faster to make
		case sent && !server:
			return fmt.Errorf("%w: %w", backends.ErrUnknown, err)
		case s.ctx.Err() != nil:
			return backends.ErrClosed
		}
		return err
	}
}

func (s *applockStore) Urgent(ctx context.Context, f func(*sqlstore.Tx) error) error {
	return s.Write(ctx, f)
}
func (s *applockStore) Read(ctx context.Context, f func(*sqlstore.Tx) error) error {
	return s.Write(ctx, f)
}
func (s *applockStore) Listen(context.Context, <-chan struct{}, string, string, func()) error {
	if s.ctx.Err() != nil {
		return backends.ErrClosed
	}
	return backends.ErrNoHints
}
func (s *applockStore) Wake(*sqlstore.Tx, string, []string) error { return nil }
func (s *applockStore) Woken(string, []string)                    {}
func (s *applockStore) Proof(time.Duration) (string, func())      { return "", func() {} }
func (s *applockStore) Dead(string) bool                          { return false }
func (s *applockStore) ShortestTTL() time.Duration                { return time.Second }

package sqlserver

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	_ "github.com/microsoft/go-mssqldb"
	"go.uber.org/goleak"

	"github.com/rebalancer-go/rebalancer/backends"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// server is the URL of the server that REBALANCER_TEST_SQLSERVER names: its user may create databases. Without one the test is skipped, or fails where
// REBAL_REQUIRE names "sqlserver".
func server(t testing.TB) *url.URL {
	t.Helper()
	raw := os.Getenv("REBALANCER_TEST_SQLSERVER")
	if raw == "" {
		const message = "needs a SQL Server: set REBALANCER_TEST_SQLSERVER to a sqlserver:// URL of a user that may create databases"
		if strings.Contains(os.Getenv("REBAL_REQUIRE"), "sqlserver") {
			t.Fatal(message)
		}
		t.Skip(message)
	}
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal("REBALANCER_TEST_SQLSERVER is no URL")
	}
	return u
}

// inDatabase names a database of the server.
func inDatabase(u *url.URL, name string) string {
	q := u.Query()
	q.Set("database", name)
	c := *u
	c.RawQuery = q.Encode()
	return c.String()
}

// making is held by who makes a database: not every server can make two at a time.
var making sync.Mutex

// database makes a database with row versions on or off and gives its URL. It is dropped after the test.
func database(t testing.TB, rowVersions bool) string {
	t.Helper()
	u := server(t)
	name := fmt.Sprintf("rebalancer_%d_%d", os.Getpid(), places.Add(1))
	admin := connect(t, inDatabase(u, "master"))
	making.Lock()
	defer making.Unlock()
	mustExec(t, admin, "CREATE DATABASE "+name)
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		_, _ = admin.ExecContext(ctx, "ALTER DATABASE "+name+" SET SINGLE_USER WITH ROLLBACK IMMEDIATE")
		if _, err := admin.ExecContext(ctx, "DROP DATABASE "+name); err != nil {
			t.Logf("dropping the database: %v", err)
		}
	})
	babelfish(t, admin)
	set := "OFF"
	if rowVersions {
		set = "ON"
	}
	if _, err := admin.ExecContext(t.Context(), "ALTER DATABASE "+name+" SET READ_COMMITTED_SNAPSHOT "+set); err != nil {
		t.Logf("row versions cannot be set on this server: %v", err)
	}
	return inDatabase(u, name)
}

// babelfish lets that server take what it does not have in the same way; on others it does nothing.
func babelfish(t testing.TB, db *sql.DB) {
	var version string
	if err := db.QueryRowContext(t.Context(), `SELECT CONVERT(nvarchar(400), @@VERSION)`).Scan(&version); err != nil {
		t.Fatal(err)
	}
	t.Logf("server: %.200s", strings.ReplaceAll(version, "\n", " "))
	if strings.Contains(version, "Babelfish") {
		mustExec(t, db, `EXEC sp_babelfish_configure 'escape_hatch_rowversion', 'ignore', 'server'`)
	}
}

func connect(t testing.TB, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlserver", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

type execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

func mustExec(t testing.TB, db execer, query string, args ...any) int64 {
	t.Helper()
	r, err := db.ExecContext(t.Context(), query, args...)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	n, _ := r.RowsAffected()
	return n
}

func ask[T any](t testing.TB, db execer, query string, args ...any) (v T) {
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

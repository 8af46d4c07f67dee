// Package sqlservertest gives tests databases on the SQL Server that the environment names.
package sqlservertest

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"

	_ "github.com/microsoft/go-mssqldb"
)

// Variable names the server.
const Variable = "REBALANCER_TEST_SQLSERVER"

// server is the URL of the server that Variable names: its user may create databases. Without one the test is skipped, or fails where
// REBAL_REQUIRE names "sqlserver".
func server(t testing.TB) *url.URL {
	t.Helper()
	raw := os.Getenv(Variable)
	if raw == "" {
		const message = "needs a SQL Server: set " + Variable + " to a sqlserver:// URL of a user that may create databases"
		if strings.Contains(os.Getenv("REBAL_REQUIRE"), "sqlserver") {
			t.Fatal(message)
		}
		t.Skip(message)
	}
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(Variable + " is no URL")
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

// Maker makes databases, one at a time: not every server can make two. The zero value works; a package has one.
type Maker struct{ mu sync.Mutex }

// Database makes a database with row versions on or off and gives its URL. It is dropped after the test.
func (m *Maker) Database(t testing.TB, rowVersions bool) string {
	t.Helper()
	u := server(t)
	name := fmt.Sprintf("rebalancer_%x", rand.Uint64())
	admin := Connect(t, inDatabase(u, "master"))
	m.mu.Lock()
	defer m.mu.Unlock()
	Exec(t, admin, "CREATE DATABASE "+name)
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
		Exec(t, db, `EXEC sp_babelfish_configure 'escape_hatch_rowversion', 'ignore', 'server'`)
	}
}

// Connect opens a database until the test ends.
func Connect(t testing.TB, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlserver", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// Execer is a database, a connection or a transaction.
type Execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// Exec runs statements and returns how many rows they changed.
func Exec(t testing.TB, db Execer, query string, args ...any) int64 {
	t.Helper()
	r, err := db.ExecContext(t.Context(), query, args...)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	n, _ := r.RowsAffected()
	return n
}

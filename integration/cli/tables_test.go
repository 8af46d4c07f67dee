//go:build linux

package cli

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"

	_ "github.com/microsoft/go-mssqldb"

	"github.com/rebalancer-go/rebalancer/internal/testserver"
)

// postgresWithTables is the URL of a server of its own.
func postgresWithTables(t *testing.T) string {
	s := testserver.StartPostgres(t, 15, "-c", "fsync=off")
	url := s.URL("postgres", "")
	s.Exec(t, schema(t, url))
	return url
}

// sqlserverWithTables is the URL of a new database on a server, which is dropped after the test.
func sqlserverWithTables(t *testing.T, server string) string {
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal("REBALANCER_TEST_SQLSERVER is no URL")
	}
	name := fmt.Sprintf("rebalancer_cli_%d", os.Getpid())
	exec := func(ctx context.Context, database, statements string) {
		t.Helper()
		db, err := sql.Open("sqlserver", inDatabase(u, database))
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if _, err := db.ExecContext(ctx, statements); err != nil {
			t.Errorf("%.60s: %v", statements, err)
		}
	}
	exec(t.Context(), "master", "CREATE DATABASE "+name)
	t.Cleanup(func() { exec(context.WithoutCancel(t.Context()), "master", "DROP DATABASE "+name) })
	own := inDatabase(u, name)
	tables, _, _ := strings.Cut(schema(t, own), "\nGRANT") // who makes a database owns it
	exec(t.Context(), name, tables)
	return own
}

func inDatabase(u *url.URL, name string) string {
	q := u.Query()
	q.Set("database", name)
	c := *u
	c.RawQuery = q.Encode()
	return c.String()
}

// schema is what the program says that a store needs.
func schema(t *testing.T, store string) string {
	ddl, errs, code := newProgram(t).run("schema", "--store", store)
	if code != done {
		t.Fatal(errs)
	}
	return ddl
}

//go:build linux

package cli

import (
	"strings"
	"testing"

	_ "github.com/microsoft/go-mssqldb"

	"github.com/rebalancer-go/rebalancer/internal/sqlservertest"
	"github.com/rebalancer-go/rebalancer/internal/testserver"
)

// postgresWithTables is the URL of a server of its own.
func postgresWithTables(t *testing.T) string {
	s := testserver.StartPostgres(t, 15, "-c", "fsync=off")
	url := s.URL("postgres", "")
	s.Exec(t, schema(t, url))
	return url
}

// sqlserverWithTables is the URL of a database of its own, on the server that the environment names.
func sqlserverWithTables(t *testing.T) string {
	url := databases.Database(t, true)
	tables, _, _ := strings.Cut(schema(t, url), "\nGRANT") // who makes a database owns it
	sqlservertest.Exec(t, sqlservertest.Connect(t, url), tables)
	return url
}

// schema is what the program says that a store needs.
func schema(t *testing.T, store string) string {
	ddl, errs, code := newProgram(t).run("schema", "--store", store)
	if code != done {
		t.Fatal(errs)
	}
	return ddl
}

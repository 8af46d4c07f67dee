package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/rebalancer-go/rebalancer/internal/sqlstore"
)

// DefaultSchema is the schema that a store uses unless Schema names another.
const DefaultSchema = "rebalancer"

// format is the version of the tables.
const format = 1

// tables makes what is in the schema. The tables are small and change all the time: room in their pages keeps updates from
// touching the indexes, and they are vacuumed early.
const tables = `CREATE TABLE IF NOT EXISTS {t}record (
	one smallint PRIMARY KEY CHECK (one = 1), format bigint NOT NULL, incarnation text NOT NULL, since bigint NOT NULL, identity text NOT NULL);
CREATE TABLE IF NOT EXISTS {t}sessions (
	id bytea PRIMARY KEY, grp bytea NOT NULL, node bytea NOT NULL, expires bigint NOT NULL, ttl bigint NOT NULL, touched bigint NOT NULL,
	opened bigint NOT NULL, superseded smallint NOT NULL, proof bytea NOT NULL)
	WITH (fillfactor = 40, autovacuum_vacuum_scale_factor = 0.1, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX IF NOT EXISTS sessions_by_group ON {t}sessions (grp);
CREATE TABLE IF NOT EXISTS {t}entries (
	grp bytea NOT NULL, name bytea NOT NULL, value bytea NOT NULL, version bigint NOT NULL, session bytea NOT NULL, gone smallint NOT NULL,
	PRIMARY KEY (grp, name))
	WITH (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.1, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX IF NOT EXISTS entries_by_session ON {t}entries (session) WHERE session <> '';
CREATE INDEX IF NOT EXISTS entries_gone ON {t}entries (grp, version) WHERE gone = 1;
`

// DDL are the statements that make the schema and its tables, for who is to run them instead of Create. They may be run again.
func DDL(schema string) string {
	return "CREATE SCHEMA IF NOT EXISTS " + quote(schema) + ";\n" + in(schema, tables)
}

// Grants are the statements that give a role all the rights that a store needs, and no more.
func Grants(schema, role string) string {
	s, r := quote(schema), quote(role)
	return "GRANT USAGE ON SCHEMA " + s + " TO " + r + ";\n" +
		"GRANT SELECT, INSERT, UPDATE, DELETE ON " + in(schema, "{t}record, {t}sessions, {t}entries") + " TO " + r + ";\n"
}

func quote(name string) string { return pgx.Identifier{name}.Sanitize() }

func in(schema, text string) string { return strings.ReplaceAll(text, "{t}", quote(schema)+".") }

// Create makes the schema and its tables where they are missing. The role must have the right to: to create a schema in the
// database, or to create tables in the schema that is there. Where all is there it changes nothing.
func (s *Store) Create(ctx context.Context) error {
	ctx, cancel, err := s.bound(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	return s.wrap(s.pooled(ctx, func(c *pgconn.PgConn) error { return s.create(ctx, c) }))
}

func (s *Store) create(ctx context.Context, c *pgconn.PgConn) error {
	var schemas, found int64
	d := &s.dialect
	look := []sqlstore.Statement{
		{SQL: `SELECT count(*) FROM pg_namespace WHERE nspname = ?`, Args: []any{s.schema}, Row: func(scan sqlstore.Scan) error { return scan(&schemas) }},
		{SQL: `SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = ? AND c.relname IN ('record', 'sessions', 'entries')`,
			Args: []any{s.schema}, Row: func(scan sqlstore.Scan) error { return scan(&found) }},
	}
	lock := []sqlstore.Statement{{SQL: begin}, {SQL: `SELECT pg_advisory_xact_lock(?)`, Args: []any{number("create", s.schema)}}}
	if _, err := send(ctx, c, nil, d, append(lock, look...)); err != nil {
		return err
	}
	text := in(s.schema, tables)
	if schemas == 0 {
		text = DDL(s.schema)
	}
	if found == 3 {
		text = ""
	}
	if err := c.Exec(ctx, text+"COMMIT").Close(); err != nil {
		return fmt.Errorf("making the schema: %w", err)
	}
	return nil
}

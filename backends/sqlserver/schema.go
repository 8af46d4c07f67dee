package sqlserver

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/rebalancer-go/rebalancer/internal/sqlstore"
)

// DefaultSchema is the schema that a store uses unless Schema names another.
const DefaultSchema = "rebalancer"

// format is the version of the tables.
const format = 1

// tables makes what is in the schema. Names of groups and keys are too long for the key of a clustered index (900 bytes), and together they may
// have 1700.
const tables = `IF OBJECT_ID({T}.record') IS NULL
CREATE TABLE {t}record (
	one tinyint NOT NULL PRIMARY KEY CHECK (one IN (1, 2)), format bigint NOT NULL, incarnation nvarchar(64) COLLATE Latin1_General_BIN2 NOT NULL,
	since bigint NOT NULL, origin nvarchar(400) COLLATE Latin1_General_BIN2 NOT NULL, fork nvarchar(40) COLLATE Latin1_General_BIN2 NULL,
	stamp rowversion NOT NULL);
IF OBJECT_ID({T}.sessions') IS NULL
BEGIN
	CREATE TABLE {t}sessions (
		id varbinary(128) NOT NULL PRIMARY KEY, grp varbinary(2048) NOT NULL, node varbinary(8000) NOT NULL, expires bigint NOT NULL, ttl bigint NOT NULL,
		touched bigint NOT NULL, opened bigint NOT NULL, superseded tinyint NOT NULL, proof varbinary(8000) NOT NULL);
	CREATE INDEX sessions_by_group ON {t}sessions (grp);
END;
IF OBJECT_ID({T}.entries') IS NULL
BEGIN
	CREATE TABLE {t}entries (
		number bigint IDENTITY NOT NULL PRIMARY KEY, grp varbinary(2048) NOT NULL, name varbinary(2048) NOT NULL, value varbinary(max) NOT NULL,
		version bigint NOT NULL, session varbinary(128) NOT NULL, gone tinyint NOT NULL);
	CREATE UNIQUE INDEX entries_by_name ON {t}entries (grp, name);
	CREATE INDEX entries_by_session ON {t}entries (session);
END;
`

// DDL are the statements that make the schema and its tables in the current database, for who is to run them instead of Create. They may be
// run again.
func DDL(schema string) string {
	return "IF SCHEMA_ID(N" + sqlstore.Literal(schema) + ") IS NULL EXEC(N" + sqlstore.Literal("CREATE SCHEMA "+quote(schema)) + ");\n" + in(schema, tables)
}

// Grants are the statements that give a user of the database all the rights that a store needs on its tables, and no more. To notice a restored
// database for certain it must also see its row in sys.database_recovery_status, which the server right VIEW ANY DATABASE shows; everybody has
// that unless it was taken away.
func Grants(schema, user string) string {
	var b strings.Builder
	for _, table := range []string{"record", "sessions", "entries"} {
		b.WriteString("GRANT SELECT, INSERT, UPDATE, DELETE ON OBJECT::" + quote(schema) + "." + table + " TO " + quote(user) + ";\n")
	}
	return b.String()
}

func quote(name string) string { return "[" + strings.ReplaceAll(name, "]", "]]") + "]" }

// in puts the schema before the names of tables, quoted, and as the beginning of a literal.
func in(schema, text string) string {
	literal := "N" + strings.TrimSuffix(sqlstore.Literal(quote(schema)), "'")
	return strings.NewReplacer("{t}", quote(schema)+".", "{T}", literal).Replace(text)
}

// Create makes the schema and its tables where they are missing. The login must have the right to: CREATE TABLE in the database, and CREATE SCHEMA
// or ALTER on the schema that is there. Where all is there it changes nothing.
func (s *Store) Create(ctx context.Context) error {
	ctx, cancel, err := s.bound(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	return s.wrap(s.pooled(ctx, func(ctx context.Context, c *sql.Conn, _ *fate) error { return s.create(ctx, c) }))
}

func (s *Store) create(ctx context.Context, c *sql.Conn) (err error) {
	defer func() {
		if err != nil {
			err = (&transaction{s: s, c: c, how: writing}).undo(err)
		}
	}()
	if _, err := c.ExecContext(ctx, begin); err != nil {
		return err
	}
	var found int64
	d := s.newDialect(0)
	b := &batch{d: &d}
	b.say(settings)
	b.say("DECLARE @lock int, @patience int = " + patience + ";")
	b.add(applock(fmt.Sprintf("rebalancer %016x", sqlstore.Number("create", s.schema)), "Exclusive"))
	b.add(sqlstore.Statement{
		SQL: `SELECT CASE WHEN SCHEMA_ID(?) IS NULL THEN 0 ELSE 1 END + (SELECT COUNT(*) FROM sys.tables WHERE schema_id = SCHEMA_ID(?)` +
			` AND name IN ('record', 'sessions', 'entries'))`,
		Args: []any{s.schema, s.schema}, Row: func(scan sqlstore.Scan) error { return scan(&found) },
	})
	if err := b.send(ctx, c); err != nil {
		return err
	}
	text := DDL(s.schema)
	switch found {
	case 0:
	case 4:
		text = ""
	default:
		text = in(s.schema, tables)
	}
	if text != "" {
		if _, err := c.ExecContext(ctx, text); err != nil {
			return fmt.Errorf("making the schema: %w", err)
		}
	}
	_, err = c.ExecContext(ctx, commit)
	return err
}

package sqlserver

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"

	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/internal/sqlstore"
)

// The record is the row 1 of its table. Row 2 has no content but its stamp, which the server gives it when it is written: rows that were copied, out of
// an export for example, have another one.
const (
	// origin is the server and its start (tempdb is made at each), the database and its making (a restored one was made then), the table, and the stamp.
	origin = `CONCAT(CONVERT(nvarchar(256), @@SERVERNAME), N' ', (SELECT CONVERT(nvarchar(40), create_date, 126) FROM sys.databases WHERE name = 'tempdb'),` +
		` N' ', (SELECT CONVERT(nvarchar(40), create_date, 126) FROM sys.databases WHERE database_id = DB_ID()), N' ', OBJECT_ID(%s), N' ',` +
		` (SELECT CONVERT(bigint, stamp) FROM %s WHERE one = 2))`
	// fork changes with each restore and each failover that may lose data. Who may not see it compares the rest.
	fork = `(SELECT CONVERT(nvarchar(40), recovery_fork_guid) FROM sys.database_recovery_status WHERE database_id = DB_ID())`
)

// identify sets @fork and @origin, which must be declared.
func (s *Store) identify() string {
	table := quote(s.schema) + ".record"
	return "SET @fork = " + fork + ";\nSET @origin = " + fmt.Sprintf(origin, "N"+sqlstore.Literal(table), table) + ";"
}

// head begins a batch: it reads the clock, before anything waits for a lock, and the first time the record. What follows is to be done only where
// @incarnation is set.
func (x *transaction) head(b *batch) {
	b.say(settings)
	if x.began {
		b.say("DECLARE @now bigint = " + b.arg(x.t.Now) + ", @lock int, @patience int = " + patience + ";")
		return
	}
	b.say("DECLARE @now bigint = " + clockBehind(x.s.behind()) + ", @lock int, @patience int = " + patience + ", @incarnation nvarchar(64), @since bigint, @fork nvarchar(40), @origin nvarchar(400);")
	b.say(x.s.identify())
	text, _ := b.d.Render(sqlstore.Statement{SQL: "SELECT @incarnation = r.incarnation, @since = r.since FROM {t}record r WHERE r.one = 1 AND r.format = " + fmt.Sprint(format) +
		" AND r.origin = @origin AND (r.fork IS NULL OR @fork IS NULL OR r.fork = @fork);\n" +
		"SELECT @now, @incarnation, @since;"})
	b.say(text)
	b.answers = append(b.answers, func(scan sqlstore.Scan) error {
		if err := scan(&x.t.Now, &x.t.Incarnation, &x.t.Since); err != nil {
			return err
		}
		if x.t.Incarnation == "" {
			return sqlstore.ErrRecord
		}
		return nil
	})
}

// tail ends a batch: whoever reads it knows that all before it was carried out.
func (x *transaction) tail(b *batch) {
	b.say("SELECT CONVERT(bigint, 1);")
	b.answers = append(b.answers, func(sqlstore.Scan) error { return nil })
}

// establish writes the record where it is absent or not of this server: a new incarnation.
func (s *Store) establish(ctx context.Context, c *sql.Conn) error {
	if _, err := c.ExecContext(ctx, begin); err != nil {
		return err
	}
	d := s.newDialect(s.behind())
	b := &batch{d: &d}
	b.say(settings)
	b.say("DECLARE @now bigint = " + clockBehind(s.behind()) + ", @lock int, @patience int = " + patience + ", @fork nvarchar(40), @origin nvarchar(400);")
	b.add(applock(fmt.Sprintf("rebalancer %016x", sqlstore.Number("record", s.schema)), "Exclusive"))
	const row = `INSERT INTO {t}record (one, format, incarnation, since, origin, fork) SELECT `
	incarnation := rand.Text()
	b.add(sqlstore.Statement{SQL: row + `2, 0, N'', 0, N'', NULL WHERE NOT EXISTS (SELECT 1 FROM {t}record WHERE one = 2)`})
	b.say(s.identify())
	b.add(sqlstore.Statement{
		SQL: `UPDATE {t}record SET incarnation = ?, since = @now, fork = @fork, origin = @origin WHERE one = 1 AND format = ?` +
			` AND NOT (origin = @origin AND (fork IS NULL OR @fork IS NULL OR fork = @fork))`,
		Args: []any{incarnation, int64(format)},
	})
	b.add(sqlstore.Statement{
		SQL:  row + `1, ?, ?, @now, @origin, @fork WHERE NOT EXISTS (SELECT 1 FROM {t}record WHERE one = 1)`,
		Args: []any{int64(format), incarnation},
	})
	b.add(sqlstore.Statement{SQL: `SELECT format FROM {t}record WHERE one = 1`, Row: func(scan sqlstore.Scan) error {
		var version int64
		if err := scan(&version); err != nil || version == format {
			return err
		}
		return fmt.Errorf("%w: its tables have format %d, this program knows format %d", backends.ErrFatal, version, format)
	}})
	err := b.send(ctx, c)
	if err == nil {
		_, err = c.ExecContext(ctx, commit)
	}
	if err != nil {
		return (&transaction{s: s, c: c, how: writing}).undo(err)
	}
	return nil
}

package postgres

import (
	"context"
	"crypto/rand"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/internal/sqlstore"
)

// The identity names the history of the log (its timeline: the control file lags after a promotion), the start of the server, the database and the
// table, and the transaction that wrote the record: rows that were copied, restored from a dump for example, were written by another one.
const (
	server = `left(pg_walfile_name(pg_current_wal_lsn()), 8) || ' ' || (extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint::text` +
		` || ' ' || (SELECT oid::text FROM pg_database WHERE datname = current_database()) || ' '`
	identity    = server + ` || r.tableoid::text || ' ' || r.xmin::text`
	newIdentity = server + ` || (SELECT ?::regclass::oid::text) || ' ' || (pg_current_xact_id()::text::numeric % 4294967296)::bigint::text`
)

// guard is the first statement of each transaction: it reads the clock and the record, and fails the transaction, with all that was sent with it,
// where the record is not of this server (by a division by zero: the server has no other way of failing a plain query).
func guard(t *sqlstore.Tx) sqlstore.Statement {
	return sqlstore.Statement{
		SQL:  `SELECT {now}, min(r.incarnation), min(r.since), 1 / count(*) FROM {t}record r WHERE r.format = ? AND r.identity = ` + identity,
		Args: []any{int64(format)},
		Row: func(scan sqlstore.Scan) error {
			var one int64
			return scan(&t.Now, &t.Incarnation, &t.Since, &one)
		},
	}
}

// establish writes the record where it is absent or not of this server: a new incarnation.
func (s *Store) establish(ctx context.Context, c *pgconn.PgConn) error {
	d := s.dialectNow()
	ss := []sqlstore.Statement{
		{SQL: begin}, s.settings(ctx),
		{
			SQL: `INSERT INTO {t}record AS r (one, format, incarnation, since, identity) VALUES (1, ?, ?, {now}, ` + newIdentity + `)` +
				` ON CONFLICT (one) DO UPDATE SET format = excluded.format, incarnation = excluded.incarnation, since = excluded.since,` +
				` identity = excluded.identity WHERE r.format = excluded.format AND r.identity <> ` + identity,
			Args: []any{int64(format), rand.Text(), quote(s.schema) + ".record"},
		},
		{
			SQL: `SELECT format FROM {t}record`,
			Row: func(scan sqlstore.Scan) error {
				var version int64
				if err := scan(&version); err != nil || version == format {
					return err
				}
				return fmt.Errorf("%w: its tables have format %d, this program knows format %d", backends.ErrFatal, version, format)
			},
		},
		{SQL: `COMMIT`},
	}
	_, err := send(ctx, c, nil, &d, ss)
	return err
}

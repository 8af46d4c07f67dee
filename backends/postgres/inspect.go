package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/rebalancer-go/rebalancer/backends"
)

var _ backends.Inspector = (*Store)(nil)

// one reads the single row that a query gives, as texts.
func (s *Store) one(ctx context.Context, query string) ([]string, error) {
	var row []string
	err := s.pooled(ctx, func(c *pgconn.PgConn) error {
		results, err := c.Exec(ctx, query).ReadAll()
		if err != nil {
			return err
		}
		if len(results) != 1 || len(results[0].Rows) != 1 {
			return errors.New("the server answered with something else than a row")
		}
		for _, v := range results[0].Rows[0] {
			row = append(row, string(v))
		}
		return nil
	})
	return row, s.wrap(err)
}

// Version is the server's name and version.
func (s *Store) Version(ctx context.Context) (string, error) {
	row, err := s.one(ctx, `SELECT current_setting('server_version')`)
	if err != nil {
		return "", err
	}
	return "PostgreSQL " + row[0], nil
}

// Warnings tells what about the server's set-up makes the promises weaker.
func (s *Store) Warnings(ctx context.Context) ([]string, error) {
	row, err := s.one(ctx, `SELECT current_setting('fsync'), current_setting('full_page_writes'), current_setting('synchronous_standby_names'),`+
		` (SELECT count(*) FROM pg_stat_replication)`)
	if err != nil {
		return nil, err
	}
	var all []string
	if row[0] == "off" || row[1] == "off" {
		all = append(all, "fsync or full_page_writes is off: a crash of the machine may lose what was acknowledged, or damage it without being noticed; set both to on")
	}
	if standbys, err := strconv.Atoi(row[3]); err == nil && standbys > 0 && row[2] == "" {
		all = append(all, fmt.Sprintf("%d standbys or backups follow the server asynchronously: a failover to one that lags loses what was acknowledged; it is noticed, and work "+
			"then waits for the grace, but the old primary must be stopped within the ttl: see synchronous_standby_names", standbys))
	}
	return all, nil
}

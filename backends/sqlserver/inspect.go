package sqlserver

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/rebalancer-go/rebalancer/backends"
)

// look finds out once whether the database keeps what it acknowledges.
func (s *Store) look(ctx context.Context, c *sql.Conn) error {
	if s.looked.Load() {
		return nil
	}
	var forced sql.NullInt64
	if err := c.QueryRowContext(ctx, `SELECT CONVERT(bigint, delayed_durability) FROM sys.databases WHERE database_id = DB_ID()`).Scan(&forced); err != nil && err != sql.ErrNoRows {
		return fmt.Errorf("reading the database's settings: %w", err)
	}
	const always = 2
	if forced.Int64 == always {
		return fmt.Errorf("%w: the database has DELAYED_DURABILITY = FORCED, so that a commit may be lost after it was acknowledged; set it to ALLOWED or DISABLED", backends.ErrFatal)
	}
	s.looked.Store(true)
	return nil
}

// ask reads one row.
func (s *Store) ask(ctx context.Context, query string, dest ...any) error {
	ctx, cancel, err := s.bound(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	return s.wrap(s.pooled(ctx, func(ctx context.Context, c *sql.Conn, _ *fate) error {
		return c.QueryRowContext(ctx, query).Scan(dest...)
	}))
}

// Version is the server's name and version.
func (s *Store) Version(ctx context.Context) (string, error) {
	var text string
	if err := s.ask(ctx, `SELECT CONVERT(nvarchar(400), @@VERSION)`, &text); err != nil {
		return "", err
	}
	first, _, _ := strings.Cut(text, "\n")
	return strings.TrimSpace(first), nil
}

// Warnings tells what about the server's set-up makes the promises weaker.
func (s *Store) Warnings(ctx context.Context) ([]string, error) {
	var seesFork, available sql.NullInt64
	err := s.ask(ctx, `SELECT (SELECT COUNT(*) FROM sys.database_recovery_status WHERE database_id = DB_ID() AND recovery_fork_guid IS NOT NULL),`+
		` (SELECT COUNT(*) FROM sys.databases WHERE database_id = DB_ID() AND replica_id IS NOT NULL)`, &seesFork, &available)
	if err != nil {
		return nil, err
	}
	var warnings []string
	if seesFork.Int64 == 0 {
		warnings = append(warnings, "the server does not show in sys.database_recovery_status which copy of the data this is, so an earlier backup that was "+
			"restored is noticed only if the database was made anew or the server started again: grant the login VIEW ANY DATABASE")
	}
	if available.Int64 > 0 {
		warnings = append(warnings, "the database is in an availability group: a forced failover to a secondary with asynchronous commit loses what was "+
			"acknowledged; it is noticed, and work then waits for the grace: use synchronous commit")
	}
	if s.line.none {
		warnings = append(warnings, "the pool has a single connection, so whatever uses it holds up renewals: allow it more")
	}
	return warnings, nil
}

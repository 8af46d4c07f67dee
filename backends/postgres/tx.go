package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/internal/sqlstore"
)

const (
	// Each statement sees what was committed before it, whatever the server's default is.
	begin     = `BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE`
	beginRead = `BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY`
	// longestCall bounds a call whose context has no deadline.
	longestCall = 30 * time.Second
	// longestPause is how long a process may be silent within a transaction, and so hold its locks, until the server ends it.
	longestPause = 5 * time.Second
	// leastStatement is the least time that a statement gets at the server.
	leastStatement = 100 * time.Millisecond
)

// settings are those of one transaction: durable before it is acknowledged, whatever the server's or the role's default is, and ended by
// the server when this process does not go on with it.
func (s *Store) settings(ctx context.Context) sqlstore.Statement {
	left := longestCall
	if end, ok := ctx.Deadline(); ok {
		left = min(left, max(leastStatement, time.Until(end)))
	}
	return sqlstore.Statement{SQL: `SELECT set_config('synchronous_commit',` +
		` CASE current_setting('synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, true),` +
		` set_config('idle_in_transaction_session_timeout', ?, true), set_config('statement_timeout', ?, true), set_config('enable_seqscan', 'off', true), set_config('jit', 'off', true)`,
		Args: []any{milliseconds(longestPause), milliseconds(left)}}
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// transact runs f in a transaction on the connection, once. Its error wraps ErrUnknown when it may have been applied.
func (s *Store) transact(ctx context.Context, c *pgconn.PgConn, how string, f func(*sqlstore.Tx) error) error {
	t := &sqlstore.Tx{Dialect: s.dialectNow()}
	begun := false
	run := func(ss []sqlstore.Statement, more ...sqlstore.Statement) (answered, of int, err error) {
		var all []sqlstore.Statement
		k := s.knows(c)
		if !begun {
			all = append([]sqlstore.Statement{{SQL: how}, s.settings(ctx), guard(t)}, k.ask(c)...)
		}
		begun = true
		all = append(append(all, ss...), more...)
		s.trips.Add(1)
		answered, err = send(ctx, c, k, &t.Dialect, all)
		return answered, len(all), err
	}
	t.Run = func(ss []sqlstore.Statement) error {
		if len(ss) == 0 && begun {
			return nil
		}
		_, _, err := run(ss)
		return err
	}
	if err := f(t); err != nil {
		return s.rollback(c, err)
	}
	if hook := s.beforeCommit.Load(); hook != nil {
		(*hook)()
	}
	answered, of, err := run(t.Pending(), sqlstore.Statement{SQL: `COMMIT`})
	if err == nil {
		return nil
	}
	if how == begin && !certain(of-answered, err) {
		err = fmt.Errorf("%w: %w", backends.ErrUnknown, err)
	}
	return s.rollback(c, err)
}

// certain tells whether the error of a batch that ends with a COMMIT says that nothing was committed. missing is how many statements have no
// answer.
func certain(missing int, err error) bool {
	var e *pgconn.PgError
	if !errors.As(err, &e) {
		return errors.Is(err, errUnsent)
	}
	switch missing {
	case 0: // the connection was ended, or a late cancellation came, behind the COMMIT
		return false
	case 1: // at the commit: where the server ended the connection, or cancelled the statement, it may have waited for a standby, or have been done
		return e.SeverityUnlocalized == "ERROR" && e.Code != cancelled || e.Code == fellSilent
	}
	return true
}

// rollback ends what is left of a transaction, so that the connection can be used again; where that fails it is closed.
func (s *Store) rollback(c *pgconn.PgConn, cause error) error {
	if c.IsClosed() || c.TxStatus() == 'I' {
		return cause
	}
	s.trips.Add(1)
	ctx, cancel := context.WithTimeout(s.ctx, time.Second)
	defer cancel()
	if err := c.Exec(ctx, "ROLLBACK").Close(); err != nil || c.TxStatus() != 'I' {
		_ = c.Close(ctx)
	}
	return cause
}

// attempt is one try of a transaction on some connection.
type attempt func(ctx context.Context, f func(*pgconn.PgConn) error) error

// persist repeats a transaction for as long as that can help and the context lasts.
// again: also when it may have been applied, since that does no harm.
func (s *Store) persist(ctx context.Context, on attempt, how string, again bool, f func(*sqlstore.Tx) error) error {
	ctx, cancel, err := s.bound(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	created := false
	repeats := func(err error) bool { return passing(err) || again && errors.Is(err, backends.ErrUnknown) }
	return s.wrap(sqlstore.Persist(ctx, repeats, func() error {
		return on(ctx, func(c *pgconn.PgConn) error {
			if err := supportedVersion(c.ParameterStatus("server_version")); err != nil {
				return err
			}
			err := s.transact(ctx, c, how, f)
			switch {
			case unprepared(err):
				s.prepares.Store(false)
			case lacksRecord(err):
				if err := s.establish(ctx, c); err != nil {
					return s.rollback(c, err)
				}
				return sqlstore.ErrRecord
			case s.creates && !created && isState(err, undefinedTable, invalidSchema):
				created = true
				if err := s.create(ctx, c); err != nil {
					return s.rollback(c, err)
				}
				return sqlstore.ErrRecord
			}
			return err
		})
	}))
}

// base is the Store as package sqlstore sees it.
type base struct{ s *Store }

func (b base) Write(ctx context.Context, f func(*sqlstore.Tx) error) error {
	return b.s.persist(ctx, b.s.pooled, begin, false, f)
}

func (b base) Urgent(ctx context.Context, f func(*sqlstore.Tx) error) error {
	return b.s.persist(ctx, b.s.urgent, begin, true, f)
}

func (b base) Read(ctx context.Context, f func(*sqlstore.Tx) error) error {
	return b.s.persist(ctx, b.s.pooled, beginRead, true, f)
}

func (b base) Wake(*sqlstore.Tx, string, []string) error { return nil } // never in a commit

// Proof is not one of death: it tells the processes apart, to count them.
func (b base) Proof(time.Duration) (string, func()) { return b.s.process, func() {} }

func (b base) Dead(string) bool { return false }

func (b base) ShortestTTL() time.Duration { return shortestTTL }

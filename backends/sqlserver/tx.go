package sqlserver

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/internal/sqlstore"
)

const (
	// A procedure must not end with more or fewer transactions than it began with, and a batch with arguments is one. So
	// a transaction of more than one batch begins and ends in batches without. Each statement sees what was committed before it.
	begin = settings + ` IF @@TRANCOUNT > 0 ROLLBACK TRANSACTION; SET TRANSACTION ISOLATION LEVEL READ COMMITTED; BEGIN TRANSACTION;`
	// The commit is on disk before it is acknowledged, unless it asks for less, or the database forces that on it, which look refuses.
	commit   = `COMMIT TRANSACTION;`
	rollback = `IF @@TRANCOUNT > 0 ROLLBACK TRANSACTION;`

	// longestCall bounds a call whose context has no deadline.
	longestCall = 30 * time.Second
)

// kind of a transaction.
type kind int

const (
	reading kind = iota // statements on their own: no lock outlives its statement
	writing
)

// transaction is one try on one connection.
type transaction struct {
	s     *Store
	c     *sql.Conn
	how   kind
	t     *sqlstore.Tx
	began bool // the clock and the record have been read
	sent  *fate
}

// fate settles whether a try was given up before its commit was sent, or after.
type fate struct{ state atomic.Int32 }

const (
	open int32 = iota
	committing
	abandoned
)

// commit tells whether the commit may be sent.
func (f *fate) commit() bool {
	return f.state.CompareAndSwap(open, committing) || f.state.Load() == committing
}

// abandon tells whether the commit was not sent, and will not be.
func (f *fate) abandon() bool { return f.state.CompareAndSwap(open, abandoned) }

// run runs f in a transaction, once. Its error wraps ErrUnknown when it may have been applied.
func (x *transaction) run(ctx context.Context, f func(*sqlstore.Tx) error) error {
	x.t = &sqlstore.Tx{Dialect: x.s.newDialect(x.s.behind())}
	x.t.Run = func(ss []sqlstore.Statement) error { return x.flush(ctx, ss) }
	if err := f(x.t); err != nil {
		return x.undo(err)
	}
	pending := x.t.Pending()
	if x.how == writing && !x.began {
		return x.undo(x.atOnce(ctx, pending))
	}
	if err := x.flush(ctx, pending); err != nil {
		return x.undo(err)
	}
	if x.how == writing {
		return x.undo(x.end(ctx))
	}
	return nil
}

// flush carries out statements; the first time after the clock and the record were read.
func (x *transaction) flush(ctx context.Context, ss []sqlstore.Statement) error {
	if x.how == writing && !x.began {
		if _, err := x.c.ExecContext(ctx, begin); err != nil {
			return err
		}
	}
	for first := true; len(ss) > 0 || first && !x.began; first = false {
		b := &batch{d: &x.t.Dialect}
		x.head(b)
		if !x.began {
			b.say("IF @incarnation IS NOT NULL BEGIN")
		}
		var n int
		for n < len(ss) && (n == 0 || len(b.args)+width(ss[n]) <= mostArgs) {
			b.add(ss[n])
			n++
		}
		ss = ss[n:]
		x.tail(b)
		if !x.began {
			b.say("END")
		}
		if err := b.send(ctx, x.c); err != nil {
			return err
		}
		x.began = true
	}
	return nil
}

// atOnce carries out a whole transaction in one call: what changes something, the commit, and then what only asks.
func (x *transaction) atOnce(ctx context.Context, ss []sqlstore.Statement) error {
	args := 0
	for _, s := range ss {
		args += width(s)
	}
	if args > mostArgs-10 { // too much for one call
		if err := x.flush(ctx, ss); err != nil {
			return err
		}
		return x.end(ctx)
	}
	b := &batch{d: &x.t.Dialect}
	x.head(b)
	b.say("IF @incarnation IS NOT NULL BEGIN\nBEGIN TRANSACTION;")
	writes := len(ss)
	for writes > 0 && ss[writes-1].Row != nil {
		writes--
	}
	for i, s := range ss {
		if i == writes {
			b.say(commit)
		}
		b.add(s)
	}
	if writes == len(ss) {
		b.say(commit)
	}
	x.tail(b)
	b.say("END")
	if !x.sent.commit() {
		return ctx.Err()
	}
	return outcome(b.send(ctx, x.c), writes < len(ss))
}

// end commits.
func (x *transaction) end(ctx context.Context) error {
	if hook := x.s.beforeCommit.Load(); hook != nil {
		(*hook)()
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if !x.sent.commit() {
		return context.DeadlineExceeded
	}
	_, err := x.c.ExecContext(ctx, commit)
	return outcome(err, false)
}

// outcome of a call with a commit: only an error that the server itself reports, or one of the own statements, says that nothing was applied, and
// not even those where more was asked behind the commit.
func outcome(err error, more bool) error {
	if err == nil || errors.Is(err, sqlstore.ErrRecord) || !more && (sqlstore.IsRefused(err) || fromServer(err)) {
		return err
	}
	return fmt.Errorf("%w: %w", backends.ErrUnknown, err)
}

// undo ends what is left of a transaction, so that the connection can be used again; where that fails it is thrown away.
func (x *transaction) undo(cause error) error {
	if cause == nil || x.how == reading {
		return cause
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(x.s.ctx), time.Second)
	defer cancel()
	if !fromServer(cause) && !isOurs(cause) {
		discard(x.c) // the server ends the transaction with the connection
		return cause
	}
	if _, err := x.c.ExecContext(ctx, rollback); err != nil {
		discard(x.c)
	}
	return cause
}

// isOurs tells whether an error arose here, on a connection that works.
func isOurs(err error) bool {
	return sqlstore.IsRefused(err) || errors.Is(err, sqlstore.ErrRecord) || !broken(err) && !errors.Is(err, errCut)
}

// discard lets the pool close the connection instead of giving it to somebody else.
func discard(c *sql.Conn) { _ = c.Raw(func(any) error { return driver.ErrBadConn }) }

// persist repeats a transaction for as long as that can help and the context lasts.
// again: also when it may have been applied, since that does no harm.
func (s *Store) persist(ctx context.Context, on attempt, how kind, again bool, f func(*sqlstore.Tx) error) error {
	ctx, cancel, err := s.bound(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	created := false
	repeats := func(err error) bool { return passing(err) || again && errors.Is(err, backends.ErrUnknown) }
	return s.wrap(sqlstore.Persist(ctx, repeats, func() error {
		return on(ctx, func(ctx context.Context, c *sql.Conn, sent *fate) error {
			if err := s.look(ctx, c); err != nil {
				return err
			}
			err := (&transaction{s: s, c: c, how: how, sent: sent}).run(ctx, f)
			switch {
			case errors.Is(err, sqlstore.ErrRecord):
				if err := s.establish(ctx, c); err != nil {
					return err
				}
			case s.creates && !created && isNumber(err, noObject, noSchema):
				created = true
				if err := s.create(ctx, c); err != nil {
					return err
				}
				return sqlstore.ErrRecord
			}
			return err
		})
	}))
}

package sqlserver

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/rebalancer-go/rebalancer/backends"
)

// errLine says that the own connection is not to be had just now, and nothing was sent.
var errLine = errors.New("the store's own connection is not there")

const (
	// lineBusy is how long a renewal waits for others on the own connection until it tries the pool.
	lineBusy = 100 * time.Millisecond
	// longestGoodbye is how long a call is waited for after its context has ended: the server has to confirm that it was broken off.
	longestGoodbye = 300 * time.Millisecond
)

// attempt is one try of a transaction on some connection.
type attempt func(ctx context.Context, f func(context.Context, *sql.Conn, *fate) error) error

// pooled runs f on a connection of the pool.
func (s *Store) pooled(ctx context.Context, f func(context.Context, *sql.Conn, *fate) error) error {
	return s.leave(ctx, func(watch func(*sql.Conn), sent *fate) error {
		c, err := s.db.Conn(ctx)
		if err != nil {
			if st := s.db.Stats(); ctx.Err() != nil && st.MaxOpenConnections > 0 && st.InUse >= st.MaxOpenConnections {
				err = fmt.Errorf("no connection of the pool in time (%d of %d are in use): %w", st.InUse, st.MaxOpenConnections, err)
			}
			return err
		}
		defer func() { _ = c.Close() }()
		watch(c)
		if err := ctx.Err(); err != nil {
			return err
		}
		return f(ctx, c, sent)
	})
}

// urgent runs f on the store's own connection, or where that is held up or cannot be had, on one of the pool, if that has one to spare.
func (s *Store) urgent(ctx context.Context, f func(context.Context, *sql.Conn, *fate) error) error {
	if s.line.none {
		return s.pooled(ctx, f)
	}
	err := s.line.use(ctx, f)
	if errors.Is(err, errLine) && ctx.Err() == nil {
		return s.pooled(ctx, f)
	}
	return err
}

// leave runs f, and does not wait for it for long after its context has ended: the client waits for the server's answer even then, and a server
// that hangs gives none. The connection is then cut where it is ours; f ends sooner or later, and commits nothing.
func (s *Store) leave(ctx context.Context, f func(watch func(*sql.Conn), sent *fate) error) error {
	sent := &fate{}
	conns := make(chan func(), 1)
	done := make(chan error, 1)
	go func() {
		done <- f(func(c *sql.Conn) { conns <- s.wires.cutter(c) }, sent)
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	goodbye := time.NewTimer(longestGoodbye)
	defer goodbye.Stop()
	select {
	case err := <-done:
		return err
	case <-goodbye.C:
	}
	unsent := sent.abandon()
	select {
	case cut := <-conns:
		cut()
	default:
	}
	err := fmt.Errorf("the server does not answer: %w", ctx.Err())
	if !unsent {
		err = fmt.Errorf("%w: %w", backends.ErrUnknown, err)
	}
	return err
}

// line is the connection that the store has for renewals.
type line struct {
	s    *Store
	db   *sql.DB       // what it is taken from
	none bool          // there is none to spare
	turn chan struct{} // held by who uses the connection
	conn *sql.Conn     // guarded by turn; nil: none
}

func newLine(s *Store, db *sql.DB) *line {
	return &line{s: s, db: db, turn: make(chan struct{}, 1), none: db == s.db && db.Stats().MaxOpenConnections == 1}
}

// use runs f on the connection. Where the pool has a connection to spare it does not wait for its turn for long.
func (l *line) use(ctx context.Context, f func(context.Context, *sql.Conn, *fate) error) error {
	if err := l.take(ctx); err != nil {
		return err
	}
	return l.s.leave(ctx, func(watch func(*sql.Conn), sent *fate) error {
		defer func() { <-l.turn }()
		if l.conn == nil {
			c, err := l.db.Conn(ctx)
			if err != nil {
				return err
			}
			l.conn = c
		}
		watch(l.conn)
		err := f(ctx, l.conn, sent)
		if err != nil && !fromServer(err) && !isOurs(err) || ctx.Err() != nil {
			discard(l.conn)
			_ = l.conn.Close()
			l.conn = nil
		}
		return err
	})
}

func (l *line) take(ctx context.Context) error {
	busy := time.NewTicker(lineBusy)
	defer busy.Stop()
	for {
		select {
		case l.turn <- struct{}{}:
			return nil
		case <-busy.C:
			if st := l.s.db.Stats(); st.MaxOpenConnections == 0 || st.InUse < st.MaxOpenConnections {
				return errLine
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// close waits for who uses the connection, if not for long: his call has been broken off.
func (l *line) close() {
	gone := time.NewTimer(2 * longestGoodbye)
	defer gone.Stop()
	select {
	case l.turn <- struct{}{}:
		if l.conn != nil {
			_ = l.conn.Close()
			l.conn = nil
		}
		<-l.turn
	case <-gone.C:
	}
	if l.db != l.s.db {
		_ = l.db.Close()
	}
}

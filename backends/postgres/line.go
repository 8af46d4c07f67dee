package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/rebalancer-go/rebalancer/internal/sqlstore"
)

// errLine says that the own connection is not to be had just now, and nothing was sent.
var errLine = errors.New("the store's own connection is not there")

const (
	// lineBusy is how long a renewal waits for others on the own connection until it tries the pool.
	lineBusy   = 100 * time.Millisecond
	reconnects = 500 * time.Millisecond
	resumeFor  = 5 * time.Second
)

// line is the connection that the store has besides the pool, for renewals and for hints.
type line struct {
	s      *Store
	turn   chan struct{} // held by who uses the connection
	conn   *pgx.Conn     // guarded by turn; nil: none
	proved bool          // notifications arrive; guarded by turn

	mu      sync.Mutex
	waiting int                // who wants a turn
	quiet   context.CancelFunc // ends the wait for notifications, whose turn it is
}

func newLine(s *Store) *line { return &line{s: s, turn: make(chan struct{}, 1)} }

// use runs f on the connection. patient: it waits for its turn in any case; else, where the pool has a connection to spare, not long.
func (l *line) use(ctx context.Context, patient bool, f func(*pgconn.PgConn) error) error {
	if err := l.take(ctx, patient); err != nil {
		return err
	}
	defer l.give()
	if err := l.connect(ctx); err != nil {
		return err
	}
	return f(l.conn.PgConn())
}

func (l *line) take(ctx context.Context, patient bool) error {
	l.want(1)
	defer l.want(-1)
	busy := time.NewTicker(lineBusy)
	defer busy.Stop()
	for {
		select {
		case l.turn <- struct{}{}:
			return nil
		case <-busy.C:
			if st := l.s.pool.Stat(); !patient && st.AcquiredConns() < st.MaxConns() {
				return errLine
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (l *line) give() {
	l.drop()
	<-l.turn
}

// drop forgets a connection that is closed.
func (l *line) drop() {
	if l.conn != nil && l.conn.IsClosed() {
		l.conn, l.proved = nil, false
		l.s.ears.listens()
	}
}

// want tells who listens that somebody waits.
func (l *line) want(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting += n
	if n > 0 && l.quiet != nil {
		l.quiet()
	}
}

// connect makes the connection as the pool would.
func (l *line) connect(ctx context.Context) error {
	if l.drop(); l.conn != nil {
		return nil
	}
	pool := l.s.pool.Config()
	c := pool.ConnConfig
	if pool.BeforeConnect != nil {
		if err := pool.BeforeConnect(ctx, c); err != nil {
			return fmt.Errorf("BeforeConnect of the pool: %w", err)
		}
	}
	c.OnNotification = func(_ *pgconn.PgConn, n *pgconn.Notification) { l.s.out.arrived(n.Payload) }
	c.BuildContextWatcherHandler = func(p *pgconn.PgConn) ctxwatch.Handler { return &pgconn.DeadlineContextWatcherHandler{Conn: p.Conn()} }
	conn, err := pgx.ConnectConfig(ctx, c)
	if err != nil {
		if isState(err, tooMany) {
			return fmt.Errorf("%w: %w", errLine, err)
		}
		return err
	}
	if pool.AfterConnect != nil {
		if err := pool.AfterConnect(ctx, conn); err != nil {
			_ = conn.Close(ctx)
			return fmt.Errorf("AfterConnect of the pool: %w", err)
		}
	}
	l.conn = conn
	return nil
}

// hear lets the connection listen on a channel, and finds out whether it hears anything.
func (l *line) hear(ctx context.Context, channel string) error {
	proved, direct := false, false
	err := l.use(ctx, true, func(c *pgconn.PgConn) error {
		var pid int64
		_, err := send(ctx, c, nil, &l.s.dialect, []sqlstore.Statement{
			{SQL: `LISTEN ` + quote(channel)},
			{SQL: `SELECT pg_backend_pid()`, Row: func(scan sqlstore.Scan) error { return scan(&pid) }},
		})
		if err != nil {
			return err
		}
		l.s.ears.listens(channel)
		direct = pid == int64(c.PID()) // nobody stands between
		l.proved = l.proved || direct
		proved = l.proved
		return nil
	})
	if err != nil || proved {
		return err
	}
	if err := l.s.out.probe(ctx, channel); err != nil {
		return err
	}
	return l.use(ctx, true, func(*pgconn.PgConn) error { l.proved = true; return nil })
}

// silence lets the connection listen no more.
func (l *line) silence(ctx context.Context) error {
	return l.use(ctx, true, func(c *pgconn.PgConn) error {
		l.s.ears.listens()
		return c.Exec(ctx, `UNLISTEN *`).Close()
	})
}

// attend waits for notifications whenever somebody listens and nobody else uses the connection.
func (l *line) attend(ctx context.Context) {
	for {
		select {
		case <-l.s.ears.opened():
		case <-ctx.Done():
			return
		}
		select {
		case l.turn <- struct{}{}:
		case <-ctx.Done():
			return
		}
		err := l.wait(ctx)
		l.give()
		if err != nil {
			select {
			case <-time.After(reconnects):
			case <-ctx.Done():
			}
		}
	}
}

// wait hears notifications until somebody else wants the connection.
func (l *line) wait(ctx context.Context) error {
	if err := l.resume(ctx); err != nil {
		return err
	}
	quiet, cancel := context.WithCancel(ctx)
	defer cancel()
	l.mu.Lock()
	if l.waiting > 0 {
		cancel()
	}
	l.quiet = cancel
	l.mu.Unlock()
	err := l.conn.PgConn().WaitForNotification(quiet)
	l.mu.Lock()
	l.quiet = nil
	l.mu.Unlock()
	if quiet.Err() != nil {
		return nil
	}
	return err
}

// resume connects, and listens on what a connection that broke had listened on. What was sent meanwhile is lost, so everybody is hinted at.
func (l *line) resume(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, resumeFor)
	defer cancel()
	lost := l.conn == nil || l.conn.IsClosed()
	if err := l.connect(ctx); err != nil {
		return err
	}
	names := l.s.ears.missing()
	if len(names) == 0 {
		return nil
	}
	var ss []sqlstore.Statement
	for _, name := range names {
		ss = append(ss, sqlstore.Statement{SQL: `LISTEN ` + quote(name)})
	}
	if _, err := send(ctx, l.conn.PgConn(), nil, &l.s.dialect, ss); err != nil {
		return err
	}
	l.s.ears.listens(names...)
	if lost {
		l.s.ears.all()
	}
	return nil
}

func (l *line) close() {
	l.turn <- struct{}{}
	if l.conn != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = l.conn.Close(ctx)
	}
}

// brokenPipe tells whether an error is of the network, or of a connection that is closed.
func brokenPipe(err error) bool {
	var n net.Error
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) || errors.Is(err, syscall.ECONNRESET) ||
		errors.Is(err, syscall.EPIPE) || errors.As(err, &n) || pgconn.SafeToRetry(err) || errors.Is(err, errUnsent)
}

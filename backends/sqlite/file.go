package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"strconv"
	"time"

	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/internal/sqlstore"
	_ "modernc.org/sqlite" // the driver
)

// errMoved says that the open file is not the one at the path, or does not hold the record that it held.
var errMoved = errors.New("the file was deleted or replaced")

// file is one open file.
type file struct {
	store  *Store
	id     fileID
	db     *sql.DB
	writer *sql.Conn
	watch  *sql.Conn     // for the goroutine that looks for hints, alone
	turn   chan struct{} // held by who writes: writers of one process need not wait by polling
	folder *os.File      // the shared lock on the folder
	done   chan struct{} // closed when the file is

	users int   // guarded by the store's mu; 1 is the store's own
	stale bool  // guarded by the store's mu
	size  int64 // of the file when it was last seen: it never shrinks; guarded by the store's mu
}

// dial opens the database. mode is rw or rwc.
func (s *Store) dial(mode string) (*sql.DB, error) {
	u := url.URL{Scheme: "file", Path: s.path}
	q := url.Values{"mode": {mode}, "_pragma": {"busy_timeout(0)", "synchronous(FULL)", "trusted_schema(OFF)"}}
	q["_pragma"] = append(q["_pragma"], s.tune...)
	db, err := sql.Open("sqlite", u.String()+"?"+q.Encode())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(6)
	db.SetMaxIdleConns(6)
	return db, nil
}

func (f *file) close() {
	for _, c := range []*sql.Conn{f.writer, f.watch} {
		if c != nil {
			_ = c.Close()
		}
	}
	_ = f.db.Close()
	_ = f.folder.Close() // the lock last
	close(f.done)
}

// write runs fn in a transaction that holds the file's lock from its beginning.
func (f *file) write(ctx context.Context, fn func(*sqlstore.Tx) error) error {
	select {
	case f.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	case <-f.store.ctx.Done():
		return backends.ErrClosed
	}
	defer func() { <-f.turn }()
	if err := f.store.begin(ctx, f.writer); err != nil {
		return err
	}
	// From here on nothing waits for anybody, and a call that is broken off could leave the outcome open.
	inner := context.WithoutCancel(ctx)
	t, err := f.prepare(inner, f.writer, 0)
	if err == nil {
		err = fn(t)
	}
	if err == nil {
		err = t.Flush()
	}
	if err != nil {
		return f.rollback(inner, err)
	}
	if _, err := f.writer.ExecContext(inner, "COMMIT"); err != nil {
		err = f.rollback(inner, err)
		if !isCode(err, codeFull, codeBusy) {
			err = fmt.Errorf("%w: %w", backends.ErrUnknown, err)
		}
		return err
	}
	return nil
}

// rollback ends the writer's transaction. Where that fails the file is opened again.
func (f *file) rollback(ctx context.Context, cause error) error {
	if _, err := f.writer.ExecContext(ctx, "ROLLBACK"); err != nil && !isCode(cause, codeFull, codeIOErr) {
		f.store.forget(f)
		return errors.Join(cause, err)
	}
	return cause
}

// prepare reads the clocks and the record in an open transaction. now is 0, or the time since boot that a reader took before.
func (f *file) prepare(ctx context.Context, c *sql.Conn, now int64) (*sqlstore.Tx, error) {
	if id, err := identify(f.store.path); err != nil || id != f.id {
		return nil, errMoved
	}
	r, err := readRecord(ctx, c)
	if err != nil {
		return nil, err
	}
	if now == 0 {
		if now, err = sinceBoot(); err != nil {
			return nil, err
		}
	}
	if r == nil || r.identity != f.id.String() || r.boot != bootID() {
		return nil, errMoved
	}
	t := &sqlstore.Tx{Now: now + r.zero, Incarnation: r.incarnation, Since: r.since}
	t.Dialect = sqlstore.Dialect{
		Now:         strconv.FormatInt(t.Now, 10),
		Wall:        strconv.FormatInt(f.store.wall(), 10),
		Incarnation: sqlstore.Literal(r.incarnation),
	}
	t.Run = func(ss []sqlstore.Statement) error { return sqlstore.Run(ctx, c, &t.Dialect, ss) }
	return t, nil
}

func (f *file) read(ctx context.Context, fn func(*sqlstore.Tx) error) error {
	c, err := f.store.connect(ctx, f.db)
	if err != nil {
		return err
	}
	defer c.Close()
	now, err := sinceBoot() // before the view of the data: what is dead by then can never be renewed
	if err != nil {
		return err
	}
	inner := context.WithoutCancel(ctx)
	if err := f.store.patiently(ctx, func() error { _, err := c.ExecContext(inner, "BEGIN"); return err }); err != nil {
		return err
	}
	var t *sqlstore.Tx
	err = f.store.patiently(ctx, func() error { t, err = f.prepare(inner, c, now); return err })
	if err == nil {
		err = fn(t)
	}
	if err == nil {
		err = t.Flush()
	}
	_, end := c.ExecContext(inner, "ROLLBACK")
	return errors.Join(err, end)
}

// connect gives a connection. A new one reads the file, which somebody may just have locked.
func (s *Store) connect(ctx context.Context, db *sql.DB) (c *sql.Conn, err error) {
	err = s.patiently(ctx, func() error { c, err = db.Conn(ctx); return err })
	return c, err
}

// begin starts a transaction that holds the lock for writing.
func (s *Store) begin(ctx context.Context, c *sql.Conn) error {
	return s.patiently(ctx, func() error {
		_, err := c.ExecContext(context.WithoutCancel(ctx), "BEGIN IMMEDIATE")
		return err
	})
}

// patiently calls f again while somebody else has the lock, until ctx ends.
func (s *Store) patiently(ctx context.Context, f func() error) error {
	wait := time.Millisecond
	over := time.Now().Add(longestWait)
	for {
		err := f()
		if err == nil || !isCode(err, codeBusy, codeLocked) || time.Now().After(over) {
			return err
		}
		select {
		case <-time.After(wait/2 + rand.N(wait)):
		case <-ctx.Done():
			return fmt.Errorf("%w: the file is locked by another program: %w", ctx.Err(), err)
		case <-s.ctx.Done():
			return backends.ErrClosed
		}
		wait = min(2*wait, 16*time.Millisecond)
	}
}

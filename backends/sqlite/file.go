package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
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
	t := &sqlstore.Tx{Ctx: inner, Q: f.writer}
	err := f.prepare(t)
	if err == nil {
		err = fn(t)
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

// prepare reads the clocks and the record in an open transaction.
func (f *file) prepare(t *sqlstore.Tx) error {
	if id, err := identify(f.store.path); err != nil || id != f.id {
		return errMoved
	}
	r, err := readRecord(t.Ctx, t.Q)
	if err != nil {
		return err
	}
	boot, err := sinceBoot()
	if err != nil {
		return err
	}
	if t.Now == 0 { // a reader took the time before
		t.Now = boot
	}
	if r == nil || r.identity != f.id.String() || r.boot != bootID() {
		return errMoved
	}
	t.Now += r.zero
	t.Wall = f.store.wall()
	t.Incarnation, t.Since = r.incarnation, r.since
	return nil
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
	t := &sqlstore.Tx{Ctx: inner, Q: c, Now: now}
	err = f.store.patiently(ctx, func() error { t.Now = now; return f.prepare(t) })
	if err == nil {
		err = fn(t)
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

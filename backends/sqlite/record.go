package sqlite

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/internal/sqlstore"
)

// format is the version of the tables.
const format = 1

var schema = []string{
	`CREATE TABLE IF NOT EXISTS record (one INTEGER PRIMARY KEY CHECK (one = 1), format INTEGER NOT NULL, incarnation TEXT NOT NULL,
		since INTEGER NOT NULL, identity TEXT NOT NULL, boot TEXT NOT NULL, zero INTEGER NOT NULL)`,
	`CREATE TABLE IF NOT EXISTS sessions (id BLOB PRIMARY KEY, grp BLOB NOT NULL, node BLOB NOT NULL, expires INTEGER NOT NULL,
		ttl INTEGER NOT NULL, touched INTEGER NOT NULL, opened INTEGER NOT NULL, superseded INTEGER NOT NULL, proof BLOB NOT NULL)`,
	`CREATE INDEX IF NOT EXISTS sessions_by_node ON sessions (grp, node)`,
	`CREATE INDEX IF NOT EXISTS sessions_by_end ON sessions (grp, expires)`,
	`CREATE TABLE IF NOT EXISTS entries (grp BLOB NOT NULL, name BLOB NOT NULL, value BLOB NOT NULL, version INTEGER NOT NULL,
		session BLOB NOT NULL, gone INTEGER NOT NULL, PRIMARY KEY (grp, name))`,
	`CREATE INDEX IF NOT EXISTS entries_by_session ON entries (session) WHERE session <> x''`,
	`CREATE INDEX IF NOT EXISTS entries_gone ON entries (grp, version) WHERE gone = 1`,
	`CREATE TABLE IF NOT EXISTS hints (seq INTEGER PRIMARY KEY AUTOINCREMENT, grp BLOB NOT NULL, address BLOB NOT NULL,
		origin TEXT NOT NULL, at INTEGER NOT NULL)`,
}

// record belongs to the file: one that names another file, or none, means that data was lost or rolled back.
type record struct {
	incarnation string
	since       int64 // µs of the store's clock; 0: proved that nobody works under an earlier one
	identity    string
	boot        string
	zero        int64 // the store's clock is the time since boot plus this, in µs
}

// readRecord gives nil when there is none.
func readRecord(ctx context.Context, q sqlstore.Querier) (*record, error) {
	rows, err := q.QueryContext(ctx, `SELECT format, incarnation, since, identity, boot, zero FROM record`)
	if err != nil {
		if strings.Contains(err.Error(), "no such table") {
			return nil, nil
		}
		return nil, err
	}
	defer rows.Close()
	if !rows.Next() {
		return nil, rows.Err()
	}
	var r record
	var version int
	if err := rows.Scan(&version, &r.incarnation, &r.since, &r.identity, &r.boot, &r.zero); err != nil {
		return nil, err
	}
	if version != format {
		return nil, fmt.Errorf("%w: its tables have format %d, this program knows format %d", backends.ErrFatal, version, format)
	}
	return &r, rows.Err()
}

// establish writes the record where it is absent or of another file, and begins the clock of a new boot. proof says
// that nobody works under earlier data. Call it in a transaction for writing.
func (s *Store) establish(ctx context.Context, c *sql.Conn, proof bool) error {
	for _, statement := range schema {
		if _, err := c.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	id, err := identify(s.path)
	if err != nil {
		return errMoved
	}
	r, err := readRecord(ctx, c)
	if err != nil {
		return err
	}
	boot, err := sinceBoot()
	if err != nil {
		return err
	}
	next := record{incarnation: rand.Text(), identity: id.String(), boot: bootID()}
	sameData := r != nil && r.identity == next.identity
	if sameData && r.boot == next.boot {
		return nil
	}
	next.zero = s.wall() - boot
	if r != nil && r.boot == next.boot {
		next.zero = r.zero // what sessions say of their ends stays true
	} else if _, err := c.ExecContext(ctx, `UPDATE sessions SET expires = -1`); err != nil {
		return err // every process of another boot is gone
	}
	switch {
	case sameData: // and of an earlier boot, whose processes are all gone
		next.incarnation = r.incarnation
	case !proof:
		next.since = next.zero + boot
	}
	_, err = c.ExecContext(ctx, `INSERT OR REPLACE INTO record (one, format, incarnation, since, identity, boot, zero) VALUES (1, ?, ?, ?, ?, ?, ?)`,
		format, next.incarnation, next.since, next.identity, next.boot, next.zero)
	return err
}

// make writes the record of a file that is new, empty or not ours, under a lock on the folder.
func (s *Store) make(ctx context.Context, prove bool) (err error) {
	lock, proof, err := lockToMake(ctx, s.path, prove)
	if err != nil || lock == nil {
		return err // no lock: somebody else has made it meanwhile
	}
	defer lock.Close()
	db, err := s.dial("rwc")
	if err != nil {
		return err
	}
	defer db.Close()
	c, err := s.connect(ctx, db)
	if err != nil {
		return err
	}
	defer c.Close()
	inner := context.WithoutCancel(ctx)
	err = s.patiently(ctx, func() error { _, err := c.ExecContext(inner, "PRAGMA journal_mode = WAL"); return err })
	if err != nil {
		return err
	}
	if err := s.begin(ctx, c); err != nil {
		return err
	}
	err = s.establish(inner, c, proof)
	if err == nil {
		_, err = c.ExecContext(inner, "COMMIT")
	}
	if err != nil {
		_, end := c.ExecContext(inner, "ROLLBACK")
		return errors.Join(err, ignoreEnded(end))
	}
	return lock.Sync() // the name of the file is durable too
}

// ignoreEnded drops the error of a ROLLBACK after SQLite ended the transaction itself.
func ignoreEnded(err error) error {
	if isCode(err, codeError) {
		return nil
	}
	return err
}

// open opens the file, and makes it first when it is not there. prove is false when the store itself has had a file open.
func (s *Store) open(ctx context.Context, prove bool) (*file, error) {
	for range 10 {
		f, err := s.tryOpen(ctx)
		if err == nil || !errors.Is(err, errMoved) {
			return f, err
		}
		if err := s.make(ctx, prove); err != nil && !errors.Is(err, errMoved) {
			return nil, err
		}
	}
	return nil, errors.New("the file is deleted or replaced again and again")
}

// tryOpen opens a file that has a valid record; errMoved when it must be made first.
func (s *Store) tryOpen(ctx context.Context) (_ *file, err error) {
	if empty, err := missing(s.path); err != nil {
		return nil, err
	} else if empty {
		return nil, errMoved // without a lock, which would spoil the proof of who is just making it
	}
	f := &file{store: s, turn: make(chan struct{}, 1), done: make(chan struct{}), users: 1}
	if f.folder, err = lockShared(ctx, s.path); err != nil {
		return nil, err
	}
	if f.db, err = s.dial("rw"); err != nil {
		_ = f.folder.Close()
		return nil, err
	}
	defer func() {
		if err != nil {
			f.close()
		}
	}()
	if f.id, err = identify(s.path); err != nil {
		return nil, errMoved
	}
	for _, c := range []**sql.Conn{&f.writer, &f.watch} {
		if *c, err = s.connect(ctx, f.db); err != nil {
			return nil, s.unlessGone(err)
		}
	}
	var r *record
	err = s.patiently(ctx, func() error { r, err = readRecord(context.WithoutCancel(ctx), f.writer); return err })
	if err != nil {
		return nil, s.unlessGone(err)
	}
	if r == nil || r.identity != f.id.String() || r.boot != bootID() {
		return nil, errMoved
	}
	// A last write shows whether the file can be written at all, and compares it with the path once more.
	return f, f.write(ctx, func(*sqlstore.Tx) error { return nil })
}

// unlessGone is errMoved when the path names nothing any more, else err.
func (s *Store) unlessGone(err error) error {
	if empty, gone := missing(s.path); gone == nil && empty {
		return errMoved
	}
	return err
}

package sqlstore

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"

	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/internal/storereq"
)

// Open opens a session.
func Open(ctx context.Context, b Base, o backends.SessionOptions) (backends.Session, error) {
	if err := storereq.Open(o, b.ShortestTTL()); err != nil {
		return nil, err
	}
	s := &session{base: b, id: rand.Text(), group: o.Group, ttl: o.TTL, ended: make(chan struct{})}
	var proof string
	proof, s.release = b.Proof()
	err := b.Write(ctx, func(t *Tx) error {
		s.opened, s.since = t.stamp(), t.Now
		_, err := t.exec(`INSERT INTO sessions (id, grp, node, expires, ttl, touched, opened, superseded, proof) VALUES (?, ?, ?, ?, ?, 0, ?, 0, ?)`,
			[]byte(s.id), []byte(o.Group), []byte(o.Node), t.Now+o.TTL.Microseconds(), o.TTL.Microseconds(), t.Now, []byte(proof))
		return err
	})
	if err != nil {
		if !errors.Is(err, backends.ErrUnknown) {
			s.release()
		}
		return nil, err
	}
	return s, nil
}

// Groups lists the groups that have an entry which is not bound.
func Groups(ctx context.Context, b Base) ([]string, error) {
	var names []string
	err := b.Read(ctx, func(t *Tx) error {
		names = nil
		return t.query(func(r *sql.Rows) error {
			var name []byte
			if err := r.Scan(&name); err != nil {
				return err
			}
			names = append(names, string(name))
			return nil
		}, `SELECT DISTINCT grp FROM entries WHERE gone = 0 AND session = ? ORDER BY grp`, nobody())
	})
	return names, err
}

// Rows counts what is stored of sessions and of entries bound to one.
func Rows(ctx context.Context, b Base) (n int, err error) {
	err = b.Read(ctx, func(t *Tx) error {
		return t.query(func(r *sql.Rows) error { return r.Scan(&n) },
			`SELECT (SELECT count(*) FROM sessions) + (SELECT count(*) FROM entries WHERE session <> ?)`, nobody())
	})
	return n, err
}

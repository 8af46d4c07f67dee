package sqlstore

import (
	"context"
	"crypto/rand"
	"database/sql"

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
	proof, s.release = b.Proof(o.TTL)
	if err := b.Write(ctx, func(t *Tx) error { return s.insert(t, o.Node, proof) }); err != nil {
		s.release() // also when it may have been opened: nobody works under it
		return nil, err
	}
	return s, nil
}

// insert gives the session its row, and its place in the order of opening: after all that were opened before it, also when
// the clock was set back.
func (s *session) insert(t *Tx, node, proof string) error {
	if err := t.order(s.group); err != nil {
		return err
	}
	s.opened, s.number = t.stamp(), t.Now
	err := t.query(func(r *sql.Rows) error {
		var last int64
		err := r.Scan(&last)
		s.number = max(s.number, last+1)
		return err
	}, `SELECT coalesce(max(opened), 0) FROM sessions WHERE grp = ?`, []byte(s.group))
	if err != nil {
		return err
	}
	_, err = t.exec(`INSERT INTO sessions (id, grp, node, expires, ttl, touched, opened, superseded, proof) VALUES (?, ?, ?, ?, ?, 0, ?, 0, ?)`,
		[]byte(s.id), []byte(s.group), []byte(node), t.Now+s.ttl.Microseconds(), s.ttl.Microseconds(), s.number, []byte(proof))
	return err
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

package sqlstore

import (
	"context"
	"crypto/rand"

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
	var t *Tx
	err := b.Write(ctx, func(tx *Tx) error {
		t = tx
		s.insert(t, o.Node, proof)
		return t.Flush() // a connection that has died shows before the commit, which would leave the outcome open
	})
	if err != nil {
		s.release() // also when it may have been opened: nobody works under it
		return nil, err
	}
	s.opened = t.stamp()
	return s, nil
}

// insert gives the session its row, and its place in the order of opening: after all that were opened before it, also when
// the clock was set back.
func (s *session) insert(t *Tx, node, proof string) {
	t.order(s.group, node)
	t.Add(Statement{
		SQL: `INSERT INTO {t}sessions (id, grp, node, expires, ttl, touched, superseded, proof, opened)` +
			` SELECT ?, ?, ?, {now} + ?, ?, 0, 0, ?, CASE WHEN l.last >= {now} THEN l.last + 1 ELSE {now} END` +
			` FROM (SELECT coalesce(max(opened), 0) AS last FROM {t}sessions WHERE grp = ?) l`,
		Args: []any{[]byte(s.id), []byte(s.group), []byte(node), s.ttl.Microseconds(), s.ttl.Microseconds(), []byte(proof), []byte(s.group)},
	}, Statement{
		SQL: `SELECT opened FROM {t}sessions WHERE id = ?`, Args: []any{[]byte(s.id)},
		Row: func(scan Scan) error { return scan(&s.number) },
	})
}

// order waits for those who open or supersede sessions of the node at the same time.
func (t *Tx) order(group, node string) {
	if t.Dialect.Order != nil && node != "" {
		t.Add(t.Dialect.Order(group, node)...)
	}
}

// Groups lists the groups that have an entry which is not bound.
func Groups(ctx context.Context, b Base) ([]string, error) {
	var names []string
	err := b.Read(ctx, func(t *Tx) error {
		names = nil
		t.Add(Statement{
			SQL: `SELECT DISTINCT grp FROM {t}entries WHERE gone = 0 AND session = ? ORDER BY grp`, Args: []any{nobody()},
			Row: func(scan Scan) error {
				var name []byte
				err := scan(&name)
				names = append(names, string(name))
				return err
			},
		})
		return nil
	})
	return names, err
}

// Rows counts what is stored of sessions and of entries bound to one.
func Rows(ctx context.Context, b Base) (int, error) {
	var n int64
	err := b.Read(ctx, func(t *Tx) error {
		t.Add(Statement{
			SQL:  `SELECT (SELECT count(*) FROM {t}sessions) + (SELECT count(*) FROM {t}entries WHERE session <> ?)`,
			Args: []any{nobody()}, Row: func(scan Scan) error { return scan(&n) },
		})
		return nil
	})
	return int(n), err
}

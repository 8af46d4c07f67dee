package sqlstore

import (
	"context"
	"time"

	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/internal/storereq"
)

// Supersede marks the older sessions of a node's name, and ends those whose process is dead.
func (s *session) Supersede(ctx context.Context, node string) (backends.Superseded, error) {
	if err := storereq.Supersede(node); err != nil {
		return backends.Superseded{}, err
	}
	var reply backends.Superseded
	var refused error
	err := s.base.Write(ctx, func(t *Tx) error {
		refused = backends.ErrSessionLost
		t.order(s.group, node)
		if t.Dialect.Update != "" { // all in one order
			t.Add(Statement{SQL: `SELECT id FROM {t}sessions WHERE id = ? OR (grp = ? AND node = ? AND opened < ?) ORDER BY id {update}`,
				Args: []any{[]byte(s.id), []byte(s.group), []byte(node), s.number}, Row: ignore})
		} else {
			t.hold(`id = ?`, []byte(s.id))
		}
		t.Add(s.own(func(alive, superseded bool) { refused = s.why(alive, superseded) }))
		if err := t.Flush(); err != nil {
			return err
		}
		reply = backends.Superseded{Stamp: t.stamp()}
		if refused != nil {
			return nil
		}
		return s.takeOver(t, node, &reply)
	})
	if err != nil {
		return backends.Superseded{}, err
	}
	return reply, refused
}

// takeOver marks first: what is marked is not renewed any more, so the ends that are read then are the last ones.
func (s *session) takeOver(t *Tx, node string, reply *backends.Superseded) error {
	const (
		all   = ` WHERE grp = ? AND node = ? AND opened < ?` // also those that have run out: a renewal of one may be under way
		older = all + ` AND expires > {now}`
	)
	which := []any{[]byte(s.group), []byte(node), s.number}
	var dead [][]byte
	t.Add(Statement{SQL: `UPDATE {t}sessions SET superseded = 1` + all, Args: which}, Statement{
		SQL: `SELECT id, proof, expires FROM {t}sessions` + older, Args: which,
		Row: func(scan Scan) error {
			var id, proof []byte
			var expires int64
			if err := scan(&id, &proof, &expires); err != nil {
				return err
			}
			if s.base.Dead(string(proof)) {
				dead = append(dead, id)
				return nil
			}
			reply.Older++
			reply.Left = max(reply.Left, time.Duration(expires-t.Now)*time.Microsecond)
			return nil
		},
	})
	if err := t.Flush(); err != nil {
		return err
	}
	reply.Ended = len(dead)
	for _, id := range dead {
		t.remove(id)
	}
	return nil
}

package sqlstore

import (
	"context"
	"database/sql"
	"slices"
	"time"

	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/internal/storereq"
)

// openings is the key under whose lock the sessions of a group are opened and superseded: their order is that of the lock.
const openings = "sessions"

// order waits for those who open or supersede sessions of the group at the same time.
func (t *Tx) order(group string) error {
	if t.Lock == nil {
		return nil
	}
	return t.Lock(group, []string{openings})
}

// Supersede marks the older sessions of a node's name, and ends those whose process is dead.
func (s *session) Supersede(ctx context.Context, node string) (backends.Superseded, error) {
	if err := storereq.Supersede(node); err != nil {
		return backends.Superseded{}, err
	}
	var reply backends.Superseded
	var refused error
	err := s.base.Write(ctx, func(t *Tx) error {
		if err := t.order(s.group); err != nil {
			return err
		}
		reply, refused = backends.Superseded{Stamp: t.stamp()}, nil
		well, err := s.well(t)
		if err != nil {
			return err
		}
		if !well {
			refused, err = s.whyNot(t)
			return err
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
	const older = ` WHERE grp = ? AND node = ? AND opened < ? AND expires > ?`
	which := []any{[]byte(s.group), []byte(node), s.number, t.Now}
	if _, err := t.exec(`UPDATE sessions SET superseded = 1`+older, which...); err != nil {
		return err
	}
	var dead [][]byte
	err := t.query(func(r *sql.Rows) error {
		var id, proof []byte
		var expires int64
		if err := r.Scan(&id, &proof, &expires); err != nil {
			return err
		}
		if s.base.Dead(string(proof)) {
			dead = append(dead, id)
			return nil
		}
		reply.Older++
		reply.Left = max(reply.Left, time.Duration(expires-t.Now)*time.Microsecond)
		return nil
	}, `SELECT id, proof, expires FROM sessions`+older, which...)
	if err != nil {
		return err
	}
	reply.Ended = len(dead)
	for _, id := range dead {
		if err := remove(t, id); err != nil {
			return err
		}
	}
	return nil
}

// well makes sure that the session is alive and not superseded, and stays so until the transaction ends.
func (s *session) well(t *Tx) (bool, error) {
	if s.over() {
		return false, nil
	}
	n, err := t.exec(`UPDATE sessions SET touched = touched + 1 WHERE id = ? AND expires > ? AND superseded = 0`, []byte(s.id), t.Now)
	return n == 1, err
}

// whyNot is the reason for which the session is not well; for good.
func (s *session) whyNot(t *Tx) (error, error) {
	alive, err := s.touch(t)
	if alive {
		return backends.ErrSuperseded, err
	}
	return backends.ErrSessionLost, err
}

// barred keeps a session from transactions; nil is no obstacle.
type barred struct{ bound, all error }

func (b barred) from(t *backends.Txn) error {
	if b.bound != nil && slices.ContainsFunc(t.Puts, func(p backends.Put) bool { return p.Bound }) {
		return b.bound
	}
	return b.all
}

// standing finds out what the session may commit; it stays true until the transaction ends.
func (s *session) standing(t *Tx) (barred, error) {
	well, err := s.well(t)
	if well || err != nil {
		return barred{}, err
	}
	switch why, err := s.whyNot(t); why {
	case backends.ErrSuperseded:
		return barred{bound: why}, err
	default:
		return barred{bound: why, all: why}, err
	}
}

package sqlstore

import (
	"context"
	"database/sql"
	"time"

	"github.com/rebalancer-go/rebalancer/backends"
)

// older is a session that another one supersedes.
type older struct {
	id, proof []byte
	expires   int64
}

// Supersede marks the older sessions of a node's name, and ends those whose process is dead.
func (s *session) Supersede(ctx context.Context, node string) (backends.Superseded, error) {
	var reply backends.Superseded
	var refused error
	err := s.base.Write(ctx, func(t *Tx) error {
		reply, refused = backends.Superseded{Stamp: t.stamp()}, nil
		alive, err := s.touch(t)
		if err != nil {
			return err
		}
		if refused, err = s.why(t); err != nil || refused != nil || !alive {
			return err
		}
		list, err := s.olderOf(t, node)
		if err != nil {
			return err
		}
		for _, o := range list {
			if s.base.Dead(string(o.proof)) {
				reply.Ended++
				err = remove(t, o.id)
			} else {
				reply.Older++
				reply.Left = max(reply.Left, time.Duration(o.expires-t.Now)*time.Microsecond)
				_, err = t.exec(`UPDATE sessions SET superseded = 1 WHERE id = ?`, o.id)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return backends.Superseded{}, err
	}
	return reply, refused
}

func (s *session) olderOf(t *Tx, node string) ([]older, error) {
	var list []older
	err := t.query(func(r *sql.Rows) error {
		var o older
		err := r.Scan(&o.id, &o.proof, &o.expires)
		list = append(list, o)
		return err
	}, `SELECT id, proof, expires FROM sessions WHERE grp = ? AND node = ? AND expires > ? AND (opened < ? OR opened = ? AND id < ?) ORDER BY id`,
		[]byte(s.group), []byte(node), t.Now, s.since, s.since, []byte(s.id))
	return list, err
}

// why is the reason for which the session cannot be extended, nil when there is none.
func (s *session) why(t *Tx) (error, error) {
	refused := backends.ErrSessionLost
	if s.over() {
		return refused, nil
	}
	err := t.query(func(r *sql.Rows) error {
		var superseded int
		if err := r.Scan(&superseded); err != nil {
			return err
		}
		refused = nil
		if superseded != 0 {
			refused = backends.ErrSuperseded
		}
		return nil
	}, `SELECT superseded FROM sessions WHERE id = ? AND expires > ?`, []byte(s.id), t.Now)
	return refused, err
}

// claims tells whether a transaction puts something that is bound to the session.
func claims(t *backends.Txn) bool {
	for _, p := range t.Puts {
		if p.Bound {
			return true
		}
	}
	return false
}

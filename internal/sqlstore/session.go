package sqlstore

import (
	"context"
	"sync"
	"time"

	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/internal/storereq"
)

// tombstones are kept for a day, in µs.
const tombstones = 24 * 3600 * 1_000_000

type session struct {
	base      Base
	id, group string
	ttl       time.Duration
	opened    backends.Stamp
	since     int64         // when it was opened, µs of the store's clock
	ended     chan struct{} // closed when the session was seen to have ended
	once      sync.Once
	release   func() // gives up the proof of life
}

func (s *session) ID() string             { return s.id }
func (s *session) TTL() time.Duration     { return s.ttl }
func (s *session) Opened() backends.Stamp { return s.opened }

func (s *session) end() { s.once.Do(func() { close(s.ended) }) }

// over tells whether this handle has seen the end. What a rollback of the data brings back stays ended.
func (s *session) over() bool {
	select {
	case <-s.ended:
		return true
	default:
		return false
	}
}

func (s *session) Renew(ctx context.Context, r backends.RenewRequest) (backends.RenewReply, error) {
	if err := storereq.Keys(r.Keys); err != nil {
		return backends.RenewReply{}, err
	}
	var reply backends.RenewReply
	var refused error
	err := s.base.Write(ctx, func(t *Tx) error {
		reply, refused = backends.RenewReply{Stamp: t.stamp()}, nil
		alive, err := s.extend(t, r.Incarnation)
		if err != nil {
			return err
		}
		if !alive {
			refused, err = s.why(t)
			return err
		}
		if r.Incarnation != t.Incarnation {
			refused = backends.ErrIncarnation
			return nil
		}
		if r.Sweep {
			if err := sweep(t, s.group); err != nil {
				return err
			}
		}
		reply.Keys, reply.Digests, err = report(t, s.group, r)
		return err
	})
	if err != nil {
		return backends.RenewReply{}, err
	}
	if refused == backends.ErrSessionLost {
		s.end()
	}
	return reply, refused
}

// extend renews the session if the incarnation is the live one; it tells whether the session is alive.
func (s *session) extend(t *Tx, incarnation string) (bool, error) {
	if s.over() {
		return false, nil
	}
	if incarnation != t.Incarnation {
		return s.touch(t)
	}
	n, err := t.exec(`UPDATE sessions SET expires = ? WHERE id = ? AND expires > ? AND superseded = 0`, t.Now+s.ttl.Microseconds(), []byte(s.id), t.Now)
	return n == 1, err
}

// touch makes sure that the session is alive, and stays so until the transaction ends.
func (s *session) touch(t *Tx) (bool, error) {
	if s.over() {
		return false, nil
	}
	return touch(t, []byte(s.id))
}

func touch(t *Tx, id []byte) (bool, error) {
	n, err := t.exec(`UPDATE sessions SET touched = touched + 1 WHERE id = ? AND expires > ?`, id, t.Now)
	return n == 1, err
}

func report(t *Tx, group string, r backends.RenewRequest) (map[string]backends.KeyState, map[string]backends.Digest, error) {
	keys := make(map[string]backends.KeyState, len(r.Keys))
	err := readKeys(t, group, r.Keys, true, func(e backends.Entry) {
		keys[e.Key] = backends.KeyState{Version: e.Version, Session: e.Session, Left: e.Left}
	})
	if err != nil {
		return nil, nil, err
	}
	digests := make(map[string]backends.Digest, len(r.Digests))
	for _, prefix := range r.Digests {
		d := backends.Digest{Left: -1}
		err := readPrefix(t, group, prefix, true, func(e backends.Entry) { d.Add(e.Key, e.Version, e.Left) })
		if err != nil {
			return nil, nil, err
		}
		digests[prefix] = d
	}
	return keys, digests, nil
}

func (s *session) Listen(ctx context.Context, address string, hint func()) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.over() {
		return backends.ErrSessionLost
	}
	return s.base.Listen(ctx, s.ended, s.group, address, hint)
}

func (s *session) Close(ctx context.Context) error {
	err := s.base.Write(ctx, func(t *Tx) error { return remove(t, []byte(s.id)) })
	if err == nil {
		s.end()
		s.release()
	}
	return err
}

// remove takes out a session with all that is bound to it.
func remove(t *Tx, id []byte) error {
	if _, err := t.exec(`DELETE FROM sessions WHERE id = ?`, id); err != nil {
		return err
	}
	_, err := t.exec(`UPDATE entries SET gone = 1, value = ?, session = ? WHERE session = ?`, nobody(), nobody(), id)
	return err
}

package sqlstore

import (
	"context"
	"errors"
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
	number    int64         // in the order of opening
	ended     chan struct{} // closed when the session was seen to have ended
	once      sync.Once
	release   func() // gives up the proof of life
}

func (s *session) ID() string             { return s.id }
func (s *session) TTL() time.Duration     { return s.ttl }
func (s *session) Opened() backends.Stamp { return s.opened }

func (s *session) end() {
	s.once.Do(func() {
		close(s.ended)
		s.release()
	})
}

// over tells whether this handle has seen the end. What a rollback of the data brings back stays ended.
func (s *session) over() bool {
	select {
	case <-s.ended:
		return true
	default:
		return false
	}
}

// Renew is one round trip; a refusal is two, to learn the reason.
func (s *session) Renew(ctx context.Context, r backends.RenewRequest) (backends.RenewReply, error) {
	if err := storereq.Keys(r.Keys); err != nil {
		return backends.RenewReply{}, err
	}
	reply, renewed, err := s.extend(ctx, r)
	if err != nil {
		return backends.RenewReply{}, err
	}
	if !renewed {
		return s.refusal(ctx, r.Incarnation)
	}
	if r.Sweep { // on its own: it must not hold up the renewal, and what it leaves is swept the next time
		_ = s.base.Write(ctx, func(t *Tx) error { t.sweep(s.group); return nil })
	}
	return reply, nil
}

// extend renews the session if it is well and the incarnation is the live one.
func (s *session) extend(ctx context.Context, r backends.RenewRequest) (reply backends.RenewReply, renewed bool, err error) {
	if s.over() {
		return reply, false, nil
	}
	var t *Tx
	err = s.base.Urgent(ctx, func(tx *Tx) error {
		t, renewed = tx, false
		t.Add(Statement{
			SQL:  `UPDATE {t}sessions SET expires = {now} + ? WHERE id = ? AND expires > {now} AND superseded = 0 AND {incarnation} = ?`,
			Args: []any{s.ttl.Microseconds(), []byte(s.id), r.Incarnation},
			Done: func(n int64) error { renewed = n == 1; return nil },
		})
		reply.Keys, reply.Digests = t.report(s.group, r)
		return nil
	})
	if err == nil {
		reply.Stamp = t.stamp()
	}
	return reply, renewed, err
}

// report queues the questions of a renewal; the maps are filled when they are answered.
func (t *Tx) report(group string, r backends.RenewRequest) (map[string]backends.KeyState, map[string]backends.Digest) {
	keys := make(map[string]backends.KeyState, len(r.Keys))
	t.readKeys(group, r.Keys, true, func(e backends.Entry) {
		keys[e.Key] = backends.KeyState{Version: e.Version, Session: e.Session, Left: e.Left}
	})
	digests := make(map[string]backends.Digest, len(r.Digests))
	for _, prefix := range r.Digests {
		digests[prefix] = backends.Digest{Left: -1}
		t.readPrefix(group, prefix, true, func(e backends.Entry) {
			d := digests[prefix]
			d.Add(e.Key, e.Version, e.Left)
			digests[prefix] = d
		})
	}
	return keys, digests
}

// refusal finds out why a renewal extended nothing, and makes sure that it stays so: an earlier attempt may still be under way.
func (s *session) refusal(ctx context.Context, incarnation string) (backends.RenewReply, error) {
	var reply backends.RenewReply
	refused := error(nil)
	err := s.base.Urgent(ctx, func(t *Tx) error {
		refused = backends.ErrSessionLost
		t.endDead(`id = ?`, []byte(s.id))
		t.hold(`id = ?`, []byte(s.id))
		t.Add(s.own(func(alive, superseded bool) { refused = s.why(alive, superseded) }))
		if err := t.Flush(); err != nil {
			return err
		}
		reply = backends.RenewReply{Stamp: t.stamp()}
		return nil
	})
	switch {
	case err != nil:
		return backends.RenewReply{}, err
	case refused == backends.ErrSessionLost:
		s.end()
	case refused == nil && incarnation == reply.Incarnation:
		return backends.RenewReply{}, errors.New("the renewal came to nothing, since the store changed meanwhile; try again")
	case refused == nil:
		refused = backends.ErrIncarnation
	}
	return reply, refused
}

// why is the reason for which the session is not well, for good; nil when it is.
func (s *session) why(alive, superseded bool) error {
	return standing(alive && !s.over(), superseded).bound
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
	err := s.base.Write(ctx, func(t *Tx) error {
		t.remove([]byte(s.id))
		return t.Flush() // as in Open
	})
	if err == nil {
		s.end()
	}
	return err
}

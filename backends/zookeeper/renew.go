package zookeeper

import (
	"context"
	"errors"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/internal/storereq"
)

// Renew is a write, which only a server with a majority behind it acknowledges: one that is cut off from its leader answers reads for a
// while. It counts from when it was called; see lease. What is asked for is read after it.
func (h *session) Renew(ctx context.Context, r backends.RenewRequest) (backends.RenewReply, error) {
	var reply backends.RenewReply
	if err := storereq.Keys(r.Keys); err != nil {
		return reply, err
	}
	if err := errors.Join(h.s.open(), ctx.Err()); err != nil {
		return reply, err
	}
	err := errOver
	if !h.over() {
		reply.Stamp, err = h.extend(ctx, r.Incarnation)
	}
	if errors.Is(err, backends.ErrIncarnation) {
		if _, looked := h.s.look(ctx, h.via()); looked != nil {
			err = looked // the session ended just now, or there is no stamp to tell
		}
	}
	switch {
	case errors.Is(err, errOver), errors.Is(err, backends.ErrSessionLost):
		if h.s.open() != nil {
			return reply, backends.ErrClosed
		}
		h.lost()
		reply.Stamp = h.ended(ctx)
		return reply, backends.ErrSessionLost
	case errors.Is(err, backends.ErrSuperseded):
		return backends.RenewReply{Stamp: h.s.stamp()}, backends.ErrSuperseded
	case errors.Is(err, backends.ErrIncarnation):
		return backends.RenewReply{Stamp: h.s.stamp()}, backends.ErrIncarnation
	case err != nil:
		return reply, h.s.wrap(err)
	}
	if reply.Keys, err = h.keyStates(ctx, r.Keys); err == nil {
		reply.Digests, err = h.digests(ctx, r.Digests)
	}
	if err == nil && r.Sweep {
		h.sweepFor(ctx, h.lease.timeout/10)
	}
	return reply, h.s.wrap(err)
}

// extend renews until it is answered, and so often that the TTL is assured.
func (h *session) extend(ctx context.Context, incarnation string) (backends.Stamp, error) {
	ops := h.guards(incarnation, true)
	guards := len(ops)
	ops = append(ops, op{request: &zk.SetDataRequest{Path: h.dir.alive(h.id), Data: h.data, Version: -1}})
	for {
		if err := h.ready(ctx); err != nil {
			return backends.Stamp{}, err
		}
		m, w, sent := h.s.mark(), h.l.current(), time.Now()
		stat, failed, err := h.via().multi(ctx, ops)
		switch {
		case err == nil && m.undone(stat.Mzxid):
			return backends.Stamp{}, backends.ErrIncarnation
		case err == nil:
			if h.lease.assured(sent, h.l.heardAt()) {
				h.lease.add(sent)
				return h.extended(incarnation, stat)
			}
			h.lease.add(sent)
			if err := pause(ctx, h.lease.wait()+time.Millisecond); err != nil {
				return backends.Stamp{}, err
			}
		case failed >= 0 && failed < guards:
			return backends.Stamp{}, ops[failed].guard
		case ctx.Err() != nil:
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				h.l.kick(w) // it may hang: the next try goes over another connection
			}
			return backends.Stamp{}, ctx.Err()
		case !unanswered(err):
			return backends.Stamp{}, err
		default:
			if err := pause(ctx, 2*time.Millisecond); err != nil {
				return backends.Stamp{}, err
			}
		}
	}
}

// extended notes a renewal that was answered. It does not count when the session was given up meanwhile.
func (h *session) extended(incarnation string, stat *zk.Stat) (backends.Stamp, error) {
	h.mu.Lock()
	if h.watchdog == nil {
		h.mu.Unlock()
		return backends.Stamp{}, errOver
	}
	h.accepted = incarnation
	h.ends = time.Now().Add(h.patience())
	h.mu.Unlock()
	now := h.s.clock.set(stat.Mtime)
	if m := h.s.mark(); m.rec != nil && m.rec.id == incarnation {
		h.l.joins(h.s)
	}
	st := h.s.stampAt(now)
	st.Incarnation = incarnation
	return st, nil
}

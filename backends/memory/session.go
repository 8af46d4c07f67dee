package memory

import (
	"context"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/internal/storereq"
)

// session is a node's handle; its life is in the store's data.
type session struct {
	store           *Store
	id, group, node string
	ttl             time.Duration
	opened          backends.Stamp
	order           int
	closed          atomic.Bool // a rollback of the data does not bring it back
}

func (h *session) ID() string             { return h.id }
func (h *session) TTL() time.Duration     { return h.ttl }
func (h *session) Opened() backends.Stamp { return h.opened }

// life is nil when the session has ended. Call it with the lock held, after now.
func (h *session) life() *life {
	if h.closed.Load() {
		return nil
	}
	return h.store.data.sessions[h.id]
}

func (h *session) Renew(ctx context.Context, r backends.RenewRequest) (backends.RenewReply, error) {
	if err := storereq.Keys(r.Keys); err != nil {
		return backends.RenewReply{}, err
	}
	if err := h.store.arrive(ctx, h.node, func(c *Calls) { c.Renew++ }); err != nil {
		return backends.RenewReply{}, err
	}
	reply, err := h.renew(r)
	if lost := h.store.answer(ctx, h.node); lost != nil {
		return backends.RenewReply{}, lost
	}
	return reply, err
}

func (h *session) renew(r backends.RenewRequest) (backends.RenewReply, error) {
	s := h.store
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return backends.RenewReply{}, backends.ErrClosed
	}
	now := s.now()
	reply := backends.RenewReply{Stamp: s.data.stamp(now)}
	l := h.life()
	if l == nil {
		return reply, backends.ErrSessionLost
	}
	if l.superseded {
		return reply, backends.ErrSuperseded
	}
	if r.Incarnation != s.data.incarnation {
		return reply, backends.ErrIncarnation
	}
	l.expires = now.Add(h.ttl)
	s.data.endsBy(l.expires)
	reply.Keys = make(map[string]backends.KeyState, len(r.Keys))
	for _, key := range r.Keys {
		if e := s.data.get(h.group, key); e != nil {
			reply.Keys[key] = backends.KeyState{Version: e.version, Session: e.session, Left: s.data.left(e, now)}
		}
	}
	reply.Digests = make(map[string]backends.Digest, len(r.Digests))
	for _, prefix := range r.Digests {
		reply.Digests[prefix] = s.data.digest(h.group, prefix, now)
	}
	return reply, nil // nothing to sweep: what ended is removed at once
}

func (h *session) Read(ctx context.Context, r backends.ReadRequest) (backends.ReadReply, error) {
	if err := storereq.Keys(r.Keys); err != nil {
		return backends.ReadReply{}, err
	}
	if err := h.store.arrive(ctx, h.node, func(c *Calls) { c.Read++ }); err != nil {
		return backends.ReadReply{}, err
	}
	reply, err := h.read(r)
	if lost := h.store.answer(ctx, h.node); lost != nil {
		return backends.ReadReply{}, lost
	}
	return reply, err
}

func (h *session) read(r backends.ReadRequest) (backends.ReadReply, error) {
	s := h.store
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return backends.ReadReply{}, backends.ErrClosed
	}
	now := s.now()
	reply := backends.ReadReply{Stamp: s.data.stamp(now), Digests: make(map[string]backends.Digest, len(r.Prefixes))}
	wanted := map[string]bool{}
	for _, key := range r.Keys {
		wanted[key] = true
	}
	for _, prefix := range r.Prefixes {
		for _, key := range s.data.below(h.group, prefix) {
			wanted[key] = true
		}
		reply.Digests[prefix] = s.data.digest(h.group, prefix, now)
	}
	for _, key := range slices.Sorted(maps.Keys(wanted)) {
		e := s.data.get(h.group, key)
		if e == nil {
			continue
		}
		out := backends.Entry{Key: key, Version: e.version, Session: e.session, Left: s.data.left(e, now)}
		if !r.NamesOnly {
			out.Value = slices.Clone(e.value)
		}
		reply.Entries = append(reply.Entries, out)
	}
	return reply, nil
}

func (h *session) Supersede(ctx context.Context, node string) (backends.Superseded, error) {
	if err := h.store.arrive(ctx, h.node, func(c *Calls) { c.Supersede++ }); err != nil {
		return backends.Superseded{}, err
	}
	reply, err := h.supersede(node)
	if lost := h.store.answer(ctx, h.node); lost != nil {
		return backends.Superseded{}, lost
	}
	return reply, err
}

// supersede marks the older sessions. There is no proof of death within one process.
func (h *session) supersede(node string) (backends.Superseded, error) {
	s := h.store
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return backends.Superseded{}, backends.ErrClosed
	}
	now := s.now()
	reply := backends.Superseded{Stamp: s.data.stamp(now)}
	l := h.life()
	if l == nil {
		return reply, backends.ErrSessionLost
	}
	if l.superseded {
		return reply, backends.ErrSuperseded
	}
	for _, o := range s.data.sessions {
		if o.group == h.group && o.node == node && o.order < h.order {
			o.superseded = true
			reply.Older++
			reply.Left = max(reply.Left, o.expires.Sub(now))
		}
	}
	return reply, nil
}

func (h *session) Close(ctx context.Context) error {
	if err := h.store.arrive(ctx, h.node, func(c *Calls) { c.Close++ }); err != nil {
		return err
	}
	if err := h.close(); err != nil {
		return err
	}
	return h.store.answer(ctx, h.node)
}

func (h *session) close() error {
	s := h.store
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return backends.ErrClosed
	}
	h.closed.Store(true)
	s.now()
	s.data.end(h.id)
	for at := range s.hints {
		s.hints.drop(at, func(l *listener) bool { return l.session == h })
	}
	return nil
}

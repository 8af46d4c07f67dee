package faultstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rebalancer-go/rebalancer/backends"
)

type session struct {
	backends.Session
	store       *Store
	group, node string
}

func (h *session) about(k Kind) Call {
	return Call{Kind: k, Group: h.group, Node: h.node, Session: h.ID()}
}

func (h *session) Renew(ctx context.Context, r backends.RenewRequest) (backends.RenewReply, error) {
	c := h.about(Renew)
	c.Keys = len(r.Keys)
	return call(ctx, h.store, c, func() (backends.RenewReply, error) { return h.Session.Renew(ctx, r) })
}

func (h *session) Read(ctx context.Context, r backends.ReadRequest) (backends.ReadReply, error) {
	c := h.about(Read)
	c.Keys = len(r.Keys)
	return call(ctx, h.store, c, func() (backends.ReadReply, error) { return h.Session.Read(ctx, r) })
}

func (h *session) Supersede(ctx context.Context, node string) (backends.Superseded, error) {
	return call(ctx, h.store, h.about(Supersede), func() (backends.Superseded, error) { return h.Session.Supersede(ctx, node) })
}

// Commit reports a lost answer, and a hang, as unknown: the caller cannot tell whether the request arrived.
func (h *session) Commit(ctx context.Context, r backends.CommitRequest) (backends.CommitReply, error) {
	c := h.about(Commit)
	c.Transactions = len(r.Txns)
	f := h.store.decide(c)
	if err := before(ctx, c, f); err != nil {
		if f.Before && f.Hang {
			return unknown(len(r.Txns), err), nil
		}
		return backends.CommitReply{}, err
	}
	reply, err := h.Session.Commit(ctx, r)
	if f.After && !errors.Is(err, backends.ErrInvalid) {
		return unknown(len(r.Txns), fail(ctx, c, f, "after it was applied")), nil
	}
	return reply, err
}

func unknown(txns int, cause error) backends.CommitReply {
	results := make([]backends.Result, txns)
	for i := range results {
		results[i].Err = fmt.Errorf("%w: %w", backends.ErrUnknown, cause)
	}
	return backends.CommitReply{Results: results}
}

func (h *session) Listen(ctx context.Context, address string, hint func()) error {
	_, err := call(ctx, h.store, h.about(Listen), func() (struct{}, error) {
		return struct{}{}, h.Session.Listen(ctx, address, func() { h.deliver(ctx, hint) })
	})
	return err
}

func (h *session) deliver(ctx context.Context, hint func()) {
	f := h.store.decide(h.about(Hint))
	if f.Before {
		return
	}
	times := 1
	if f.After {
		times = 2
	}
	for range times {
		if f.Delay > 0 {
			h.store.later(ctx, f.Delay, hint)
		} else {
			hint()
		}
	}
}

// later calls a hint after d, unless ctx has ended or the store is closed by then.
func (s *Store) later(ctx context.Context, d time.Duration, hint func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	var t *time.Timer
	t = time.AfterFunc(d, func() {
		s.mu.Lock()
		due := s.pending[t]
		delete(s.pending, t)
		s.mu.Unlock()
		if due && ctx.Err() == nil {
			hint()
		}
	})
	s.pending[t] = true
}

func (h *session) Close(ctx context.Context) error {
	_, err := call(ctx, h.store, h.about(Close), func() (struct{}, error) { return struct{}{}, h.Session.Close(ctx) })
	return err
}

package memory

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/internal/storereq"
)

func (h *session) Commit(ctx context.Context, r backends.CommitRequest) (backends.CommitReply, error) {
	if err := storereq.Commit(r); err != nil {
		return backends.CommitReply{}, err
	}
	if err := ctx.Err(); err != nil {
		return backends.CommitReply{}, err
	}
	count := func(c *Calls) { c.Commit++; c.Txns += len(r.Txns) }
	if err := h.store.arrive(ctx, h.node, count); errors.Is(err, backends.ErrClosed) {
		return backends.CommitReply{}, err
	} else if err != nil {
		return unknown(len(r.Txns), err), nil
	}
	reply, wake, err := h.commit(r)
	if err != nil {
		return backends.CommitReply{}, err
	}
	h.store.wake(h.group, wake)
	if err := h.store.answer(ctx, h.node); err != nil {
		return unknown(len(r.Txns), err), nil
	}
	return reply, nil
}

// unknown is the reply to a commit that was sent and got no answer.
func unknown(txns int, cause error) backends.CommitReply {
	results := make([]backends.Result, txns)
	for i := range results {
		results[i].Err = fmt.Errorf("%w: %w", backends.ErrUnknown, cause)
	}
	return backends.CommitReply{Results: results}
}

// commit carries out the transactions and gives the addresses to hint at.
func (h *session) commit(r backends.CommitRequest) (backends.CommitReply, []string, error) {
	s := h.store
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return backends.CommitReply{}, nil, backends.ErrClosed
	}
	now := s.now()
	reply := backends.CommitReply{Stamp: s.data.stamp(now), Results: make([]backends.Result, len(r.Txns))}
	var wake []string
	for i := range r.Txns {
		t := &r.Txns[i]
		res := h.apply(r.Incarnation, t, now)
		if res.Err == nil {
			wake = append(wake, t.Wake...)
			s.count(h.node, func(c *Calls) { c.Applied++ })
		}
		reply.Results[i] = res
	}
	return reply, wake, nil
}

func (h *session) apply(incarnation string, t *backends.Txn, now time.Time) backends.Result {
	d := &h.store.data
	switch {
	case h.life() == nil:
		return backends.Result{Err: backends.ErrSessionLost}
	case h.life().superseded && slices.ContainsFunc(t.Puts, func(p backends.Put) bool { return p.Bound }):
		return backends.Result{Err: backends.ErrSuperseded}
	case incarnation != d.incarnation:
		return backends.Result{Err: backends.ErrIncarnation}
	case t.Grace > 0 && !d.since.IsZero() && now.Before(d.since.Add(t.Grace)):
		return backends.Result{Err: backends.ErrGrace}
	}
	current := make(map[string]int64, len(t.Checks))
	holds := true
	for _, c := range t.Checks {
		current[c.Key] = 0
		if e := d.get(h.group, c.Key); e != nil {
			current[c.Key] = e.version
		}
		holds = holds && current[c.Key] == c.Version
	}
	if !holds {
		return backends.Result{Err: backends.ErrConflict, Versions: current}
	}
	for _, key := range t.Deletes {
		d.remove(h.group, key)
	}
	versions := make(map[string]int64, len(t.Puts))
	for _, p := range t.Puts {
		bound := ""
		if p.Bound {
			bound = h.id
		}
		versions[p.Key] = d.put(h.group, p.Key, p.Value, bound, now)
	}
	return backends.Result{Versions: versions}
}

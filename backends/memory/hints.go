package memory

import (
	"context"

	"github.com/rebalancer-go/rebalancer/backends"
)

// hints are the listeners by group and address.
type hints map[[2]string][]*listener

type listener struct {
	session *session
	ctx     context.Context
	hint    func()
	stop    func() bool // ends the watch of ctx
}

// Listen calls hint in the goroutine of the committer, after the commit, without holding a lock.
func (h *session) Listen(ctx context.Context, address string, hint func()) error {
	s := h.store
	if err := s.arrive(ctx, h.node, func(c *Calls) { c.Listen++ }); err != nil {
		return err
	}
	at := [2]string{h.group, address}
	l := &listener{session: h, ctx: ctx, hint: hint}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return backends.ErrClosed
	}
	s.now()
	if h.life() == nil {
		return backends.ErrSessionLost
	}
	s.hints[at] = append(s.hints[at], l)
	l.stop = context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.hints.drop(at, func(o *listener) bool { return o == l })
	})
	return nil
}

// wake hints at addresses of a group. Nodes that are cut off hear nothing.
func (s *Store) wake(group string, addresses []string) {
	if len(addresses) == 0 {
		return
	}
	var due []*listener
	s.mu.Lock()
	s.now()
	for _, a := range addresses {
		at := [2]string{group, a}
		s.hints.drop(at, func(l *listener) bool { return l.session.life() == nil })
		for _, l := range s.hints[at] {
			if len(s.cuts[l.session.node]) == 0 {
				due = append(due, l)
			}
		}
	}
	s.mu.Unlock()
	for _, l := range due {
		if l.ctx.Err() == nil {
			l.hint()
		}
	}
}

// drop removes the listeners at one place that match.
func (hs hints) drop(at [2]string, match func(*listener) bool) {
	var keep []*listener
	for _, l := range hs[at] {
		if match(l) {
			l.stop()
		} else {
			keep = append(keep, l)
		}
	}
	if len(keep) == 0 {
		delete(hs, at)
	} else {
		hs[at] = keep
	}
}

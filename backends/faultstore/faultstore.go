// Package faultstore wraps a store and makes its calls fail: before they are applied, after (so that the outcome is
// unknown), late, or never answered; and it drops, doubles and delays hints. For tests.
//
// A Plan decides for each call. Script plays faults in the order of the calls that match; Random draws them from a seed.
// Without a plan the wrapped store is unchanged.
package faultstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rebalancer-go/rebalancer/backends"
)

// ErrInjected is wrapped by every error that this package makes up.
var ErrInjected = errors.New("injected fault")

// Kind is the kind of a call.
type Kind string

// The kinds of calls. Hint is the delivery of one hint.
const (
	Open   Kind = "open"
	Groups Kind = "groups"
	Renew  Kind = "renew"
	Read   Kind = "read"
	Commit Kind = "commit"
	Listen Kind = "listen"
	Close  Kind = "close"
	// Supersede is a call of Session.Supersede.
	Supersede Kind = "supersede"
	Hint      Kind = "hint"
)

// Call is what a plan decides about.
type Call struct {
	Kind               Kind
	Group, Node        string
	Session            string // "" for Open and Groups
	Number             int64  // of all calls of the store, from 1
	Keys, Transactions int
}

// Fault says what becomes of a call. The zero Fault lets it pass.
type Fault struct {
	Before bool          // fail without applying; a hint is dropped
	After  bool          // apply, then lose the answer; a hint is called twice
	Hang   bool          // with Before or After: do not fail before the context ends
	Delay  time.Duration // wait before the call, or deliver the hint that much later
}

// Plan decides what becomes of each call. It is called from many goroutines.
type Plan interface {
	Decide(Call) Fault
}

// PlanFunc is a function as a Plan.
type PlanFunc func(Call) Fault

// Decide calls f.
func (f PlanFunc) Decide(c Call) Fault { return f(c) }

// Store is a store with faults. Make it with New. Closing it closes the wrapped one.
type Store struct {
	inner   backends.Store
	calls   atomic.Int64
	mu      sync.Mutex
	plan    Plan
	pending map[*time.Timer]bool // delayed hints
	closed  bool
}

var _ backends.Store = (*Store)(nil)

// New wraps a store. plan may be nil, for no faults.
func New(inner backends.Store, plan Plan) *Store {
	return &Store{inner: inner, plan: plan, pending: map[*time.Timer]bool{}}
}

// SetPlan replaces the plan; nil ends all faults. Calls that hang go on hanging.
func (s *Store) SetPlan(p Plan) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.plan = p
}

func (s *Store) decide(c Call) Fault {
	c.Number = s.calls.Add(1)
	s.mu.Lock()
	p := s.plan
	s.mu.Unlock()
	if p == nil {
		return Fault{}
	}
	return p.Decide(c)
}

// before carries out what happens ahead of a call; an error ends it.
func before(ctx context.Context, c Call, f Fault) error {
	if f.Delay > 0 {
		t := time.NewTimer(f.Delay)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
			return fmt.Errorf("%w: %s was delayed: %w", ErrInjected, c.Kind, ctx.Err())
		}
	}
	if f.Before {
		return fail(ctx, c, f, "before it was applied")
	}
	return nil
}

func fail(ctx context.Context, c Call, f Fault, when string) error {
	if f.Hang {
		<-ctx.Done()
		return fmt.Errorf("%w: no answer to %s: %w", ErrInjected, c.Kind, ctx.Err())
	}
	return fmt.Errorf("%w: %s failed %s", ErrInjected, c.Kind, when)
}

// call runs do under the plan's decision.
func call[R any](ctx context.Context, s *Store, c Call, do func() (R, error)) (R, error) {
	var none R
	f := s.decide(c)
	if err := before(ctx, c, f); err != nil {
		return none, err
	}
	r, err := do()
	if f.After {
		return none, fail(ctx, c, f, "after it was applied")
	}
	return r, err
}

// Open opens a session.
func (s *Store) Open(ctx context.Context, o backends.SessionOptions) (backends.Session, error) {
	return call(ctx, s, Call{Kind: Open, Group: o.Group, Node: o.Node}, func() (backends.Session, error) {
		h, err := s.inner.Open(ctx, o)
		if err != nil {
			return nil, err
		}
		return &session{Session: h, store: s, group: o.Group, node: o.Node}, nil
	})
}

// Groups lists the groups.
func (s *Store) Groups(ctx context.Context) ([]string, error) {
	return call(ctx, s, Call{Kind: Groups}, func() ([]string, error) { return s.inner.Groups(ctx) })
}

// Close closes the wrapped store, and drops the hints that are still delayed.
func (s *Store) Close() error {
	s.mu.Lock()
	s.closed = true
	for t := range s.pending {
		t.Stop()
	}
	clear(s.pending)
	s.mu.Unlock()
	return s.inner.Close()
}

package memory

import (
	"context"
	"crypto/rand"
	"slices"
	"sync"
	"time"

	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/internal/storereq"
)

// Store is a store in memory. Make it with New. It is safe for concurrent use.
type Store struct {
	latency time.Duration

	mu     sync.Mutex // held only for work in memory: never while waiting, never while a hint is called
	closed bool
	opened int // sessions, ever
	data   data
	offset time.Duration // of the store's clock from the process's
	cuts   map[string][]*cut
	calls  map[string]*Calls // by node
	hints  hints
}

var _ backends.Store = (*Store)(nil)

// Option changes how a new store behaves.
type Option func(*Store)

// WithLatency makes every call take d, half of it before and half after the store acts. 0, the default, is no latency. In
// virtual time it makes round trips countable.
func WithLatency(d time.Duration) Option { return func(s *Store) { s.latency = d } }

// New makes an empty store.
func New(opts ...Option) *Store {
	s := &Store{
		data:  newData(),
		cuts:  map[string][]*cut{},
		calls: map[string]*Calls{},
		hints: hints{},
	}
	for _, o := range opts {
		o(s)
	}
	return s
}

// Open opens a session. Any TTL above 0 is granted as wanted.
func (s *Store) Open(ctx context.Context, o backends.SessionOptions) (backends.Session, error) {
	if err := storereq.Open(o, 0); err != nil {
		return nil, err
	}
	if err := s.arrive(ctx, o.Node, func(c *Calls) { c.Open++ }); err != nil {
		return nil, err
	}
	h, err := s.open(o)
	if err != nil {
		return nil, err
	}
	if err := s.answer(ctx, o.Node); err != nil {
		return nil, err
	}
	return h, nil
}

func (s *Store) open(o backends.SessionOptions) (*session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, backends.ErrClosed
	}
	now := s.now()
	h := &session{store: s, id: rand.Text(), group: o.Group, node: o.Node, ttl: o.TTL, opened: s.data.stamp(now)}
	s.opened++
	h.order = s.opened
	s.data.sessions[h.id] = &life{group: o.Group, node: o.Node, expires: now.Add(o.TTL), bound: map[string]bool{}, order: h.order}
	s.data.endsBy(now.Add(o.TTL))
	return h, nil
}

// Groups lists the groups that have an entry which is not bound to a session.
func (s *Store) Groups(ctx context.Context) ([]string, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, backends.ErrClosed
	}
	var names []string
	for name, g := range s.data.groups {
		if g.free > 0 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// Close makes all later calls fail with ErrClosed. It keeps nothing.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for at := range s.hints {
		s.hints.drop(at, func(*listener) bool { return true })
	}
	return nil
}

// now is the store's clock. What ended by then is removed first, so whatever is in the data is alive. Call it with the lock held.
func (s *Store) now() time.Time {
	now := time.Now().Add(s.offset)
	s.data.expire(now)
	return now
}

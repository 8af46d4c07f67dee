package memory

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rebalancer-go/rebalancer/backends"
)

// errCut is the error of a call that was under way when its node was connected again.
var errCut = errors.New("memory store: the node was cut off, no answer came")

// cut parts a node from the store.
type cut struct {
	replies bool // only the answers are lost
	over    chan struct{}
}

// Cut loses all requests of sessions that node opened, and all hints to it, until restore is called. A call hangs until its
// context ends, or fails at restore; a Commit then reports its transactions as unknown. Cuts of one node add up.
func (s *Store) Cut(node string) (restore func()) { return s.cut(node, false) }

// CutReplies is Cut, but requests arrive and are carried out: only their answers, and hints, are lost.
func (s *Store) CutReplies(node string) (restore func()) { return s.cut(node, true) }

func (s *Store) cut(node string, replies bool) func() {
	c := &cut{replies: replies, over: make(chan struct{})}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cuts[node] = append(s.cuts[node], c)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if i := slices.Index(s.cuts[node], c); i >= 0 {
			s.cuts[node] = slices.Delete(s.cuts[node], i, i+1)
			close(c.over)
		}
	}
}

// Expire ends the live sessions that node opened, with all that is bound to them, as if their time had run out.
func (s *Store) Expire(node string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now()
	for id, l := range s.data.sessions {
		if l.node == node {
			s.data.end(id)
		}
	}
}

// Forget loses everything. A new incarnation begins now, by the store's clock.
func (s *Store) Forget() { s.lose(newData()) }

// Snapshot is the state of a store at one moment.
type Snapshot struct{ data data }

// Snapshot takes a copy that Restore can go back to, as often as wanted.
func (s *Store) Snapshot() *Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now()
	return &Snapshot{s.data.clone()}
}

// Restore rolls the store back. A new incarnation begins now, by the store's clock. Sessions have the end that they had then.
func (s *Store) Restore(to *Snapshot) { s.lose(to.data.clone()) }

func (s *Store) lose(d data) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d.top = s.data.top
	d.gone, d.lost = d.top, d.top // what was lost stands for the server's clock: versions grow past it
	d.incarnation, d.since = rand.Text(), s.now()
	s.data = d
}

// Step moves the store's clock; d may be negative. Sessions end by the stepped clock.
func (s *Store) Step(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now()
	s.offset += d
	s.now()
}

func (d *data) clone() data {
	c := *d
	c.groups = make(map[string]*group, len(d.groups))
	for name, g := range d.groups {
		copied := &group{entries: make(map[string]*entry, len(g.entries)), keys: slices.Clone(g.keys), free: g.free}
		for key, e := range g.entries {
			copied.entries[key] = e // entries are replaced, never changed
		}
		c.groups[name] = copied
	}
	c.sessions = make(map[string]*life, len(d.sessions))
	for id, l := range d.sessions {
		copied := *l
		copied.bound = make(map[string]bool, len(l.bound))
		for key := range l.bound {
			copied.bound[key] = true
		}
		c.sessions[id] = &copied
	}
	return c
}

// arrive counts a call and lets its request travel: nil when it reaches the store.
func (s *Store) arrive(ctx context.Context, node string, count func(*Calls)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return backends.ErrClosed
	}
	s.count(node, count)
	s.mu.Unlock()
	return s.travel(ctx, node, func(c *cut) bool { return !c.replies })
}

// answer lets a reply travel: nil when it reaches the node.
func (s *Store) answer(ctx context.Context, node string) error {
	return s.travel(ctx, node, func(*cut) bool { return true })
}

func (s *Store) travel(ctx context.Context, node string, lost func(*cut) bool) error {
	if s.latency > 0 {
		t := time.NewTimer(s.latency / 2)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
			return fmt.Errorf("memory store: no answer: %w", ctx.Err())
		}
	}
	s.mu.Lock()
	i := slices.IndexFunc(s.cuts[node], lost)
	var over chan struct{}
	if i >= 0 {
		over = s.cuts[node][i].over
	}
	s.mu.Unlock()
	if over == nil {
		return nil
	}
	select {
	case <-over:
		return errCut
	case <-ctx.Done():
		return fmt.Errorf("memory store: no answer: %w", ctx.Err())
	}
}

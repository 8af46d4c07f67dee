// Package memory is a source that lives in the process: for tests, for examples, and to try a handler's own fail-over
// in virtual time. It keeps no goroutine and waits only on channels, so that it works inside a testing/synctest bubble.
//
// It promises what a good broker does: messages of a resource come in the order in which they were sent; what a closed
// Reader had in hand comes again, in order and before later ones; no attempt is burnt by Release and Close; rejected
// messages are kept with their errors. Nothing survives the process.
package memory

import (
	"context"
	"errors"
	"fmt"
	"path"
	"sort"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/sources"
)

// ErrCut is returned by Open, Fetch and Settle while the resource is cut off by [Source.Cut].
var ErrCut = errors.New("memory source: resource is cut off")

// Source holds the queues. It implements sources.Source, sources.Lagger and sources.Discoverer, and is safe for
// concurrent use.
type Source struct {
	noDeadLetters bool

	mu     sync.Mutex // guards what follows; never held while waiting, and taken before a queue's mutex
	queues map[string]*queue
	idlers map[chan struct{}]struct{} // callers of Idle, told when pending falls to 0
	closed bool

	pending  atomic.Int64 // messages waiting, delayed or in flight, in all resources
	overlaps atomic.Int64
}

// Option changes a Source at its making.
type Option func(*Source)

// WithoutDeadLetters makes a source that has no place for rejected messages: Reject fails with ErrNoDeadLetter.
func WithoutDeadLetters() Option { return func(s *Source) { s.noDeadLetters = true } }

// New makes an empty source. Any resource can be opened until [Source.Remove]; Discover lists those that were opened or
// sent to.
func New(opts ...Option) *Source {
	s := &Source{queues: map[string]*queue{}, idlers: map[chan struct{}]struct{}{}}
	for _, o := range opts {
		o(s)
	}
	return s
}

// Names accepts any names that are not empty, as they are, each only once.
func (s *Source) Names(resources []string) ([]string, error) {
	var errs []error
	seen := make(map[string]bool, len(resources))
	for i, name := range resources {
		if name == "" {
			errs = append(errs, fmt.Errorf("memory source: resource %d of the list has an empty name", i))
		} else if seen[name] {
			errs = append(errs, fmt.Errorf("memory source: resource %q is listed twice; list it once", name))
		}
		seen[name] = true
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return append(make([]string, 0, len(resources)), resources...), nil
}

// Open starts a Reader. It fails with ErrGone for a resource that was removed, ErrCut for one that is cut off and
// ErrClosed after Close.
func (s *Source) Open(ctx context.Context, c *rebalancer.Claim) (sources.Reader, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("memory source: open %q: %w", c.Resource, err)
	}
	if c.Resource == "" {
		return nil, errors.New("memory source: open: the claim names no resource")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, fmt.Errorf("memory source: open %q: %w", c.Resource, sources.ErrClosed)
	}
	r, err := s.queue(c.Resource).open(s, c.Fence)
	if err != nil {
		return nil, fmt.Errorf("memory source: open %q: %w", c.Resource, err)
	}
	return r, nil
}

// DeadLetters is true unless the source was made WithoutDeadLetters.
func (s *Source) DeadLetters() bool { return !s.noDeadLetters }

// Lag is the number of messages that wait in a resource, those with a delay included and those in flight not. It fails
// with ErrGone when the resource was removed.
func (s *Source) Lag(_ context.Context, resource string) (int64, error) {
	q := s.find(resource)
	if q == nil {
		return 0, nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.gone {
		return 0, fmt.Errorf("memory source: lag of %q: %w", resource, sources.ErrGone)
	}
	return int64(q.waiting()), nil
}

// Discover lists the existing resources that match pattern (see path.Match), sorted.
func (s *Source) Discover(_ context.Context, pattern string) ([]string, error) {
	if _, err := path.Match(pattern, ""); err != nil {
		return nil, fmt.Errorf("memory source: discover %q: %w", pattern, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	for name, q := range s.queues {
		if ok, _ := path.Match(pattern, name); ok && q.exists() {
			names = append(names, strings.Clone(name))
		}
	}
	sort.Strings(names)
	return names, nil
}

// Close ends every Reader; later calls fail with ErrClosed. Idempotent.
func (s *Source) Close() error {
	s.mu.Lock()
	s.closed = true
	queues := make([]*queue, 0, len(s.queues))
	for _, q := range s.queues {
		queues = append(queues, q)
	}
	s.mu.Unlock()
	for _, q := range queues {
		for _, r := range q.openReaders() {
			r.giveBack()
		}
	}
	return nil
}

// queue finds a resource or makes it; s.mu is held.
func (s *Source) queue(name string) *queue {
	q := s.queues[name]
	if q == nil {
		q = &queue{name: name}
		s.queues[name] = q
	}
	return q
}

func (s *Source) find(name string) *queue {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.queues[name]
}

func (s *Source) findOrMake(name string) *queue {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.queue(name)
}

package s3

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/internal/files"
	"github.com/rebalancer-go/rebalancer/sources"
)

// Source opens prefixes of a bucket. It implements sources.Source, sources.Lagger and sources.Discoverer, and is safe for concurrent use.
type Source struct {
	settings
	readIdle time.Duration // readIdle, or less in tests
	probing  chan struct{} // held by the one who finds out what the store can do
	probed   bool          // of its holder: it can

	mu      sync.Mutex
	closed  bool
	readers map[*place]*files.Reader
}

var (
	_ sources.Source     = (*Source)(nil)
	_ sources.Lagger     = (*Source)(nil)
	_ sources.Discoverer = (*Source)(nil)
)

// New checks cfg, all violations at once. It does no I/O.
func New(cfg Config) (*Source, error) {
	s, err := cfg.check()
	if err != nil {
		return nil, err
	}
	return &Source{settings: s, readIdle: readIdle, probing: make(chan struct{}, 1), readers: map[*place]*files.Reader{}}, nil
}

// Open starts to read a prefix; one without keys is an empty resource. It fails with ErrGone when there is no such bucket, and where what
// Config.Deletion says about the store is not so.
func (s *Source) Open(ctx context.Context, c *rebalancer.Claim) (sources.Reader, error) {
	r, err := s.open(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("s3: open %q: %w", c.Resource, err)
	}
	return r, nil
}

func (s *Source) open(ctx context.Context, c *rebalancer.Claim) (sources.Reader, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if name, err := s.canonical(c.Resource); err != nil || name != c.Resource {
		return nil, errors.New("not a canonical name; pass names through Names")
	}
	s.mu.Lock()
	closed := s.closed
	s.mu.Unlock()
	if closed {
		return nil, sources.ErrClosed
	}
	prefix := s.prefix(c.Resource)
	if err := s.walk(ctx, prefix, s.delimiter(), 1, func(page) error { return nil }); err != nil {
		return nil, err
	}
	if err := s.probe(ctx, prefix); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, sources.ErrClosed
	}
	p := &place{source: s, resource: c.Resource}
	r := files.New(p, s.options, c)
	s.readers[p] = r
	return r, nil
}

func (s *Source) forget(p *place) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.readers, p)
}

// DeadLetters reports whether objects that are given up have somewhere to go: OnFailure is set.
func (s *Source) DeadLetters() bool { return s.options.Failed != "" || s.options.FailedKeep }

// Lag counts the objects of a prefix that are messages, those in hand included. It lists the prefix, at its cost.
func (s *Source) Lag(ctx context.Context, resource string) (int64, error) {
	name, err := s.canonical(resource)
	if err != nil {
		return 0, fmt.Errorf("s3: lag of %q: %w", resource, err)
	}
	p := &place{source: s, resource: name}
	n, err := s.options.Count(func(each func([]files.Entry) error) error { return p.List(ctx, each) })
	if err != nil {
		return 0, fmt.Errorf("s3: lag of %q: %w", resource, err)
	}
	return n, nil
}

// Close ends all Readers; later calls of Open fail with ErrClosed. Idempotent. It does not close Client.
func (s *Source) Close() error {
	s.mu.Lock()
	s.closed = true
	readers := make([]*files.Reader, 0, len(s.readers))
	for _, r := range s.readers {
		readers = append(readers, r)
	}
	s.mu.Unlock()
	var errs []error
	for _, r := range readers {
		errs = append(errs, r.Close(context.Background()))
	}
	return errors.Join(errs...)
}

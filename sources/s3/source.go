package s3

import (
	"context"
	"errors"
	"fmt"
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
	readers  files.Readers[*place]
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
	return &Source{settings: s, readIdle: readIdle, probing: make(chan struct{}, 1)}, nil
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
	if s.readers.Closed() {
		return nil, sources.ErrClosed
	}
	prefix := s.prefix(c.Resource)
	if err := s.walk(ctx, prefix, s.delimiter(), 1, func(page) error { return nil }); err != nil {
		return nil, err
	}
	if err := s.probe(ctx, prefix); err != nil {
		return nil, err
	}
	return s.readers.Open(&place{source: s, resource: c.Resource}, s.options, c)
}

// DeadLetters reports whether objects that are given up have somewhere to go: OnFailure is set.
func (s *Source) DeadLetters() bool { return s.options.DeadLetters() }

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

// Close ends all Readers, whose settlements it waits for, but not longer than a minute; later calls of Open fail with ErrClosed. Idempotent. It does not
// close Client.
func (s *Source) Close() error { return s.readers.Close() }

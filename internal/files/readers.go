package files

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/sources"
)

// closing is how long the end of a source waits for what its Readers settle.
const closing = time.Minute

// Readers are the Readers of a source that are open, by their places. The zero value is ready.
type Readers[P interface {
	comparable
	Place
}] struct {
	mu     sync.Mutex
	closed bool
	open   map[P]*Reader
}

// Open opens a Reader of a place, unless the source is closed, which is sources.ErrClosed.
func (r *Readers[P]) Open(place P, opt Options, c *rebalancer.Claim) (sources.Reader, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, sources.ErrClosed
	}
	if r.open == nil {
		r.open = map[P]*Reader{}
	}
	reader := New(place, opt, c)
	r.open[place] = reader
	return reader, nil
}

// Forget is called by a place that is closed.
func (r *Readers[P]) Forget(place P) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.open, place)
}

// Closed tells whether Close was called.
func (r *Readers[P]) Closed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.closed
}

// All are the Readers that are open.
func (r *Readers[P]) All() map[P]*Reader {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make(map[P]*Reader, len(r.open))
	for place, reader := range r.open {
		all[place] = reader
	}
	return all
}

// Close closes all Readers, side by side. A settlement that takes longer than a minute is broken off. Idempotent.
func (r *Readers[P]) Close() error {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), closing)
	defer cancel()
	var mu sync.Mutex
	var errs []error
	var all sync.WaitGroup
	for _, reader := range r.All() {
		all.Go(func() {
			err := reader.Close(ctx)
			mu.Lock()
			defer mu.Unlock()
			errs = append(errs, err)
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// DeadLetters reports whether what is given up goes somewhere, or is remembered as given up.
func (o *Options) DeadLetters() bool { return o.Failed != "" || o.FailedKeep }

package files

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/sources"
)

// Reader works one place. It implements sources.Reader.
//
// A file waits in items, is in hand after its delivery, and goes back through returned. items belongs to the goroutine
// in Fetch; all that Settle and Close touch is guarded by mu, which is never held during a call of the place. So Settle
// does not wait for a Fetch.
type Reader struct {
	place    Place
	opt      Options
	resource string
	fence    int64
	ctx      context.Context // of Fetch: ends when Close begins
	cancel   context.CancelFunc
	settle   context.Context // of Settle: ends when Close waits no longer
	abort    context.CancelFunc
	wake     chan struct{} // room for one signal: something was returned, or closed
	settling chan struct{} // held by the one Settle at a time, and by Close
	acting   chan struct{} // held by Fetch while it changes something in the place, and by Close

	// Of Fetch alone.
	items    []*file
	nextList time.Time
	listing  time.Time     // when what is noted now was listed; zero while nothing is
	idle     time.Duration // between listings, grows while nothing comes
	took     time.Duration // by the last listing
	out      []*rebalancer.Message
	absent   map[string]*file     // not listed any more, remembered for what is known of them
	told     map[string]bool      // unsound names that were reported
	partial  map[string]time.Time // since when sets lack files, by the one that leads; zero for those that were reported
	infos    []Info               // of one look
	keep     *keeping             // nil where files do not stay
	trigger  *awaited             // nil while there is none, or a round

	mu       sync.Mutex
	closed   bool
	hand     map[*rebalancer.Message]*file
	owned    map[string]*file // in hand or returned, by name: a listing does not make them again
	returned []*file
	claimed  map[*file][]part // what to give back at Close
	round    *round           // of the trigger file; only Fetch sets it
	left     map[string]bool  // what was settled since the listing in progress began; nil: there is none
}

// New makes a Reader of a place that is opened. opt is complete (see Options.Complete). The Reader closes the place.
func New(place Place, opt Options, c *rebalancer.Claim) *Reader {
	ctx, cancel := context.WithCancel(context.Background())
	settle, abort := context.WithCancel(context.Background())
	if opt.Claim {
		opt.claims = claimsOf(c.Group, c.Fence)
	}
	r := &Reader{
		place: place, opt: opt, resource: c.Resource, fence: c.Fence,
		ctx: ctx, cancel: cancel, settle: settle, abort: abort,
		wake: make(chan struct{}, 1), settling: make(chan struct{}, 1), acting: make(chan struct{}, 1),
		idle: opt.Interval, absent: map[string]*file{}, told: map[string]bool{}, claimed: map[*file][]part{},
		hand: map[*rebalancer.Message]*file{}, owned: map[string]*file{},
	}
	if opt.Keep || opt.FailedKeep {
		r.keep = newKeeping(c, &r.opt, ctx.Done())
	}
	return r
}

// Fetch returns the files that are stable, in order.
func (r *Reader) Fetch(ctx context.Context, max int) ([]*rebalancer.Message, error) {
	if max < 1 {
		return nil, fmt.Errorf("fetch from %q: max is %d, must be at least 1", r.resource, max)
	}
	both, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(r.ctx, cancel)()
	for {
		if err := r.ended(ctx); err != nil {
			return nil, err
		}
		picks, next, err := r.poll(both, max)
		if ended := r.ended(ctx); ended != nil { // rather than what the place made of it
			return nil, ended
		}
		if err != nil {
			return nil, fmt.Errorf("fetch from %q: %w", r.resource, err)
		}
		if picks, err = r.withRoom(picks); err != nil {
			return nil, fmt.Errorf("fetch from %q: %w", r.resource, err)
		}
		if picks = r.claim(both, r.rejectEmpty(both, picks)); len(picks) > 0 {
			return r.deliver(picks)
		}
		r.wait(both, next)
	}
}

// ended says why a Fetch must return, if it must.
func (r *Reader) ended(ctx context.Context) error {
	if r.ctx.Err() != nil {
		return fmt.Errorf("fetch from %q: %w", r.resource, sources.ErrClosed)
	}
	return ctx.Err()
}

func (r *Reader) wait(ctx context.Context, next time.Time) {
	d := time.Until(next)
	if d <= 0 {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-r.wake:
	case <-ctx.Done():
	}
}

// deliver takes picks, which are in the order of items, out of items and into the caller's hand.
func (r *Reader) deliver(picks []*file) ([]*rebalancer.Message, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, fmt.Errorf("fetch from %q: %w", r.resource, sources.ErrClosed)
	}
	r.out = r.out[:0]
	for _, f := range picks {
		m := r.message(f)
		f.handed = true
		r.hand[m], r.owned[f.name] = f, f
		r.out = append(r.out, m)
	}
	r.items = without(r.items, picks)
	return r.out, nil
}

// without removes files from items; both are in the same order.
func without(items, gone []*file) []*file {
	if len(gone) == 0 {
		return items
	}
	n := 0
	for i, f := range items {
		if len(gone) == 0 {
			if n == 0 {
				return items[i:]
			}
			n += copy(items[n:], items[i:])
			break
		}
		if f == gone[0] {
			gone = gone[1:]
			continue
		}
		items[n] = f
		n++
	}
	clear(items[n:])
	return items[:n]
}

// Close ends a Fetch in progress and waits for the one file that is being settled, so that nothing is settled after it;
// what is in hand stays where it is, for the next Reader. When ctx ends first, that settlement is broken off and the
// error says so.
func (r *Reader) Close(ctx context.Context) error {
	r.mu.Lock()
	first := !r.closed
	r.closed = true
	r.mu.Unlock()
	r.cancel()
	if !first {
		return nil
	}
	var errs []error
	select {
	case r.settling <- struct{}{}: // for good
	case <-ctx.Done():
		errs = append(errs, fmt.Errorf("close %q while files are settled: %w", r.resource, ctx.Err()))
	}
	select {
	case r.acting <- struct{}{}: // for good
	case <-ctx.Done():
	}
	r.abort()
	r.mu.Lock()
	for m, f := range r.hand {
		f.closeOpens()
		delete(r.hand, m)
	}
	claimed := r.claimed
	r.claimed = nil
	r.mu.Unlock()
	r.unclaimAll(ctx, claimed)
	errs = append(errs, r.place.Close())
	return errors.Join(errs...)
}

// act begins a change in the place by Fetch, and returns what ends it; nil when the Reader closes.
func (r *Reader) act() (done func()) {
	select {
	case r.acting <- struct{}{}:
	case <-r.ctx.Done():
		return nil
	}
	if r.ctx.Err() != nil {
		<-r.acting
		return nil
	}
	return func() { <-r.acting }
}

// closeOpens closes what handlers left open, and keeps them from opening more; mu is held.
func (f *file) closeOpens() {
	f.handed = false
	for _, c := range f.opens {
		_ = c.Close()
	}
	f.opens = nil
}

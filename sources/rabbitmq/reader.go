package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/sources"
)

// reader is one opened claim. It outlives its channels: after the loss of one, Fetch makes another. What was in hand under
// the earlier channel is then unknown, and its settlements are ignored: the broker delivers those messages again.
type reader struct {
	source *Source
	claim  *rebalancer.Claim
	wake   chan struct{}      // of capacity 1: Fetch shall look again
	making chan struct{}      // of capacity 1: held by who makes or ends the channel
	ended  context.Context    // by Close
	end    context.CancelFunc // of ended
	flush  *flusher

	mu       sync.Mutex // never held while waiting
	live     *live      // nil: there is no channel
	why      error      // live is nil: why, until Fetch has reported it
	closed   bool
	waiting  bool                         // Fetch waits
	messages []*rebalancer.Message        // handed to the caller until the next Fetch
	stale    map[*rebalancer.Message]bool // in the caller's hands, by channels that were lost
	burying  *burial                      // of Fetch: what it has begun
}

func newReader(s *Source, c *rebalancer.Claim) *reader {
	claim := *c
	r := &reader{source: s, claim: &claim, wake: make(chan struct{}, 1), making: make(chan struct{}, 1)}
	r.ended, r.end = context.WithCancel(context.Background())
	r.flush = newFlusher(r)
	return r
}

// start makes a channel that consumes when Fetch asks for messages.
func (r *reader) start(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(r.ended, cancel)()
	select {
	case r.making <- struct{}{}:
		defer func() { <-r.making }()
	case <-ctx.Done():
		return r.cause(ctx)
	}
	c, err := r.source.consuming.await(ctx, r.who())
	if err != nil {
		return errors.Join(r.cause(ctx), err)
	}
	if err := r.source.dead.check(ctx, r.who()); err != nil {
		return errors.Join(r.cause(ctx), err)
	}
	l, err := r.begin(ctx, c)
	if err != nil {
		return errors.Join(r.cause(ctx), err)
	}
	if !r.adopt(l) {
		_ = l.stop()
		return sources.ErrClosed
	}
	go r.pump(l)
	return nil
}

// adopt puts a channel into use, unless the reader was closed meanwhile.
func (r *reader) adopt(l *live) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false
	}
	r.live, r.why = l, nil
	return true
}

// cause is why a start was cut short, if it was.
func (r *reader) cause(ctx context.Context) error {
	if r.ended.Err() != nil {
		return sources.ErrClosed
	}
	return ctx.Err()
}

func (r *reader) who() string { return r.claim.Group + "/" + r.claim.Node }

// Fetch hands out what has arrived, in order, first what was given back.
func (r *reader) Fetch(ctx context.Context, max int) ([]*rebalancer.Message, error) {
	if max < 1 {
		return nil, r.wrap("fetch from", fmt.Errorf("max is %d, must be at least 1", max))
	}
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		got, err := r.poll(max)
		switch {
		case err != nil:
			err = r.examine(ctx, err)
		case len(got.messages) > 0:
			return got.messages, nil
		case got.live == nil:
			err = r.start(ctx)
		case got.special != nil:
			err = r.special(ctx, got.live, got.special)
		default:
			if got.asks {
				r.flush.someWithin(ctx, got.live, true)
			}
			r.wait(ctx, got)
		}
		if err != nil && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			return nil, r.wrap("fetch from", err)
		}
	}
}

func (r *reader) wrap(what string, err error) error {
	return fmt.Errorf("rabbitmq: %s queue %q: %w", what, r.claim.Resource, err)
}

// polled is what there is.
type polled struct {
	messages []*rebalancer.Message
	// Without messages:
	live    *live     // the channel in use; nil: there is none
	special *entry    // the next entry, when it is not handed out (see special)
	due     time.Time // when a message that was given back can be handed out; zero: there is none
	starved bool      // the broker has sent as many as it may
	asks    bool      // an acknowledgement may have waited for somebody to ask for the next message
}

// poll takes at most max messages.
func (r *reader) poll(max int) (polled, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting = false
	l := r.live
	switch {
	case r.closed:
		return polled{}, sources.ErrClosed
	case l == nil:
		why := r.why
		r.why = nil
		return polled{}, why
	}
	l.asking.Do(func() { close(l.ask) })
	r.messages = r.messages[:0]
	got := polled{live: l}
	var now time.Time
	if l.window.backs > 0 {
		now = time.Now()
	}
	before, held := l.window.out, false
	for len(r.messages) < max {
		var e *entry
		if e, got.due = l.window.first(now); e == nil {
			break
		}
		if e.marker != nil || l.last(e) { // it holds up those behind it, a marker until nothing before it is unfinished
			held = true
			if e.marker == nil || l.window.low == l.window.next {
				got.special = e
			}
			break
		}
		r.messages = append(r.messages, l.window.take(e, r.renew))
	}
	if len(r.messages) > 0 {
		l.pace.handed(before)
		got.messages = r.messages
		return got, nil
	}
	r.waiting = got.special == nil
	got.asks = l.careful && l.window.pending() > 0
	got.starved = l.spent() && !held
	return got, nil
}

// renew makes a message of a delivery anew.
func (r *reader) renew(e *entry) *rebalancer.Message {
	m := new(rebalancer.Message)
	fill(m, e, r.claim)
	m.Attempt = e.attempt
	return m
}

// examine looks whether the queue of a lost consumer is still there: the broker cancels the consumers of a queue that is
// deleted, without a reason, and while the queue can still be seen for a moment.
func (r *reader) examine(ctx context.Context, err error) error {
	if !errors.Is(err, errCancelled) {
		return err
	}
	for n := range 5 {
		c, cerr := r.source.consuming.get(ctx, r.who())
		if cerr != nil {
			return errors.Join(err, cerr)
		}
		if _, cerr = inspect(ctx, c, r.claim.Resource); errors.Is(cerr, sources.ErrGone) {
			return cerr
		}
		sleep(ctx, time.Duration(n)*50*time.Millisecond)
	}
	return err
}

// starving is how long Fetch waits for a broker that may send no more before it is allowed to send more.
const starving = time.Second

// wait returns at a signal, when ctx ends, or when there may be something to do.
func (r *reader) wait(ctx context.Context, got polled) {
	var due <-chan time.Time
	d := starving
	if !got.due.IsZero() {
		d = min(d, time.Until(got.due))
	}
	if got.starved || !got.due.IsZero() {
		t := time.NewTimer(d)
		defer t.Stop()
		due = t.C
	}
	select {
	case <-r.wake:
		runtime.Gosched() // more may be on its way from the connection to here: one batch of many costs less than many of one
	case <-ctx.Done():
	case <-due:
		if got.starved && d == starving {
			r.feed(got.live)
		}
	}
}

// signalLocked ends a wait of Fetch; r.mu is held.
func (r *reader) signalLocked() {
	if !r.waiting {
		return
	}
	r.waiting = false
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Close acknowledges what is settled, closes the channel, and returns when the broker has taken back the rest.
func (r *reader) Close(ctx context.Context) error {
	r.mu.Lock()
	r.closed = true
	r.signalLocked()
	r.mu.Unlock()
	r.end() // also of a start in progress
	select {
	case r.making <- struct{}{}:
		defer func() { <-r.making }()
	case <-ctx.Done():
		return r.wrap("close", ctx.Err())
	}
	r.mu.Lock()
	l := r.live
	r.mu.Unlock()
	var err error
	if l != nil {
		err = r.finish(ctx, l)
	}
	r.flush.stop()
	r.source.forget(r)
	if err != nil {
		return r.wrap("close", err)
	}
	return nil
}

// finish ends the use of a channel. It goes on when the caller does not wait: a consumer that stayed would keep every other owner out for as long as the
// connection lives.
func (r *reader) finish(ctx context.Context, l *live) error {
	l.quitting.Do(func() {
		close(l.quit)
		go func() {
			defer close(l.finished)
			l.unfinished = r.conclude(l)
		}()
	})
	select {
	case <-l.finished:
		return l.unfinished
	case <-ctx.Done():
		return ctx.Err()
	}
}

// conclude acknowledges what is settled and closes the channel, in order; the pump ends.
func (r *reader) conclude(l *live) error {
	<-l.pumped
	err := l.conn.call(context.Background(), func() error {
		r.flush.last(l)
		return nil
	})
	r.mu.Lock()
	r.live = nil
	r.mu.Unlock()
	return errors.Join(err, l.stop())
}

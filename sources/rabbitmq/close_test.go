//go:build linux

package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/internal/testserver"
	"github.com/rebalancer-go/rebalancer/internal/waittest"
	"github.com/rebalancer-go/rebalancer/sources"
)

// TestCloseThatIsNotWaitedFor: while the prefetch is changed a close takes longer than its deadline. It goes on by itself: what is settled is acknowledged,
// and no consumer stays.
func TestCloseThatIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	everywhere(t, kinds[1:2], func(t *testing.T, b *bench, k kind) {
		b.declare("q", k)
		b.send("q", 100)
		s := b.source(func(c *Config) { c.EagerStart = true })
		r := open(t, s, "q")
		ms := fetch(t, r, eagerPrefetch)
		r.flush.send.Lock() // as a change holds it that is not answered yet
		r.mu.Lock()
		r.live.wants(50)
		r.mu.Unlock()
		settle(t, r, sources.Done, ms[:5]...)
		for range 2 {
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			if err := r.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Close: %v", err)
			}
		}
		r.flush.send.Unlock()
		waittest.Until(t, "no consumer is left", func() bool { _, n := b.ready("q"); return n == 0 })
		if n := settled(t, func() int { return b.total("q") }); n != 95 {
			t.Errorf("%d messages are left, want 95", n)
		}
		must(t, r.Close(within30(t)))
		must(t, open(t, s, "q").Close(within30(t)))
	})
}

// TestCloseThatIsNotAnswered: the connection is given up, and with it the consumer.
func TestCloseThatIsNotAnswered(t *testing.T) {
	t.Parallel()
	b := newBench(t, servers.RabbitMQ(t, 4))
	b.declare("q", kinds[0])
	link := testserver.Proxy(t, b.r.Addr())
	s := b.source(func(c *Config) {
		c.URLs = []string{b.r.URLAt(link.Addr(), "guest", "guest", b.vhost)}
		c.Heartbeat = time.Minute // it does not help
	})
	r := open(t, s, "q")
	r.mu.Lock()
	c := r.live.conn
	r.mu.Unlock()
	link.Blackhole()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := r.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Close: %v", err)
	}
	waittest.Until(t, "the connection is given up", c.IsClosed)
}

// TestNothingIsSentForTheLastAcknowledgements: where the broker has sent all that it may and all is settled, the acknowledgements of a close make it send no
// more, which would come back unworked. No acknowledgement gets between the look and the cancellation.
func TestNothingIsSentForTheLastAcknowledgements(t *testing.T) {
	t.Parallel()
	everywhere(t, kinds[1:2], func(t *testing.T, b *bench, k kind) {
		const queues, prefetch = 5, 4
		for i := range queues {
			queue := fmt.Sprint("q", i)
			b.declare(queue, k)
			b.send(queue, 3*prefetch)
			r := open(t, b.source(func(c *Config) { c.EagerStart, c.Prefetch = true, prefetch }), queue)
			ms := fetch(t, r, prefetch)
			r.flush.send.Lock() // a timer is about to write
			settle(t, r, sources.Done, ms...)
			r.mu.Lock()
			r.closed = true // Close begins
			r.mu.Unlock()
			ticked := make(chan struct{})
			go func() {
				defer close(ticked)
				r.flush.tick()
			}()
			go r.flush.send.Unlock()
			<-ticked
			must(t, r.Close(within30(t)))
			again := open(t, b.source(func(c *Config) { c.EagerStart, c.Prefetch = true, 2*prefetch }), queue)
			for _, m := range fetch(t, again, 2*prefetch) {
				if m.Attempt != 1 {
					t.Errorf("%s: attempt %d, want 1", m.Body, m.Attempt)
				}
			}
		}
	})
}

// TestNoCancelOverWhatIsInHand: a close cancels its consumer only when all is settled. Else the queue is without a consumer before the broker has put back what
// was in hand, and whoever looks then starts beyond it.
func TestNoCancelOverWhatIsInHand(t *testing.T) {
	t.Parallel()
	s := newStub(t)
	r := s.reader(s.source()) // of a prefetch of 10
	for i := range 10 {
		s.deliver(uint64(i+1), fmt.Sprint(i))
	}
	settle(t, r, sources.Done, fetch(t, r, 10)[:1]...) // less than what is acknowledged at once
	must(t, r.Close(within30(t)))
	if n := s.count("cancel"); n != 0 {
		t.Errorf("the consumer was cancelled %d times before the channel was closed", n)
	}
}

// TestAQuarterIsAcknowledgedAtOnce: in the call that settles it, so that the broker does not run out of what it may send.
func TestAQuarterIsAcknowledgedAtOnce(t *testing.T) {
	t.Parallel()
	s := newStub(t)
	r := s.reader(s.source()) // of a prefetch of 10
	for i := range 10 {
		s.deliver(uint64(i+1), fmt.Sprint(i))
	}
	settle(t, r, sources.Done, fetch(t, r, 10)[:2]...)
	r.mu.Lock()
	waits := r.live.window.pending()
	r.mu.Unlock()
	if waits != 0 {
		t.Errorf("%d of 10 wait to be acknowledged", waits)
	}
	must(t, r.Close(within30(t)))
}

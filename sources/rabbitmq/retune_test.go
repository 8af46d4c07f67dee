//go:build linux

package rabbitmq

import (
	"fmt"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rebalancer-go/rebalancer/internal/waittest"
	"github.com/rebalancer-go/rebalancer/sources"
)

// TestOrderWhilePrefetchChanges: a message that is on its way to a consumer of a quorum queue while that is cancelled goes back to the queue, on 3.10
// to its end. So the prefetch may be changed only when the broker can have none on its way: when as many are unacknowledged as the
// consumer may have, with no acknowledgement sent until the next consumer is there.
func TestOrderWhilePrefetchChanges(t *testing.T) {
	t.Parallel()
	everywhere(t, kinds[:2], func(t *testing.T, b *bench, k kind) {
		b.declare("q", k)
		const n = 600
		b.send("q", n)
		for round := range 5 { // the careful start of each is followed by a change
			s := b.source(nil)
			r := open(t, s, "q")
			for i := round * n / 5; i < (round+1)*n/5; {
				ms := fetch(t, r, 1)
				for _, m := range ms {
					i++
					if string(m.Body) != numbers(i, i) {
						t.Fatalf("round %d: got %s, want %d", round, m.Body, i)
					}
					if i%50 == 0 { // the pace changes too
						sleep(t.Context(), 100*time.Millisecond)
					}
					settle(t, r, sources.Done, m)
					if i == (round+1)*n/5 {
						break
					}
				}
			}
			must(t, r.Close(within30(t)))
			must(t, s.Close())
		}
	})
}

// TestQueueIsNeverFreeWhilePrefetchChanges: another node takes a queue without consumers for free, and starts beyond what is in hand here.
func TestQueueIsNeverFreeWhilePrefetchChanges(t *testing.T) {
	t.Parallel()
	everywhere(t, kinds[1:2], func(t *testing.T, b *bench, k kind) {
		b.declare("q", k)
		b.send("q", 200)
		other := newClient(b)
		defer other.conn.Close()
		for range 10 {
			s := b.source(nil)
			r := open(t, s, "q")
			ms := fetch(t, r, 1) // the queue is consumed from the first Fetch on
			done, free := make(chan struct{}), make(chan int, 1)
			go func() {
				n := 0
				for {
					if _, consumers := other.ready("q"); consumers == 0 {
						n++
					}
					select {
					case <-done:
						free <- n
						return
					default:
					}
				}
			}()
			for range 10 { // after the first of them the careful start ends
				settle(t, r, sources.Done, ms...)
				ms = fetch(t, r, 1)
			}
			close(done)
			if n := <-free; n > 0 {
				t.Errorf("seen without a consumer %d times", n)
			}
			must(t, r.Close(within30(t)))
			must(t, s.Close())
		}
	})
}

// TestOrderWhilePrefetchChangesUnderLoad: what an earlier consumer was sent is still in hand while messages flow to the next one, whose prefetch is not
// used up by that: it may be cancelled no earlier than when it was sent all that it may.
func TestOrderWhilePrefetchChangesUnderLoad(t *testing.T) {
	t.Parallel()
	everywhere(t, kinds[1:2], func(t *testing.T, b *bench, k kind) {
		b.declare("q", k)
		const n, held = 1000, 20
		r := open(t, b.source(func(c *Config) { c.EagerStart = true }), "q")
		wants := func(prefetch int) {
			r.mu.Lock()
			defer r.mu.Unlock()
			if r.live == nil {
				t.Fatalf("the channel is lost: %v", r.why)
			}
			if r.live.want == r.live.prefetch {
				r.live.wants(prefetch)
			}
		}
		b.send("q", held)
		hand := fetch(t, r, held) // of the first consumer, for the whole test
		wants(10)
		sent := make(chan error, 1)
		go func() { sent <- b.stream("q", held+1, n) }()
		for i := held; i < n; {
			for _, m := range fetch(t, r, 1) {
				i++
				if string(m.Body) != fmt.Sprint(i) || m.Attempt != 1 || m.Native.(*amqp.Delivery).Redelivered {
					t.Fatalf("got %s, attempt %d, want %d for the first time", m.Body, m.Attempt, i)
				}
				settle(t, r, sources.Done, m)
				wants(10 + i%2)
			}
		}
		must(t, <-sent)
		settle(t, r, sources.Done, hand...)
		waittest.Until(t, "all acknowledged", func() bool { return b.total("q") == 0 }) // a quorum queue may forget what is under way when the channel is closed
		must(t, r.Close(within30(t)))
	})
}

// stream publishes numbers while others look at queues, on a channel of its own, and waits until the queue has them all: what is under way to a
// quorum queue when its channel is closed may be lost.
func (b *bench) stream(queue string, first, last int) error {
	ch, err := b.conn.Channel()
	if err != nil {
		return err
	}
	defer ch.Close()
	if err := ch.Confirm(false); err != nil {
		return err
	}
	var sent *amqp.DeferredConfirmation
	for i := first; i <= last; i++ {
		if sent, err = ch.PublishWithDeferredConfirm("", queue, true, false, amqp.Publishing{Body: []byte(fmt.Sprint(i)), DeliveryMode: amqp.Persistent}); err != nil {
			return err
		}
	}
	if ok, err := sent.WaitContext(b.t.Context()); err != nil || !ok {
		return fmt.Errorf("confirmed: %v, %v", ok, err)
	}
	return nil
}

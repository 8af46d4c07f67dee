//go:build linux

package rabbitmq

import (
	"testing"
	"time"

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
				settle(t, r, sources.Done, fetch(t, r, 1)...)
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

//go:build linux

package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/internal/waittest"
	"github.com/rebalancer-go/rebalancer/sources"
)

// staying is a key that stays in the first queue of two.
func staying(t *testing.T, b *bench) string {
	t.Helper()
	for i := range 100 {
		key := fmt.Sprint("other", i)
		must(t, b.emit(key, "x"))
		if len(b.get("orders.0")) > 0 {
			return key
		}
		b.get("orders.1")
	}
	t.Fatal("no key stays")
	return ""
}

// works lets a queue be worked until the test ends, and sends what comes.
func works(t *testing.T, b *bench, queue string, to chan<- string) {
	s := b.source(nil)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	t.Cleanup(func() { cancel(); <-done })
	go func() {
		defer close(done)
		defer s.Close()
		for sleep(ctx, time.Millisecond) {
			r, err := s.Open(ctx, claimOf(queue))
			for err == nil {
				ms, ferr := r.Fetch(ctx, 1)
				if err = ferr; err == nil {
					to <- texted(ms)
					err = r.Settle(ctx, []sources.Settlement{{Message: ms[0]}})
				}
			}
			if r != nil {
				_ = r.Close(context.Background())
			}
			if errors.Is(err, sources.ErrGone) {
				return
			}
			if ctx.Err() == nil {
				t.Logf("%s is worked again after: %v", queue, err)
			}
		}
	}()
}

// expect wants texts, one after the other.
func expect(t *testing.T, got <-chan string, want ...string) {
	t.Helper()
	for _, w := range want {
		select {
		case g := <-got:
			if g != w {
				t.Fatalf("got %q, want %q", g, w)
			}
		case <-time.After(30 * time.Second):
			t.Fatalf("no %q", w)
		}
	}
}

func ends30(t *testing.T, done <-chan error) {
	t.Helper()
	select {
	case err := <-done:
		must(t, err)
	case <-time.After(30 * time.Second):
		t.Fatal("the command does not end")
	}
}

// TestChangesBeforeAnyIsPassed: partitions shrink, grow and shrink again while nobody works the first queue, which then holds the markers of all.
func TestChangesBeforeAnyIsPassed(t *testing.T) {
	t.Parallel()
	everywhere(t, partitioned, func(t *testing.T, b *bench, k kind) {
		key := moving(t, b)
		p := b.partitions(k.of)
		ctx := within30(t)
		must(t, p.Create(ctx, 2))
		got := make(chan string, 10)
		shrink := func() <-chan error {
			done := make(chan error, 1)
			go func() { done <- p.Shrink(ctx, 1) }()
			return done
		}
		must(t, b.emit(key, "1"))
		works(t, b, "orders.1", got)
		ends30(t, shrink())
		must(t, b.emit(key, "2"))
		must(t, p.Grow(ctx, 2))
		must(t, b.emit(key, "3"))
		done := shrink()
		waittest.Until(t, "the keys are diverted", func() bool {
			n, err := p.count(ctx)
			must(t, err)
			return n == 1
		})
		must(t, b.emit(key, "4"))
		works(t, b, "orders.1", got) // before the first queue
		expect(t, got, "1")
		works(t, b, "orders.0", got)
		t.Cleanup(func() {
			if t.Failed() {
				st, err := p.Show(context.WithoutCancel(ctx))
				t.Logf("%+v %v", st, err)
			}
		})
		expect(t, got, "2", "3", "4")
		ends30(t, done)
	})
}

// TestMarkersOfEarlierChanges: a marker that was sent twice, and is read the second time after the queue was taken away and added again, opens nothing.
func TestMarkersOfEarlierChanges(t *testing.T) {
	t.Parallel()
	everywhere(t, partitioned, func(t *testing.T, b *bench, k kind) {
		key := moving(t, b)
		p := b.partitions(k.of)
		ctx := within30(t)
		must(t, p.Create(ctx, 2))
		other := staying(t, b)
		done := make(chan error, 1)
		shrink := func() {
			go func() { done <- p.Shrink(ctx, 1) }()
			pass(t, b, "orders.1")
			ends30(t, done)
		}
		shrink()
		must(t, b.emit(key, "1"))
		must(t, p.Grow(ctx, 2))
		must(t, b.emit(other, "between"))
		must(t, p.Grow(ctx, 2)) // sends the marker again
		s := b.source(nil)
		old := open(t, s, "orders.0")
		settle(t, old, sources.Done, fetch(t, old, 1)...)
		between := fetch(t, old, 1) // the first marker was passed
		shrink()
		must(t, b.emit(key, "2"))
		must(t, p.Grow(ctx, 2))
		must(t, b.emit(key, "3"))
		added := open(t, s, "orders.1")
		quiet(t, added)
		settle(t, old, sources.Done, between...)
		second := fetch(t, old, 1) // the second marker was passed too
		if texted(second) != "2" {
			t.Fatalf("got %q, want 2", texted(second))
		}
		quiet(t, added)
		settle(t, old, sources.Done, second...)
		quiet(t, old) // lets the marker pass
		if got := texted(fetch(t, added, 1)); got != "3" {
			t.Errorf("got %q, want 3", got)
		}
		must(t, s.Close())
	})
}

// TestShrinkSendsLostMarkersAgain: a queue that waits in vain can be taken away, also when the marker was lost after the command had begun.
func TestShrinkSendsLostMarkersAgain(t *testing.T) {
	t.Parallel()
	everywhere(t, partitioned[:1], func(t *testing.T, b *bench, k kind) {
		key := moving(t, b)
		p := b.partitions(k.of)
		ctx := within30(t)
		must(t, p.Create(ctx, 1))
		got := make(chan string, 10)
		for n, begun := range []bool{false, true} {
			must(t, p.Grow(ctx, 2))
			must(t, b.emit(key, fmt.Sprint(n)))
			if begun {
				short, cancel := context.WithTimeout(ctx, time.Second)
				defer cancel()
				if err := p.Shrink(short, 1); !errors.Is(err, context.DeadlineExceeded) {
					t.Fatalf("Shrink with nobody who works: %v", err)
				}
			}
			b.r.Must(http.MethodDelete, "/api/queues/"+b.vhost+"/orders.0/contents", nil, nil)
			done := make(chan error, 1)
			go func() { done <- p.Shrink(ctx, 1) }()
			works(t, b, "orders.1", got)
			if n == 0 {
				works(t, b, "orders.0", got)
			}
			expect(t, got, fmt.Sprint(n))
			ends30(t, done)
		}
	})
}

// TestShrinkWaitsForWhatCameLate: a message behind the marker, in the hands of a consumer, is counted nowhere, and must be worked before its queue goes.
func TestShrinkWaitsForWhatCameLate(t *testing.T) {
	t.Parallel()
	everywhere(t, partitioned, func(t *testing.T, b *bench, k kind) {
		p := b.partitions(k.of)
		must(t, p.Create(within30(t), 2))
		s := b.source(func(c *Config) { c.Prefetch, c.EagerStart = 10, true })
		last, rest := open(t, s, "orders.1"), open(t, s, "orders.0")
		b.send("orders.1", 1)
		first := fetch(t, last, 1)
		done := make(chan error, 1)
		go func() { done <- p.Shrink(within30(t), 1) }()
		waittest.Until(t, "the marker is here", func() bool {
			last.mu.Lock()
			defer last.mu.Unlock()
			return last.live.window.len() == 2
		})
		b.send("orders.1", 2) // as by another node of the broker, which does not know yet
		b.send("orders.0", 1)
		settle(t, last, sources.Done, first...)
		late := fetch(t, last, 2)
		quiet(t, last)
		quiet(t, rest)
		if n := b.total("orders.1"); n < 2 || texted(late) != "2 3" {
			t.Errorf("%d messages are left, %q in hand", n, texted(late))
		}
		settle(t, last, sources.Done, late[0])
		quiet(t, last)
		select {
		case err := <-done:
			t.Fatalf("Shrink has ended with a message in hand: %v", err)
		default:
		}
		settle(t, last, sources.Done, late[1])
		if _, err := last.Fetch(within30(t), 1); !errors.Is(err, sources.ErrGone) && !errors.Is(err, errCancelled) {
			t.Errorf("the queue that went: %v", err)
		}
		if got := texted(fetch(t, rest, 1)); got != "4" {
			t.Errorf("got %q, want 4", got)
		}
		ends30(t, done)
		must(t, s.Close())
	})
}

// TestCreateWaitsForWhatIsInHand: queues are not bound anew while somebody works a message of theirs.
func TestCreateWaitsForWhatIsInHand(t *testing.T) {
	t.Parallel()
	everywhere(t, partitioned, func(t *testing.T, b *bench, k kind) {
		p := b.partitions(k.of)
		must(t, p.Create(within30(t), 2))
		s := b.source(nil)
		r, other := open(t, s, "orders.1"), make(chan string, 1)
		b.send("orders.1", 1)
		ms := fetch(t, r, 1)
		works(t, b, "orders.0", other)
		b.r.Must(http.MethodDelete, "/api/exchanges/"+b.vhost+"/"+p.witness(), nil, nil) // as a restart does
		done := make(chan error, 1)
		go func() { done <- p.Create(within30(t), 2) }()
		quiet(t, r)
		waittest.Until(t, "the marker is there", func() bool { return b.total("orders.1") == 2 })
		if st, err := p.Show(t.Context()); err != nil || !st.Reordered {
			t.Errorf("Show: %+v, %v", st, err)
		}
		settle(t, r, sources.Done, ms...)
		must(t, r.Close(within30(t)))
		works(t, b, "orders.1", other) // lets all markers pass
		ends30(t, done)
		if st, err := p.Show(t.Context()); err != nil || st.Reordered || st.Begun != "" {
			t.Errorf("Show: %+v, %v", st, err)
		}
		there, err := p.there(t.Context())
		must(t, err)
		for name := range there {
			if strings.HasPrefix(name, own) {
				t.Errorf("queue %q is left", name)
			}
		}
		must(t, s.Close())
	})
}

//go:build linux

package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rebalancer-go/rebalancer/internal/testserver"
	"github.com/rebalancer-go/rebalancer/internal/waittest"
	"github.com/rebalancer-go/rebalancer/sources"
)

var partitioned = kinds[:2]

// partitions makes those of an exchange "orders".
func (b *bench) partitions(change func(*PartitionsConfig)) *Partitions {
	b.t.Helper()
	c := PartitionsConfig{Exchange: "orders", Pause: time.Millisecond, Config: Config{URLs: []string{b.r.URL(b.vhost)}}}
	b.managed(&c.Config)
	if change != nil {
		change(&c)
	}
	p, err := NewPartitions(c)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = p.Close() })
	return p
}

// of gives partitions the type of a kind of queues.
func (k kind) of(c *PartitionsConfig) { c.Type, _ = k.args["x-queue-type"].(string) }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// emit publishes to the exchange, and returns when the broker has the message.
func (b *bench) emit(key, text string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	c, err := b.ch.PublishWithDeferredConfirm("orders", key, true, false, amqp.Publishing{Body: []byte(text), DeliveryMode: amqp.Persistent})
	if err == nil && !c.Wait() {
		err = errors.New("not confirmed")
	}
	return err
}

// places tells for each of n keys the queue that takes it.
func (b *bench) places(n int, queues ...string) map[string]string {
	b.t.Helper()
	for i := range n {
		must(b.t, b.emit(fmt.Sprint("key", i), "x"))
	}
	at := map[string]string{}
	for _, q := range queues {
		for _, d := range b.get(q) {
			at[d.RoutingKey] = q
		}
	}
	if len(at) != n {
		b.t.Fatalf("%d keys of %d found", len(at), n)
	}
	return at
}

func TestPartitionsConfigIsChecked(t *testing.T) {
	t.Parallel()
	_, err := NewPartitions(PartitionsConfig{Queue: own + "x", Type: "stream", Pause: -1, Arguments: map[string]any{"x-max-length": 1, "x-max-priority": 1},
		Config: Config{URLs: []string{"amqp://u:secret@h"}, Prefetch: -1}})
	for _, want := range []string{"Prefetch", "Management", "Exchange", "Queue", "Type", "Pause", "x-max-length", "x-max-priority"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no word of %s: %v", want, err)
		}
	}
	if err != nil && strings.Contains(err.Error(), "secret") {
		t.Error("a password")
	}
}

// TestPartitionsMoveKeys shows what the order of the bindings is kept for: a queue appended takes keys from all and moves none between the others, and taking it
// away gives them back.
func TestPartitionsMoveKeys(t *testing.T) {
	t.Parallel()
	everywhere(t, partitioned, func(t *testing.T, b *bench, k kind) {
		p := b.partitions(k.of)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute) // of them all
		defer cancel()
		must(t, p.Create(ctx, 4))
		must(t, p.Create(ctx, 4)) // repeated, it changes nothing
		if err := p.Create(ctx, 5); err == nil || !strings.Contains(err.Error(), "grow") {
			t.Errorf("Create with another number: %v", err)
		}
		four := []string{"orders.0", "orders.1", "orders.2", "orders.3"}
		const keys = 200
		before := b.places(keys, four...)
		if again := b.places(keys, four...); fmt.Sprint(again) != fmt.Sprint(before) {
			t.Fatal("keys move by themselves")
		}
		must(t, p.Grow(ctx, 5))
		for _, q := range append(four, "orders.4") {
			if ds := b.get(q); len(ds) != 1 || markerOf(&ds[0]) == nil {
				t.Fatalf("%s got %d messages, want a marker", q, len(ds))
			}
		}
		grown := b.places(keys, append(four, "orders.4")...)
		moved := 0
		for key, q := range grown {
			if q == "orders.4" {
				moved++
			} else if q != before[key] {
				t.Errorf("%s moved from %s to %s", key, before[key], q)
			}
		}
		if moved < keys/10 || moved > keys*3/10 {
			t.Errorf("%d of %d keys moved, want a fifth", moved, keys)
		}
		if err := p.Grow(ctx, 4); err == nil || !strings.Contains(err.Error(), "shrink") {
			t.Errorf("Grow to fewer: %v", err)
		}
		if err := p.Shrink(ctx, 6); err == nil || !strings.Contains(err.Error(), "grow") {
			t.Errorf("Shrink to more: %v", err)
		}
		done := make(chan error, 1)
		go func() { done <- p.Shrink(ctx, 4) }()
		pass(t, b, "orders.4") // what a group does
		must(t, <-done)
		for _, q := range four {
			if ds := b.get(q); len(ds) != 2 || markerOf(&ds[0]) == nil || markerOf(&ds[1]) == nil { // that of Grow again, which nobody passed
				t.Fatalf("%s got %d messages, want two markers", q, len(ds))
			}
		}
		if shrunk := b.places(keys, four...); fmt.Sprint(shrunk) != fmt.Sprint(before) {
			t.Error("keys are elsewhere than before")
		}
	})
}

// pass works a queue to its end, as a group would, which is the next marker.
func pass(t *testing.T, b *bench, queue string) {
	t.Helper()
	s := b.source(nil)
	r := open(t, s, queue)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for {
		ms, err := r.Fetch(ctx, 10)
		if errors.Is(err, sources.ErrGone) {
			break
		}
		if errors.Is(err, errCancelled) { // the queue is about to go
			continue
		}
		must(t, err)
		settle(t, r, sources.Done, ms...)
	}
	must(t, s.Close())
}

// quiet checks that a reader has nothing to hand out.
func quiet(t *testing.T, r sources.Reader) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if ms, err := r.Fetch(ctx, 1); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %q, %v", texted(ms), err)
	}
}

// moving is a key that goes from the only queue to a second one.
func moving(t *testing.T, b *bench) string {
	t.Helper()
	other := b.partitions(func(c *PartitionsConfig) { c.Exchange, c.Queue, c.Type = "probe", "probe", "classic" })
	must(t, other.Create(within30(t), 2))
	for i := range 100 {
		key := fmt.Sprint("key", i)
		b.mu.Lock()
		c, err := b.ch.PublishWithDeferredConfirm("probe", key, true, false, amqp.Publishing{})
		b.mu.Unlock()
		if err != nil || !c.Wait() {
			t.Fatal(err)
		}
		if n, _ := b.ready("probe.1"); n > 0 {
			return key
		}
	}
	t.Fatal("no key moves")
	return ""
}

// TestGrownQueueWaits: what moved is held back until what was before it is settled, also over a change of owners.
func TestGrownQueueWaits(t *testing.T) {
	t.Parallel()
	everywhere(t, partitioned, func(t *testing.T, b *bench, k kind) {
		key := moving(t, b)
		p := b.partitions(k.of)
		must(t, p.Create(within30(t), 1))
		must(t, b.emit(key, "1"))
		must(t, b.emit(key, "2"))
		must(t, p.Grow(within30(t), 2))
		must(t, b.emit(key, "3"))

		s := b.source(nil)
		added := open(t, s, "orders.1")
		quiet(t, added)
		if st, err := p.Show(t.Context()); err != nil || len(st.Queues) != 2 || !slices.Equal(st.Queues[1].WaitsFor, []string{"orders.0"}) || st.Begun != "" || st.Queues[1].Consumers != 1 {
			t.Errorf("Show: %+v, %v", st, err)
		}
		must(t, added.Close(within30(t)))
		added = open(t, s, "orders.1") // the marker comes again
		quiet(t, added)
		old := open(t, s, "orders.0")
		first := fetch(t, old, 1)
		settle(t, old, sources.Done, first...)
		second := fetch(t, old, 1)
		if texted(first)+texted(second) != "12" {
			t.Fatalf("%s %s", texted(first), texted(second))
		}
		quiet(t, old)
		quiet(t, added) // 2 is not settled
		settle(t, old, sources.Done, second...)
		var third []string
		done := make(chan struct{})
		go func() {
			defer close(done)
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			_, _ = old.Fetch(ctx, 1) // lets the marker pass
		}()
		third = append(third, texted(fetch(t, added, 1)))
		if third[0] != "3" {
			t.Errorf("got %q, want 3", third)
		}
		// It is acknowledged after it has told: a Close in between would give it back, to tell again.
		waittest.Until(t, "nothing is left, the marker neither", func() bool { return b.total("orders.0") == 0 })
		must(t, old.Close(within30(t)))
		<-done
		must(t, s.Close())
	})
}

// TestShrunkQueueIsWorkedFirst: the others stand still at the change until the queue that goes is empty.
func TestShrunkQueueIsWorkedFirst(t *testing.T) {
	t.Parallel()
	everywhere(t, partitioned, func(t *testing.T, b *bench, k kind) {
		key := moving(t, b)
		p := b.partitions(k.of)
		must(t, p.Create(within30(t), 2))
		must(t, b.emit(key, "1"))
		done := make(chan error, 1)
		go func() { done <- p.Shrink(within30(t), 1) }()
		waittest.Until(t, "the keys are diverted", func() bool {
			st, err := p.Show(t.Context())
			must(t, err)
			n, _ := b.ready("orders.1") // the message, and the marker behind it
			return len(st.Queues) == 2 && !st.Queues[1].Bound && n == 2
		})
		must(t, b.emit(key, "2"))
		s := b.source(nil)
		rest := open(t, s, "orders.0")
		quiet(t, rest)
		st, err := p.Show(t.Context())
		if err != nil || st.Begun != "shrink" || !slices.Equal(st.Queues[0].WaitsFor, []string{"orders.1"}) {
			t.Errorf("Show: %+v, %v", st, err)
		}
		if names, err := p.Names(t.Context()); err != nil || !slices.Equal(names, []string{"orders.0", "orders.1"}) {
			t.Errorf("Names: %q, %v", names, err)
		}
		if err := b.partitions(k.of).Grow(within30(t), 3); err == nil || !strings.Contains(err.Error(), errBusy.Error()) {
			t.Errorf("a second command: %v", err)
		}
		if err := p.Grow(within30(t), 3); !errors.Is(err, errBusy) {
			t.Errorf("a second command of the same process: %v", err)
		}
		last := open(t, s, "orders.1")
		ms := fetch(t, last, 1)
		if texted(ms) != "1" {
			t.Fatal(texted(ms))
		}
		quiet(t, rest)
		settle(t, last, sources.Done, ms...)
		_, err = last.Fetch(within30(t), 1)
		for errors.Is(err, errCancelled) { // it is about to go
			_, err = last.Fetch(within30(t), 1)
		}
		if !errors.Is(err, sources.ErrGone) {
			t.Errorf("the queue that went: %v", err)
		}
		if got := texted(fetch(t, rest, 1)); got != "2" {
			t.Errorf("got %q, want 2", got)
		}
		must(t, <-done)
		if st, err := p.Show(t.Context()); err != nil || len(st.Queues) != 1 || st.Begun != "" || st.Queues[0].WaitsFor != nil {
			t.Errorf("Show: %+v, %v", st, err)
		}
		must(t, s.Close())
	})
}

// TestPartitionsRefuseWhatIsNotTheirs: bindings of others, and one that is missing.
func TestPartitionsRefuseWhatIsNotTheirs(t *testing.T) {
	t.Parallel()
	everywhere(t, partitioned[:1], func(t *testing.T, b *bench, k kind) {
		ctx := within30(t)
		p := b.partitions(k.of)
		if _, err := p.Show(ctx); !errors.Is(err, errNotFound) {
			t.Errorf("no exchange: %v", err)
		}
		if err := p.Grow(ctx, 3); err == nil || !strings.Contains(err.Error(), "create") {
			t.Errorf("no exchange: %v", err)
		}
		must(t, p.Create(ctx, 3))
		must(t, p.Grow(ctx, 3)) // as many as there are
		must(t, b.remove("orders.1"))
		if err := p.Grow(ctx, 4); err == nil || !strings.Contains(err.Error(), `"orders.1" is missing`) {
			t.Errorf("a queue deleted: %v", err)
		}
		b.declare("mine", k)
		b.r.Must(http.MethodPost, "/api/bindings/"+b.vhost+"/e/orders/q/mine", map[string]any{"routing_key": "1"}, nil)
		if err := p.Grow(ctx, 4); err == nil || !strings.Contains(err.Error(), `"mine"`) {
			t.Errorf("a foreign binding: %v", err)
		}
		b.r.Must(http.MethodPut, "/api/exchanges/"+b.vhost+"/direct", map[string]any{"type": "direct"}, nil)
		if err := b.partitions(func(c *PartitionsConfig) { c.Exchange = "direct" }).Create(ctx, 2); err == nil || !strings.Contains(err.Error(), "x-consistent-hash") {
			t.Errorf("another type: %v", err)
		}
	})
}

// TestGrowKeepsTheKind: later queues are like the first.
func TestGrowKeepsTheKind(t *testing.T) {
	t.Parallel()
	everywhere(t, partitioned, func(t *testing.T, b *bench, k kind) {
		p := b.partitions(func(c *PartitionsConfig) {
			k.of(c)
			c.Arguments = map[string]any{"x-single-active-consumer": true, "x-mine": int64(7)}
		})
		must(t, p.Create(within30(t), 1))
		must(t, b.partitions(nil).Grow(within30(t), 2))
		var q [2]listed
		for i := range q {
			b.r.Must(http.MethodGet, "/api/queues/"+b.vhost+"/"+p.queue(i), nil, &q[i])
		}
		if q[0].kind() != k.args["x-queue-type"] || q[1].kind() != q[0].kind() || fmt.Sprint(q[0].Arguments) != fmt.Sprint(q[1].Arguments) {
			t.Errorf("%+v and %+v", q[0], q[1])
		}
	})
}

// TestGrowSendsLostMarkersAgain: a queue that waits in vain goes on when the command is repeated.
func TestGrowSendsLostMarkersAgain(t *testing.T) {
	t.Parallel()
	everywhere(t, partitioned[:1], func(t *testing.T, b *bench, k kind) {
		key := moving(t, b)
		p := b.partitions(k.of)
		must(t, p.Create(within30(t), 1))
		must(t, p.Grow(within30(t), 2))
		must(t, b.emit(key, "1"))
		b.r.Must(http.MethodDelete, "/api/queues/"+b.vhost+"/orders.0/contents", nil, nil)
		s := b.source(nil)
		old, added := open(t, s, "orders.0"), open(t, s, "orders.1")
		quiet(t, old)
		quiet(t, added)
		must(t, p.Grow(within30(t), 2))
		quiet(t, old) // lets the marker pass
		if got := texted(fetch(t, added, 1)); got != "1" {
			t.Errorf("got %q", got)
		}
		must(t, s.Close())
		must(t, p.Grow(within30(t), 2)) // nothing waits any more: nothing is sent
		if n, _ := b.ready("orders.0"); n != 0 {
			t.Errorf("%d markers for nobody", n)
		}
	})
}

// TestRestartMovesKeys: a broker that was down binds again in any order. That is noticed, nothing is taken away then, and Create puts it right when it cannot hurt.
func TestRestartMovesKeys(t *testing.T) {
	t.Parallel()
	for _, v := range versions {
		t.Run(fmt.Sprintf("RabbitMQ %d", v), func(t *testing.T) {
			t.Parallel()
			r := testserver.StartRabbitMQ(t, v)
			b := newBench(t, r)
			p := b.partitions(kinds[0].of)
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
			defer cancel()
			must(t, p.Create(ctx, 5))
			names, err := p.Names(ctx)
			must(t, err)
			const keys = 100
			before := b.places(keys, names...)
			if st, err := p.Show(ctx); err != nil || st.Reordered {
				t.Errorf("Show before: %+v, %v", st, err)
			}
			must(t, p.Close())
			r.Restart()
			b.connect()
			p = b.partitions(nil)
			moved := 0
			for key, q := range b.places(keys, names...) {
				if q != before[key] {
					moved++
				}
			}
			t.Logf("%d of %d keys moved", moved, keys) // most often; once in a while none
			if st, err := p.Show(ctx); err != nil || !st.Reordered {
				t.Errorf("Show after: %+v, %v", st, err)
			}
			if err := p.Shrink(ctx, 4); err == nil || !strings.Contains(err.Error(), "restarted") {
				t.Errorf("Shrink: %v", err)
			}
			must(t, b.emit("key", "x"))
			if err := p.Create(ctx, 5); err == nil || !strings.Contains(err.Error(), "stop the publishers") {
				t.Errorf("Create with messages in the queues: %v", err)
			}
			for _, q := range names {
				b.get(q)
			}
			must(t, p.Create(ctx, 5))
			if st, err := p.Show(ctx); err != nil || st.Reordered {
				t.Errorf("Show at last: %+v, %v", st, err)
			}
			if fmt.Sprint(b.places(keys, names...)) != fmt.Sprint(before) {
				t.Error("keys are elsewhere than at first")
			}
		})
	}
}

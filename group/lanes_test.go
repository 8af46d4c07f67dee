package group

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer"
)

// gauge counts how many are in it, and the most that ever were.
type gauge struct{ n, most atomic.Int32 }

func (g *gauge) enter() func() {
	n := g.n.Add(1)
	for m := g.most.Load(); n > m && !g.most.CompareAndSwap(m, n); m = g.most.Load() {
	}
	return func() { g.n.Add(-1) }
}

func keyed(keys ...string) []rebalancer.Message {
	var ms []rebalancer.Message
	for i, k := range keys {
		ms = append(ms, rebalancer.Message{Key: k, Body: fmt.Appendf(nil, "%s%d", k, i)})
	}
	return ms
}

func TestConcurrencyKeepsOrderOfKeys(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		var keys []string
		for i := range 2000 {
			keys = append(keys, []string{"a", "b", "c", "d", "e", ""}[i*i%7%6])
		}
		ms := keyed(keys...)
		_ = w.source.SendMessages("q", ms...)
		var g gauge
		perKey := map[string]*gauge{}
		for _, k := range keys {
			perKey[k] = &gauge{}
		}
		cfg := w.config("a", "q")
		cfg.Concurrency = 4
		r := w.start(cfg, func(_ context.Context, m *rebalancer.Message) error {
			defer g.enter()()
			defer perKey[m.Key].enter()()
			time.Sleep(time.Duration(len(m.ID)) * time.Millisecond)
			w.note(m.Key, m)
			return nil
		})
		w.idle()
		_ = r.end()
		if n := g.most.Load(); n != 4 {
			t.Fatalf("at most %d handlers at once, want 4", n)
		}
		for k, kg := range perKey {
			if n := kg.most.Load(); k != "" && n != 1 {
				t.Fatalf("%d handlers at once on key %q", n, k)
			}
			var want, got []string
			for _, m := range ms {
				if m.Key == k {
					want = append(want, string(m.Body))
				}
			}
			for _, l := range w.log {
				if l.node == k {
					got = append(got, l.body)
				}
			}
			if k == "" {
				slices.Sort(want)
				slices.Sort(got)
			}
			if !slices.Equal(got, want) {
				t.Fatalf("key %q: not in order, or not complete: %d of %d", k, len(got), len(want))
			}
		}
	})
}

func TestKeyFunction(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		_ = w.source.Send("q", "1", "2", "3", "4")
		var g gauge
		cfg := w.config("a", "q")
		cfg.Concurrency = 4
		cfg.Key = func(*rebalancer.Message) string { return "same" }
		r := w.start(cfg, func(_ context.Context, m *rebalancer.Message) error {
			defer g.enter()()
			time.Sleep(time.Second)
			w.note("a", m)
			return nil
		})
		w.idle()
		_ = r.end()
		if got := w.bodies("q"); !slices.Equal(got, []string{"1", "2", "3", "4"}) || g.most.Load() != 1 {
			t.Fatalf("worked %q, %d at once", got, g.most.Load())
		}
	})
}

func TestRetryHoldsUpOnlyItsKey(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		_ = w.source.SendMessages("q", keyed("a", "a", "b", "a", "b", "c", "d")...)
		cfg := w.config("a", "q")
		cfg.Concurrency = 2
		fails := 0
		r := w.start(cfg, func(_ context.Context, m *rebalancer.Message) error {
			if string(m.Body) == "a0" {
				if fails++; fails < 3 {
					return rebalancer.RetryAfter(time.Hour, errBad)
				}
			}
			w.note("a", m)
			return nil
		})
		time.Sleep(time.Minute)
		others := w.bodies("")
		slices.Sort(others)
		if !slices.Equal(others, []string{"b2", "b4", "c5", "d6"}) {
			t.Fatalf("beside a message that waits, worked %q", others)
		}
		w.idleWithin(3 * time.Hour)
		if got := w.bodies("")[4:]; !slices.Equal(got, []string{"a0", "a1", "a3"}) {
			t.Fatalf("then %q", got)
		}
		_ = r.end()
	})
}

func TestLanesGiveBackAtARevoke(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		_ = w.source.SendMessages("q", keyed("a", "a", "b", "b", "c", "d")...)
		cfg := w.config("a", "q")
		cfg.Concurrency = 2
		started := make(chan struct{}, 10)
		free := make(chan struct{})
		r := w.start(cfg, func(ctx context.Context, m *rebalancer.Message) error {
			if m.Key == "c" {
				return rebalancer.RetryAfter(time.Hour, errBad)
			}
			started <- struct{}{}
			<-free
			w.note("a", m)
			return nil
		})
		<-started
		<-started
		r.stop()
		r.wait("draining", func(s Status) bool { return s.Resources[0].Draining })
		if n := r.Status().Resources[0].InFlight; n != 2 {
			t.Fatalf("%d in flight", n)
		}
		close(free)
		if err := <-r.done; err != nil {
			t.Fatal(err)
		}
		if c := w.source.Counts("q"); c.Done != 2 || c.Waiting != 4 {
			t.Fatalf("source: %+v", c)
		}
		s := &script{w: w}
		r = w.start(w.config("b", "q"), s.handle)
		w.idle()
		if got := s.said(); got != "a11 b31 c41 d51" { // the key, its place, and attempt 1
			t.Fatalf("calls: %s", got)
		}
		_ = r.end()
	})
}

func TestStopHaltsLanes(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		_ = w.source.SendMessages("q", keyed("a", "b", "a", "b")...)
		cfg := w.config("a", "q")
		cfg.Concurrency = 2
		cfg.Retry = Retry{Attempts: 1, Exhausted: Stop}
		r := w.start(cfg, func(_ context.Context, m *rebalancer.Message) error {
			if string(m.Body) == "a0" {
				time.Sleep(time.Millisecond)
				return errBad
			}
			time.Sleep(time.Second)
			w.note("a", m)
			return nil
		})
		time.Sleep(time.Hour)
		if got := w.bodies(""); !slices.Equal(got, []string{"b1"}) {
			t.Fatalf("worked %q", got)
		}
		if err := r.Live(); err == nil {
			t.Fatal("Live is nil")
		}
		_ = r.end()
		if c := w.source.Counts("q"); c.Done != 1 || c.Waiting != 3 {
			t.Fatalf("source: %+v", c)
		}
	})
}

func TestMaxConcurrencyTakesTurns(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		all := names(6)
		for _, n := range all {
			_ = w.source.Send(n, "1", "2", "3", "4", "5")
		}
		var g gauge
		cfg := w.config("a", all...)
		cfg.MaxConcurrency = 2
		r := w.start(cfg, func(_ context.Context, m *rebalancer.Message) error {
			defer g.enter()()
			time.Sleep(time.Second)
			w.note("a", m)
			return nil
		})
		w.idle()
		if n := g.most.Load(); n != 2 {
			t.Fatalf("at most %d handlers at once, want 2", n)
		}
		// Fair: nobody is more than one message ahead of another.
		seen := map[string]int{}
		for i, l := range w.log {
			seen[l.resource]++
			if i%6 == 5 {
				for n, c := range seen {
					if c < (i+1)/6-1 || c > (i+1)/6+1 {
						t.Fatalf("after %d messages %s had %d turns", i+1, n, c)
					}
				}
			}
		}
		_ = r.end()
	})
}

//go:build linux

package rabbitmq

import (
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/internal/waittest"
	"github.com/rebalancer-go/rebalancer/sources"
)

func TestPace(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		each        time.Duration
		n, bytes    int
		floor, want int
	}{
		"fast":  {each: time.Microsecond, n: 300000, want: maxAdapted},
		"10 ms": {each: 10 * time.Millisecond, n: 100, want: 100},
		"3 s":   {each: 3 * time.Second, n: 2, want: 1},
		"big":   {each: time.Microsecond, n: 300000, bytes: 1 << 20, want: 16},
		"huge":  {each: time.Microsecond, n: 300000, bytes: 1 << 30, want: 1},
		"asked": {each: 3 * time.Second, n: 2, floor: 40, want: 40},
		"both":  {each: 3 * time.Second, n: 2, floor: 40, bytes: 4 << 20, want: 4},
	} {
		start := time.Unix(1000, 0)
		p := pace{since: start, floor: c.floor}
		for range c.n {
			p.settled(c.bytes)
		}
		got, ok := p.measure(start.Add(time.Duration(c.n)*c.each), 1, 1000000)
		if !ok || got != c.want {
			t.Errorf("%s: %d %v, want %d", name, got, ok, c.want)
		}
		if _, ok := p.measure(start.Add(time.Hour), 1, 1000000); ok {
			t.Errorf("%s: measured where nothing was done", name)
		}
	}
	p := pace{since: time.Unix(1000, 0)}
	p.settled(1)
	if _, ok := p.measure(time.Unix(1000, 0).Add(paceEvery/2), 0, 2); ok {
		t.Error("measured after too short a time")
	}
	if _, ok := p.measure(time.Unix(2000, 0), 0, 2); ok {
		t.Error("the time in which nothing was in hand counts")
	}
}

// TestAdapting: the prefetch grows with the pace, shrinks with it, and grows for a caller who collects; the order stays.
func TestAdapting(t *testing.T) {
	t.Parallel()
	everywhere(t, kinds[:2], func(t *testing.T, b *bench, k kind) {
		b.declare("q", k)
		b.send("q", 4000)
		s := b.source(nil)
		r := open(t, s, "q")
		next := 1
		at := func() int {
			r.mu.Lock()
			defer r.mu.Unlock()
			if r.live == nil {
				t.Fatalf("the channel is lost: %v", r.why)
			}
			return r.live.prefetch
		}
		work := func(what string, pause time.Duration, until func() bool) {
			for late := time.After(20 * time.Second); !until(); {
				m := fetch(t, r, 1)[0]
				if got, want := string(m.Body), numbers(next, next); got != want {
					t.Fatalf("%s: got %s, want %s", what, got, want)
				}
				next++
				sleep(t.Context(), pause)
				settle(t, r, sources.Done, m)
				select {
				case <-late:
					t.Fatalf("%s: the prefetch is %d", what, at())
				default:
				}
			}
		}
		work("fast", 0, func() bool { return at() >= 100 })
		work("slow", 100*time.Millisecond, func() bool { return at() <= 30 })
		before := at()
		ms := fetch(t, r, 2*before+10) // none is settled
		if got := texted(ms); got != numbers(next, next+len(ms)-1) {
			t.Fatalf("got %s from %d on", got, next)
		}
		settle(t, r, sources.Done, ms...)
		must(t, r.Close(within30(t)))
		waittest.Until(t, "what was settled is acknowledged", func() bool { return b.total("q") == 4000-next+1-len(ms) })
	})
}

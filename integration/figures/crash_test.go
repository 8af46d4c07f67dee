package figures

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rebalancer-go/rebalancer/group"
)

const (
	// takeOver is how long after the end of its session the resources of a node that crashed are all owned again.
	takeOver = 250 * time.Millisecond
	// election is what the crash of the coordinator adds: the followers stand one after the other, within 100 ms, and the
	// one that is elected writes its entry and reads everything.
	election = 100 * time.Millisecond
	renewal  = group.DefaultTTL / 6
)

// TestCrash: a node crashes at some moment of its renewal interval. Everything is owned again within ttl + 250 ms, plus one
// election when it coordinated. In global-barrier mode everybody stops first, as long as that takes; the handlers here take
// 11 ms at most.
func TestCrash(t *testing.T) {
	t.Parallel()
	modes(t, func(t *testing.T, global bool) {
		for _, latency := range []time.Duration{0, 5 * time.Millisecond} {
			for _, who := range []string{"follower", "coordinator"} {
				t.Run(fmt.Sprintf("%s/%v", who, latency), func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) { crashes(t, latency, global, who) })
				})
			}
		}
	})
}

func crashes(t *testing.T, latency time.Duration, global bool, who string) {
	limit := group.DefaultTTL + takeOver
	if who == "coordinator" {
		limit += election + 2*latency
	}
	var took []time.Duration
	for _, part := range []float64{0, 0.01, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.99} {
		d := crash(t, latency, global, who, part)
		if d > limit {
			t.Errorf("crash %.0f%% into the renewal interval: all owned again after %v, allowed are %v", 100*part, d, limit)
		}
		took = append(took, d)
	}
	slices.Sort(took)
	t.Logf("%d crashes: all owned again after %v (soonest) %v (median) %v (latest), that is ttl %+v", len(took), took[0], took[len(took)/2],
		took[len(took)-1], took[len(took)-1]-group.DefaultTTL)
}

// crash returns how long after the crash everything was owned again.
func crash(t *testing.T, latency time.Duration, global bool, who string, part float64) time.Duration {
	f := newFleet(t, latency, 100, global)
	all := []string{"a", "b", "c", "d"}
	f.start(all...)
	f.balanced(all...)
	victim := f.coordinator()
	if who == "follower" {
		victim = all[(slices.Index(all, victim)+1)%len(all)]
	}
	f.send(10)
	last := f.calls.lastRenewal(victim)
	if last.IsZero() {
		last = time.Now()
	}
	time.Sleep(time.Until(last.Add(2*renewal + latency))) // virtual: a renewal has just been answered
	time.Sleep(time.Duration(part * float64(renewal-latency)))
	mine := f.heldBy(victim)
	died := time.Now()
	f.calls.cut(victim) // for good
	f.source.kill(victim)
	rest := slices.DeleteFunc(slices.Clone(all), func(n string) bool { return n == victim })
	f.balanced(rest...)
	last = died
	for r := range mine {
		hs := f.source.of(r)
		now := hs[len(hs)-1]
		if now.node == victim || now.firstFetch.IsZero() {
			t.Fatalf("%s was not taken over: %+v", r, hs)
		}
		if now.firstFetch.After(last) {
			last = now.firstFetch
		}
	}
	if len(mine) < 25 {
		t.Errorf("the victim held %d resources only", len(mine))
	}
	f.end()
	f.noWholeGroup()
	return last.Sub(died)
}

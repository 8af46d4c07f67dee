package figures

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// timers is what a hand-over may take beside its round trips: the pauses of a node whose claim or release was refused
// because its assignment had just changed (10 ms and 5 ms).
const timers = 15 * time.Millisecond

// maxTrips is how many round trips in sequence a hand-over takes at most.
const maxTrips = 8

func modes(t *testing.T, f func(t *testing.T, global bool)) {
	for _, global := range []bool{false, true} {
		name := "resource-barrier"
		if global {
			name = "global-barrier"
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f(t, global)
		})
	}
}

// TestLeave: one of four nodes with 100 resources leaves. What moves is idle for at most 8 round trips. In resource-barrier
// mode what does not move is not interrupted; in global-barrier mode everything stops, and everything is idle for at most as long.
func TestLeave(t *testing.T) {
	t.Parallel()
	modes(t, func(t *testing.T, global bool) {
		for _, latency := range []time.Duration{10 * time.Millisecond, 100 * time.Millisecond} {
			for _, who := range []string{"follower", "coordinator"} {
				t.Run(fmt.Sprintf("%s/%v", who, latency), func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) { leave(t, latency, global, who) })
				})
			}
		}
	})
}

func leave(t *testing.T, latency time.Duration, global bool, who string) {
	f := newFleet(t, latency, 100, global)
	all := []string{"a", "b", "c", "d"}
	f.start(all...)
	f.balanced(all...)
	leaver := f.coordinator()
	if who == "follower" {
		leaver = all[(slices.Index(all, leaver)+1)%len(all)]
	}
	before := map[string]hold{}
	for _, r := range f.resources {
		hs := f.source.of(r)
		before[r] = hs[len(hs)-1]
	}
	f.send(2000)
	time.Sleep(200 * time.Millisecond) // virtual: everybody is in the middle of work
	rest := slices.DeleteFunc(slices.Clone(all), func(n string) bool { return n == leaver })
	f.source.watchGaps(time.Now())
	asked := time.Now()
	f.nodes[leaver].stop()
	f.balanced(rest...)
	whole := time.Since(asked)
	time.Sleep(100 * time.Millisecond)
	f.source.watchGaps(time.Time{})

	var idle []time.Duration
	untouched := 0
	longest := time.Duration(0)
	for _, r := range f.resources {
		was, hs := before[r], f.source.of(r)
		now := hs[len(hs)-1]
		if !global && was.node != leaver {
			if now.fence != was.fence || now.opens != 1 || !now.closed.IsZero() {
				t.Errorf("%s does not move, but was interrupted: %+v became %+v", r, was, now)
			}
			if now.longestGap > pace(r)+2*time.Millisecond { // outcomes wait up to 1 ms for others
				t.Errorf("%s does not move, but nothing of it was settled for %v", r, now.longestGap)
			}
			longest = max(longest, now.longestGap)
			untouched++
			continue
		}
		old := hs[len(hs)-2]
		if old.fence != was.fence || now.node == leaver || now.firstFetch.IsZero() {
			t.Errorf("%s did not move once: %+v", r, hs)
		}
		idle = append(idle, now.firstFetch.Sub(old.lastSettled))
	}
	slices.Sort(idle)
	worst := idle[len(idle)-1]
	t.Logf("%d resources moved, idle for %v (least) %v (median) %v (worst) = %.1f, %.1f, %.1f round trips of %v; %d did not move, longest gap %v; "+
		"balanced %v after the leave", len(idle), idle[0], idle[len(idle)/2], worst,
		trips(idle[0], latency), trips(idle[len(idle)/2], latency), trips(worst, latency), latency, untouched, longest, whole)
	if worst > maxTrips*latency+timers {
		t.Errorf("idle for %v: more than %d round trips of %v", worst, maxTrips, latency)
	}
	f.end()
	f.noWholeGroup()
}

func trips(d, latency time.Duration) float64 { return float64(d) / float64(latency) }

package figures

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// TestTrickle: handlers of the old owner end one by one over ten seconds, so that the new owner waits for many claims that come
// free at any time. No resource is idle for longer than when all come at once.
func TestTrickle(t *testing.T) {
	t.Parallel()
	for _, moved := range []int{100, 250, 600} {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { trickle(t, moved) })
		})
	}
}

func trickle(t *testing.T, moved int) {
	const latency = 10 * time.Millisecond
	f := newFleet(t, latency, 2*moved, false)
	f.pace = func(resource string) time.Duration {
		return time.Duration(pace(resource)*1000%10007) * time.Millisecond
	}
	f.start("a", "b")
	f.balanced("a", "b")
	leaver, other := "a", "b"
	if f.coordinator() == "a" {
		leaver, other = "b", "a"
	}
	mine := f.heldBy(leaver)
	f.send(4)
	time.Sleep(200 * time.Millisecond) // virtual: everybody is in the middle of work
	left := time.Now()
	f.nodes[leaver].stop()
	f.balanced(other)
	var idle []time.Duration
	for r := range mine {
		hs := f.source.of(r)
		if len(hs) != 2 {
			t.Fatalf("%s did not move once: %+v", r, hs)
		}
		if last := hs[0].lastSettled; last.After(left) { // else it had worked all its messages before
			idle = append(idle, hs[1].firstFetch.Sub(last))
			if idle[len(idle)-1] > maxTrips*latency+timers {
				f.tell(t, hs, left)
			}
		}
	}
	slices.Sort(idle)
	worst := idle[len(idle)-1]
	t.Logf("%d resources moved one by one, idle for %v (least) %v (median) %v (95 %%) %v (worst) = %.1f round trips of %v", len(idle),
		idle[0], idle[len(idle)/2], idle[len(idle)*95/100], worst, trips(worst, latency), latency)
	if worst > maxTrips*latency+timers {
		t.Errorf("idle for %v: more than %d round trips of %v", worst, maxTrips, latency)
	}
	f.end()
	f.noWholeGroup()
}

// tell shows how a resource moved, and what its two owners asked the store meanwhile.
func (f *fleet) tell(t *testing.T, hs []hold, left time.Time) {
	t.Helper()
	at := func(m time.Time) time.Duration { return m.Sub(left) }
	t.Logf("%s, whose messages take %v: last settled %v after the leave, closed %v, fetched by the next %v", hs[0].resource, f.pace(hs[0].resource),
		at(hs[0].lastSettled), at(hs[0].closed), at(hs[1].firstFetch))
	for _, c := range f.calls.since(hs[0].lastSettled.Add(-100 * time.Millisecond)) {
		if c.from.After(hs[1].firstFetch) {
			break
		}
		t.Logf("  %v: %s: %s of %d keys", at(c.from), c.node, c.kind, len(c.keys))
	}
}

package coord

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
)

func TestNameQueueIsASortedSet(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var q nameQueue
		want := map[string]bool{}
		for range 300 {
			name := strconv.Itoa(rng.IntN(30))
			switch rng.IntN(4) {
			case 0, 1:
				q.add(name)
				want[name] = true
			case 2:
				q.remove(name)
				delete(want, name)
			default:
				got, ok := q.take()
				if ok != (len(want) > 0) || ok && got != slices.Min(slices.Collect(maps.Keys(want))) {
					t.Fatalf("seed %d: took %q (%t) of %v", seed, got, ok, want)
				}
				delete(want, got)
			}
			if q.len() != len(want) {
				t.Fatalf("seed %d: %d names instead of %d", seed, q.len(), len(want))
			}
		}
	}
}

// A hint does not say which of the claims that are waited for has come free: reads go on until all have been looked at, also when
// some of them are free, and not waited for any more.
func TestHintLooksAtAllThatIsWaitedFor(t *testing.T) {
	t.Parallel()
	for _, free := range []int{0, 3, 20} {
		hintLooksAtAll(t, free)
	}
}

// hintLooksAtAll: of each read's claims the first so many are free.
func hintLooksAtAll(t *testing.T, free int) {
	t.Helper()
	m := joined(ResourceBarrier)
	const n = 10*maxWatched + 1
	m.follow.share = map[string]bool{}
	for i := range n {
		m.follow.share["r"+strconv.Itoa(i)] = true
		m.follow.blocked["r"+strconv.Itoa(i)] = 0
	}
	seen := map[string]bool{}
	actions := m.Step(m.now, Hinted{Address: NodeAddress("a")})
	for rounds := 0; ; rounds++ {
		var read Read
		for _, a := range actions {
			if r, ok := a.(Read); ok {
				read = r
			}
		}
		if read.Req == 0 {
			break
		}
		if rounds > n {
			t.Fatal("reads for ever")
		}
		ev := ReadDone{Req: read.Req, Stamp: Stamp{Incarnation: "x"}}
		left := free
		for _, k := range read.Keys {
			seen[k] = true
			if left--; left >= 0 {
				continue
			}
			ev.Entries = append(ev.Entries, Entry{Key: k, Version: 9, Session: "other", Left: 20 * second})
		}
		actions = m.Step(m.now, ev)
	}
	delete(seen, LeaderKey)
	if len(seen) != n {
		t.Errorf("%d of each read are free: looked at %d of %d", free, len(seen), n)
	}
}

// What was given back is not read again with each plan.
func TestCoordinatorForgetsWhatWasGivenBack(t *testing.T) {
	t.Parallel()
	m := joined(ResourceBarrier)
	m.elected(5)
	m.lead.cold, m.lead.rewrite = false, false
	m.lead.entries = map[string]published{"b": {version: 1, value: Assignment{Leaving: map[string]string{"given": "a", "held": "a"}}}}
	m.lead.holders = map[string]string{"held": "b", "given": "a"}
	m.lead.forgetGiven()
	if got := m.moving(); !slices.Equal(got, []string{"held"}) {
		t.Fatalf("still to be given back: %v", got)
	}
}

// Under a closed barrier a release wakes nobody: the member entry of a node that has stopped does.
func TestReleaseUnderClosedBarrierWakesNobody(t *testing.T) {
	t.Parallel()
	m := joined(GlobalBarrier)
	m.bar = barrierState{version: 5, value: Barrier{Generation: 2}, stoppedFor: 2}
	if wake := m.releaseTxn("r", 7).Wake; len(wake) != 0 {
		t.Fatalf("wakes %q", wake)
	}
	m.bar = barrierState{version: 6, value: Barrier{Open: true}}
	if wake := m.releaseTxn("r", 7).Wake; !slices.Equal(wake, []string{CoordinatorAddress}) {
		t.Fatalf("wakes %q under an open barrier", wake)
	}
}

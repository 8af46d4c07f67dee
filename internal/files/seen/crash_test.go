package seen

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"

	"github.com/rebalancer-go/rebalancer/internal/checkpointtest"
)

// step is a fault at one call of the store.
type step struct {
	at    int // which call
	fault checkpointtest.Fault
}

// stepFaults are what can become of a call. A write that is late arrives when the test says.
var stepFaults = []checkpointtest.Fault{{Before: true}, {After: true}, {Late: true}}

// counting makes a plan with one fault, and tells how many calls there were.
func (x step) counting(calls *int) func(string) checkpointtest.Fault {
	return func(call string) checkpointtest.Fault {
		*calls++
		if *calls-1 == x.at {
			return x.fault
		}
		return checkpointtest.Fault{}
	}
}

// script is what one owner does: batches through the journal, rewrites of one and of several chunks, a name that comes again.
func script() [][]Settlement {
	again := numbered(3, 40)
	for i := range again {
		again[i].ID += 1 << 32
	}
	return [][]Settlement{
		numbered(0, 100), numbered(100, 100), numbered(200, 100), again, numbered(5000, 400), numbered(300, 200),
		long(0, 400), {{"a", Record{ID: 1, Attempts: 2, Next: 77}}}, numbered(10, 260), {{"a", done(2)}}, long(150, 400),
	}
}

// long are n settlements of names that share little, so that a few fill a chunk.
func long(from, n int) []Settlement {
	out := make([]Settlement, n)
	for i := range out {
		out[i] = Settlement{fmt.Sprintf("%x", sha256.Sum256([]byte{byte((from + i) >> 8), byte(from + i)})) + strings.Repeat("y", 500), done(uint64(i))}
	}
	return out
}

// allowed are the records that each name may have: the last one that was acknowledged, and those that came after it.
type allowed map[string][]Record

var absent = Record{Outcome: 99}

// settled notes a settlement; ok says that it was acknowledged.
func (a allowed) settled(batch []Settlement, ok bool) {
	for _, x := range batch {
		switch {
		case ok:
			a[x.Name] = []Record{x.Record}
		case len(a[x.Name]) == 0:
			a[x.Name] = []Record{absent, x.Record}
		default:
			a[x.Name] = append(a[x.Name], x.Record)
		}
	}
}

// check compares, and takes what was found as what is true.
func (a allowed) check(tb testing.TB, what string, got map[string]Record) {
	tb.Helper()
	for name, rs := range a {
		r, ok := got[name]
		if !ok {
			r = absent
		}
		fine := false
		for _, one := range rs {
			fine = fine || one == r
		}
		if !fine {
			tb.Fatalf("%s: %.60q is %v, may be %v", what, name, r, rs)
		}
		if r == absent {
			delete(a, name)
		} else {
			a[name] = []Record{r}
		}
	}
	for name := range got {
		if _, ok := a[name]; !ok {
			tb.Fatalf("%s: %.60q was never settled", what, name)
		}
	}
}

// TestCrashAtEachStep ends an owner at each of its calls of the store, each way that the call can end. The next owner knows all
// that was acknowledged and at most the batch under way beside it, and finds no rubbish; a late write of the dead one arrives
// before, during or after it opens.
func TestCrashAtEachStep(t *testing.T) {
	t.Parallel()
	batches := script()
	total := runUntilCrash(t, batches, step{at: -1}, 0)
	if total < 18 {
		t.Fatalf("the script has %d calls: it lacks steps", total)
	}
	for at := range total {
		for _, f := range stepFaults {
			for arrival := range 3 {
				if arrival == 0 || f.Late {
					runUntilCrash(t, batches, step{at, f}, arrival)
				}
			}
		}
	}
}

func runUntilCrash(t *testing.T, batches [][]Settlement, x step, arrival int) (calls int) {
	store := checkpointtest.New()
	store.Plan(x.counting(&calls))
	may := allowed{}
	what := fmt.Sprintf("call %d, %+v, arrival %d", x.at, x.fault, arrival)
	cp := store.Claim()
	s, err := Open(t.Context(), cp, Options{Fence: cp.Fence(), Pace: -1})
	for _, batch := range batches {
		if err != nil {
			break
		}
		err = s.Settle(t.Context(), batch)
		may.settled(batch, err == nil)
	}
	if (err != nil) != (x.at >= 0) {
		t.Fatalf("%s: error %v", what, err)
	}
	opens := 0
	store.Plan(func(call string) checkpointtest.Fault {
		opens++
		return checkpointtest.Fault{}
	})
	if arrival == 0 {
		store.Arrive()
	}
	next := openUnder(t, cp, Options{}) // under the same claim: the head alone protects it
	if arrival == 1 {
		store.Arrive()
	}
	may.check(t, what, contents(t, store))
	settle(t, next, numbered(9000, 300)...)
	may.settled(numbered(9000, 300), true)
	store.Arrive()
	may.check(t, what+", later", contents(t, store))
	same(t, what, inMemory(t, next), contents(t, store))
	return calls
}

// TestFaultAtEachStepHeals: an owner that lives passes a failed batch again, and at the end all is there, whatever became of the
// call that failed.
func TestFaultAtEachStepHeals(t *testing.T) {
	t.Parallel()
	batches := script()
	total := runUntilCrash(t, batches, step{at: -1}, 0)
	for at := range total {
		for _, f := range stepFaults {
			for _, arrive := range []bool{false, true} {
				if !arrive || f.Late {
					healed(t, batches, step{at, f}, arrive)
				}
			}
		}
	}
}

func healed(t *testing.T, batches [][]Settlement, x step, arrive bool) {
	store := checkpointtest.New()
	calls := 0
	store.Plan(x.counting(&calls))
	what := fmt.Sprintf("call %d, %+v, arrives %v", x.at, x.fault, arrive)
	cp := store.Claim()
	var s *State
	retry := func(f func() error) {
		t.Helper()
		err := f()
		if err != nil {
			if arrive {
				store.Arrive()
			}
			err = f()
		}
		if err != nil {
			t.Fatalf("%s: the second try: %v", what, err)
		}
	}
	retry(func() (err error) {
		s, err = Open(context.Background(), cp, Options{Fence: cp.Fence(), Pace: -1})
		return err
	})
	want := map[string]Record{}
	for _, batch := range batches {
		retry(func() error { return s.Settle(context.Background(), batch) })
		for _, r := range batch {
			want[r.Name] = r.Record
		}
	}
	same(t, what, inMemory(t, s), want)
	store.Arrive()
	settle(t, s, numbered(20_000, 300)...) // a rewrite, which takes away what failed ones left
	for _, r := range numbered(20_000, 300) {
		want[r.Name] = r.Record
	}
	same(t, what+": the store", contents(t, store), want)
}

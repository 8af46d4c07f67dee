package seen

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/internal/checkpointtest"
)

var seed = flag.Uint64("seen.seed", 0, "seed of TestModel; 0: a new one")

// TestModel does random things to a state over a store that fails at random, and compares with a map.
func TestModel(t *testing.T) {
	t.Parallel()
	for i := range 8 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			n := *seed
			if n == 0 {
				n = uint64(time.Now().UnixNano()) + uint64(i)
			}
			defer func() {
				if t.Failed() {
					t.Logf("again with: go test ./internal/files/seen -run 'TestModel/0' -seen.seed=%d", n)
				}
			}()
			(&world{T: t, rng: rand.New(rand.NewPCG(n, 1)), store: checkpointtest.New(), may: allowed{}}).run(120)
		})
	}
}

type world struct {
	*testing.T
	rng   *rand.Rand
	store *checkpointtest.Store
	cp    *checkpointtest.Checkpoint
	s     *State
	old   []*State
	may   allowed
	id    uint64
	bad   float64 // of calls
}

func (w *world) run(steps int) {
	w.store.Plan(func(string) checkpointtest.Fault {
		if w.rng.Float64() >= w.bad {
			return checkpointtest.Fault{}
		}
		return stepFaults[w.rng.IntN(len(stepFaults))]
	})
	w.reopen()
	for range steps {
		switch x := w.rng.IntN(20); {
		case x < 13:
			w.settle()
		case x < 15:
			w.store.Arrive()
		case x < 17:
			w.wake()
		case x < 19:
			w.reopen()
		default:
			w.bad = []float64{0, 0.05, 0.3}[w.rng.IntN(3)]
		}
		if w.Failed() {
			return
		}
	}
	w.reopen()
}

// name draws one of about 3,000, of all lengths.
func (w *world) name() string {
	n := w.rng.IntN(3000)
	switch n % 3 {
	case 0:
		return fmt.Sprintf("%d", n)
	case 1:
		return fmt.Sprintf("a/long/common/beginning/%05d.csv", n)
	}
	return fmt.Sprintf("%d", n) + strings.Repeat(string(rune('a'+n%7)), n%700)
}

func (w *world) batch() []Settlement {
	sizes := []int{1, 5, 100, 300}
	out := make([]Settlement, 1+w.rng.IntN(sizes[w.rng.IntN(len(sizes))]))
	for i := range out {
		w.id++
		out[i] = Settlement{w.name(), Record{ID: w.id, Outcome: Outcome(w.rng.IntN(3))}}
		if out[i].Outcome == Waiting {
			out[i].Attempts, out[i].Next = uint32(w.rng.IntN(5)), w.rng.Int64N(1e13)
		}
	}
	return out
}

func (w *world) settle() {
	batch := w.batch()
	last := map[string]Record{}
	for _, x := range batch {
		last[x.Name] = x.Record
	}
	batch = batch[:0]
	for name, r := range last {
		batch = append(batch, Settlement{name, r})
	}
	err := w.s.Settle(context.Background(), batch)
	w.may.settled(batch, err == nil)
	switch {
	case errors.Is(err, rebalancer.ErrStale): // too many rewrites without an answer: the source opens again
		w.reopen()
	case err != nil && !errors.Is(err, checkpointtest.ErrInjected):
		w.Errorf("settle: %v", err)
	case err == nil:
		for name, r := range last {
			if got, ok := w.s.Look(name); !ok || got != r {
				w.Errorf("%.40q is %v, %v after its settlement, want %v", name, got, ok, r)
			}
		}
	}
}

// wake has an earlier owner, or an earlier state under this claim, write. Nothing of it must arrive.
func (w *world) wake() {
	if len(w.old) == 0 {
		return
	}
	s := w.old[w.rng.IntN(len(w.old))]
	if err := s.Settle(context.Background(), w.batch()); err == nil {
		w.Error("an old owner could settle")
	}
}

// reopen hands over, with or without a new claim, and compares everything.
func (w *world) reopen() {
	if w.s != nil {
		w.old = append(w.old, w.s)
	}
	if w.cp == nil || w.rng.IntN(2) == 0 {
		w.cp = w.store.Claim()
	}
	for {
		s, err := Open(context.Background(), w.cp, Options{Fence: w.cp.Fence(), Pace: -1})
		if err == nil {
			w.s = s
			break
		}
		if errors.Is(err, ErrDamaged) || errors.Is(err, rebalancer.ErrLost) {
			w.Fatal(err)
		}
	}
	w.may.check(w.T, "after a hand-over", contents(w, w.store))
	same(w, "memory", inMemory(w, w.s), contents(w, w.store))
}

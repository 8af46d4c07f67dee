package memory_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/backends/memory"
	"github.com/rebalancer-go/rebalancer/backends/storetest"
)

func driver() storetest.Driver {
	return storetest.Driver{TTL: 10 * time.Second, Place: place, Rounds: 200}
}

func place(*testing.T) storetest.Place {
	s := memory.New()
	return storetest.Place{
		Open:     func(*testing.T) backends.Store { return s },
		Lose:     func(*testing.T) { s.Forget() },
		StepBack: func(_ *testing.T, d time.Duration) { s.Step(-d) },
		RollBack: func(*testing.T) func(*testing.T) {
			then := s.Snapshot()
			return func(*testing.T) { s.Restore(then) }
		},
		Cannot: map[storetest.Ability]string{
			storetest.TwoHandles: "the data is in the store itself",
			storetest.Rows:       "what ended is removed before anything can count it",
		},
	}
}

// In virtual time.
func TestContract(t *testing.T) {
	t.Parallel()
	d := driver()
	d.Wrap = synctest.Test
	storetest.Run(t, d)
}

// In real time, where goroutines really race.
func TestContractInRealTime(t *testing.T) {
	t.Parallel()
	d := driver()
	d.TTL, d.Rounds = 2*time.Second, 40
	storetest.Run(t, d)
}

package sim

import (
	"slices"
	"testing"
)

// TestOperatorsEndThings: operators evict nodes and depose coordinators among all else that happens, and no promise breaks.
func TestOperatorsEndThings(t *testing.T) {
	t.Parallel()
	evicted, deposed := 0, 0
	for seed := *firstFlag; seed < *firstFlag+max(*worldsFlag/5, 1); seed++ {
		s := NewSetup(seed)
		s.Kinds = append(slices.Clone(s.kinds()), ends...)
		faults := NewSchedule(&s)
		w := NewWorld(s, faults)
		w.limit = *stepsFlag
		if v := w.Run(); v != nil {
			t.Fatalf("%s(but for: go test ./coord/sim -run TestOperatorsEndThings -first=%d -worlds=1)", Report(s, faults, v), seed)
		}
		evicted += len(w.evicted)
		for _, f := range faults {
			if f.Kind == ActStepDown {
				deposed++
			}
		}
	}
	if evicted == 0 || deposed == 0 {
		t.Errorf("%d nodes were evicted, %d coordinators deposed", evicted, deposed)
	}
}

package sim

import (
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/coord"
)

var two = []string{"a", "b"}

func scenarios() []Scenario {
	return []Scenario{
		{Name: "join", Nodes: 2, Late: 1, Resources: two, Mode: coord.ResourceBarrier, Hints: true, Horizon: 8},
		{Name: "join, one loss", Nodes: 2, Late: 1, Resources: two, Mode: coord.ResourceBarrier, Horizon: 8, Budget: Budget{Lost: 1}},
		{Name: "freeze", Nodes: 2, Resources: two, Mode: coord.ResourceBarrier, Horizon: 20, Budget: Budget{Frozen: 1}},
		{Name: "wipe", Nodes: 2, Resources: two, Mode: coord.ResourceBarrier, Horizon: 20, Budget: Budget{Wiped: 1}},
	}
}

// TestSearch looks at every state of small groups.
func TestSearch(t *testing.T) {
	t.Parallel()
	for _, sc := range scenarios() {
		t.Run(sc.Name, func(t *testing.T) {
			t.Parallel()
			begin := time.Now()
			r := Search(sc)
			t.Logf("%v in %v", r, time.Since(begin).Round(time.Millisecond))
			if r.Violation != nil || !r.Complete {
				t.Fail()
			}
		})
	}
}

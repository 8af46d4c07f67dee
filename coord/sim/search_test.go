package sim

import (
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/coord"
)

var two = []string{"a", "b"}

func scenarios() []Scenario {
	return []Scenario{
		{Name: "join", Nodes: 2, Late: 1, Resources: two, Mode: coord.ResourceBarrier, Hints: true, Horizon: 20, Budget: Budget{}},
		{Name: "both", Nodes: 2, Late: 2, Resources: two, Mode: coord.ResourceBarrier, Hints: true, Horizon: 16},
		{Name: "join, one loss", Nodes: 2, Late: 1, Resources: two, Mode: coord.ResourceBarrier, Horizon: 20, Budget: Budget{Lost: 1}},
		{Name: "freeze", Nodes: 2, Resources: two, Mode: coord.ResourceBarrier, Horizon: 36, Budget: Budget{Frozen: 1}},
		{Name: "roll", Nodes: 2, Resources: two, Mode: coord.ResourceBarrier, Horizon: 36, Budget: Budget{Rolled: 1}},
		{Name: "leave", Nodes: 2, Resources: two, Mode: coord.ResourceBarrier, Hints: true, Horizon: 20, Budget: Budget{Left: 1}},
		{Name: "barrier", Nodes: 2, Late: 1, Resources: two, Mode: coord.GlobalBarrier, Hints: true, Horizon: 20, Budget: Budget{}},
	}
}

// TestSearch looks at every state of small groups.
func TestSearch(t *testing.T) {
	t.Parallel()
	for _, sc := range scenarios() {
		t.Run(sc.Name, func(t *testing.T) {
			t.Parallel()
			begin := time.Now()
			sc.Limit = 40000
			r := Search(sc)
			t.Logf("%s: %v in %v", sc.Name, r, time.Since(begin).Round(time.Millisecond))
			if r.Violation != nil || !r.Complete {
				t.Fail()
			}
		})
	}
}

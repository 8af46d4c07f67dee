package sim

import (
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/coord"
)

var two = []string{"a", "b"}

func scenarios() []Scenario {
	return []Scenario{
		{Name: "join", Nodes: 2, Late: 1, Resources: two, Mode: coord.ResourceBarrier, Hints: true, Horizon: 10},
		{Name: "two at once", Nodes: 2, Late: 2, Resources: two, Mode: coord.ResourceBarrier, Hints: true, Horizon: 8},
		{Name: "leave, prompt", Nodes: 2, Resources: two, Mode: coord.ResourceBarrier, Hints: true, Prompt: true, Horizon: 2, Budget: Budget{Left: 1}},
		{Name: "join, a loss", Nodes: 2, Late: 1, Resources: two, Mode: coord.ResourceBarrier, Horizon: 10, Budget: Budget{Lost: 1}, Limit: 12000},
		{Name: "freeze", Nodes: 2, Resources: two, Mode: coord.ResourceBarrier, Horizon: 18, Budget: Budget{Frozen: 1}, Limit: 12000},
		{Name: "rollback", Nodes: 2, Resources: two, Mode: coord.ResourceBarrier, Horizon: 18, Budget: Budget{Rolled: 1}, Limit: 12000},
		{Name: "wipe", Nodes: 2, Resources: two, Mode: coord.ResourceBarrier, Horizon: 18, Budget: Budget{Wiped: 1}, Limit: 12000},
		{Name: "join, global", Nodes: 2, Late: 1, Resources: two, Mode: coord.GlobalBarrier, Hints: true, Horizon: 10, Limit: 12000},
		{Name: "three, two leave", Nodes: 3, Resources: two, Mode: coord.ResourceBarrier, Hints: true, Prompt: true, Horizon: 2, Budget: Budget{Left: 2}, Limit: 12000},
	}
}

// TestSearch looks at every state of small groups. Scenarios with a Limit are cut off there, depth first, and say so: what
// they did not reach is not proved.
func TestSearch(t *testing.T) {
	t.Parallel()
	for _, sc := range scenarios() {
		t.Run(sc.Name, func(t *testing.T) {
			t.Parallel()
			begin := time.Now()
			r := Search(sc)
			t.Logf("%s: %v in %v", sc.Name, r, time.Since(begin).Round(time.Millisecond))
			if r.Violation != nil {
				t.Error("a promise is broken")
			}
			if !r.Complete && sc.Limit == 0 {
				t.Error("the search was cut off")
			}
		})
	}
}

package assign

import (
	"slices"
	"testing"
)

// TestLimitOfNothing: no nodes, no resources, nothing to move.
func TestLimitOfNothing(t *testing.T) {
	t.Parallel()
	for _, p := range []Problem{
		{},
		{Resources: 2, Owner: []int32{-1, -1}},
		{Nodes: []Node{{Weight: 1}}},
		{Resources: 1, Owner: []int32{0}, Nodes: []Node{{Weight: 1}}},
	} {
		target := Plan(p)
		if got := Limit(p, target, 1, 1, nil); !slices.Equal(got, target) {
			t.Errorf("%+v: %v, want %v", p, got, target)
		}
	}
}

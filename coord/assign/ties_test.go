package assign

import (
	"slices"
	"testing"
)

// TestTies: who keeps the odd resource, which ones go, and who gets the first, is decided by what the caller knows of it.
func TestTies(t *testing.T) {
	t.Parallel()
	three := func(late ...int) []Node {
		nodes := make([]Node, 3)
		for i, n := range late {
			nodes[i].Late = n
		}
		return nodes
	}
	for name, c := range map[string]struct {
		p    Problem
		want []int32
	}{
		"the lowest keeps it":       {Problem{Nodes: three(), Resources: 5, Owner: []int32{0, 0, 1, 1, 1}}, []int32{0, 0, 1, 1, 2}},
		"one of both is to give":    {Problem{Nodes: three(), Resources: 4, Owner: []int32{0, 0, 1, 1}}, []int32{0, 0, 1, 2}},
		"who had it keeps it":       {Problem{Nodes: three(1), Resources: 4, Owner: []int32{0, 0, 1, 1}}, []int32{0, 2, 1, 1}},
		"both came late":            {Problem{Nodes: three(1, 1), Resources: 4, Owner: []int32{0, 0, 1, 1}}, []int32{0, 0, 1, 2}},
		"late, but enough without":  {Problem{Nodes: three(1, 1), Resources: 4, Owner: []int32{0, 0, 0, 1}}, []int32{0, 0, 2, 1}},
		"late, and nobody had more": {Problem{Nodes: three(1, 2, 7), Resources: 4, Owner: []int32{0, 1, 2, 2}}, []int32{0, 1, 2, 2}},
		"less than none":            {Problem{Nodes: three(-9), Resources: 4, Owner: []int32{0, 0, 1, 1}}, []int32{0, 0, 1, 2}},
		"the first to the lowest":   {Problem{Nodes: three(), Resources: 7, Owner: []int32{-1, -1, -1, -1, 1, 2}}, []int32{0, 0, 1, 2, 1, 2, 0}},
	} {
		if got := Plan(c.p); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

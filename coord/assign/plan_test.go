package assign

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
)

func TestPlanOfFew(t *testing.T) {
	t.Parallel()
	two := []Node{{}, {}}
	only0 := []Node{{}, {Allowed: []uint64{}}}
	huge := []Node{{Priority: math.MinInt, Weight: math.MaxInt, Max: math.MaxInt}, {Priority: math.MinInt, Weight: math.MinInt, Max: math.MinInt}}
	for name, c := range map[string]struct {
		p    Problem
		want []int32
	}{
		"nothing":                    {Problem{}, []int32{}},
		"less than nothing":          {Problem{Nodes: two, Resources: -1}, []int32{}},
		"no node":                    {Problem{Resources: 2, Owner: []int32{0, 1}}, []int32{-1, -1}},
		"no resource":                {Problem{Nodes: two}, []int32{}},
		"no resource, some allowed":  {Problem{Nodes: only0}, []int32{}},
		"one resource":               {Problem{Nodes: two, Resources: 1}, []int32{0}},
		"one resource, owned":        {Problem{Nodes: two, Resources: 1, Owner: []int32{1}}, []int32{1}},
		"fewer than nodes":           {Problem{Nodes: make([]Node, 5), Resources: 2, Owner: []int32{4, 4}}, []int32{4, 0}},
		"owners out of range":        {Problem{Nodes: two, Resources: 4, Owner: []int32{2, -7, math.MaxInt32, math.MinInt32}}, []int32{0, 1, 0, 1}},
		"owners missing":             {Problem{Nodes: two, Resources: 2, Owner: []int32{0}}, []int32{0, 1}},
		"owners of nothing":          {Problem{Nodes: two, Resources: 1, Owner: []int32{1, 0, 0}}, []int32{1}},
		"owner may not take it":      {Problem{Nodes: only0, Resources: 1, Owner: []int32{1}}, []int32{0}},
		"nobody may take it":         {Problem{Nodes: []Node{{Allowed: []uint64{1}}}, Resources: 2}, []int32{0, -1}},
		"allowed beyond the end":     {Problem{Nodes: []Node{{Allowed: []uint64{^uint64(1), ^uint64(0)}}}, Resources: 2}, []int32{-1, 0}},
		"all allowed, one by one":    {Problem{Nodes: []Node{{Allowed: []uint64{3}}, {Allowed: []uint64{7}}}, Resources: 2}, []int32{0, 1}},
		"all at their limit":         {Problem{Nodes: []Node{{Max: 1}, {Max: 1}}, Resources: 3, Owner: []int32{1, 1, 1}}, []int32{1, 0, -1}},
		"negative limit":             {Problem{Nodes: []Node{{Max: -1}}, Resources: 2}, []int32{0, 0}},
		"extreme numbers":            {Problem{Nodes: huge, Resources: 2}, []int32{0, 0}},
		"extreme, with some allowed": {Problem{Nodes: append(slices.Clone(huge), only0[1]), Resources: 1, Owner: []int32{1}}, []int32{0}},
		"higher first":               {Problem{Nodes: []Node{{}, {Priority: 1}}, Resources: 2, Owner: []int32{0, 0}}, []int32{1, 1}},
		"overflow to lower":          {Problem{Nodes: []Node{{}, {Priority: 1, Max: 1}}, Resources: 2, Owner: []int32{1, 1}}, []int32{1, 0}},
		"refused goes to lower":      {Problem{Nodes: []Node{{}, {Priority: 1, Allowed: []uint64{2}}}, Resources: 2}, []int32{0, 1}},
		"chain to a higher":          {Problem{Nodes: []Node{{Allowed: []uint64{3}}, {Priority: 1, Max: 1, Allowed: []uint64{3}}, {Priority: 1, Allowed: []uint64{1}}}, Resources: 2, Owner: []int32{1, 0}}, []int32{2, 1}},
	} {
		if got := Plan(c.p); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// counted is how many resources each node holds.
func counted(nodes int, plan []int32) []int {
	counts := make([]int, nodes)
	for _, n := range plan {
		if n >= 0 {
			counts[n]++
		}
	}
	return counts
}

func moved(before, after []int32) (moves int) {
	for r, o := range before {
		if o >= 0 && after[r] != o {
			moves++
		}
	}
	return moves
}

func TestJoinTakesFromTheFullest(t *testing.T) {
	t.Parallel()
	owner := []int32{0, 0, 0, 0, 0, 1, 1, 1, 2, 2, 2}
	plan := Plan(Problem{Nodes: make([]Node, 4), Resources: 11, Owner: owner})
	if got := counted(4, plan); !slices.Equal(got, []int{3, 3, 3, 2}) || moved(owner, plan) != 2 {
		t.Errorf("%v: %v, %d moves", plan, got, moved(owner, plan))
	}
}

func TestLeaversResourcesGoToTheEmptiest(t *testing.T) {
	t.Parallel()
	owner := []int32{-1, -1, -1, 0, 0, 0, 0, 1, 1, 1, 2, 2}
	plan := Plan(Problem{Nodes: make([]Node, 3), Resources: 12, Owner: owner})
	if got := counted(3, plan); !slices.Equal(got, []int{4, 4, 4}) || moved(owner, plan) != 0 {
		t.Errorf("%v: %v, %d moves", plan, got, moved(owner, plan))
	}
}

// TestNeighboursAreSpread: kinds of resources are neighbours in the order of names, and should not all go to one node.
func TestNeighboursAreSpread(t *testing.T) {
	t.Parallel()
	plan := Plan(Problem{Nodes: make([]Node, 4), Resources: 64})
	for start := 0; start < 64; start += 8 {
		if got := counted(4, plan[start:start+8]); !slices.Equal(got, []int{2, 2, 2, 2}) {
			t.Errorf("from %d: %v", start, got)
		}
	}
}

// TestSharesByWeight: within one of the fair share, whatever the mix of weights, also where most shares are below a half.
func TestSharesByWeight(t *testing.T) {
	t.Parallel()
	seeds(t, 2000, func(t *testing.T, rng *rand.Rand) error {
		p := Problem{Nodes: make([]Node, 1+rng.IntN(30)), Resources: rng.IntN(200)}
		for i := range p.Nodes {
			p.Nodes[i].Weight = 1 + rng.IntN(4)
			if rng.IntN(5) == 0 {
				p.Nodes[i].Weight = 100
			}
			if rng.IntN(3) == 0 {
				p.Nodes[i].Max = 1 + rng.IntN(20)
			}
		}
		order, _ := classes(p.Nodes)
		left := p.Resources
		shares, scale := fairShares(p, order, &left)
		for n, count := range counted(len(p.Nodes), Plan(p)) {
			if d := int64(count)*scale - shares[int32(n)]; d <= -scale || d >= scale {
				return fmt.Errorf("node %d of %+v holds %d, its share is %d/%d", n, p.Nodes, count, shares[int32(n)], scale)
			}
		}
		return nil
	})
}

// group is a problem by names, as a caller has it.
type group struct {
	nodes map[string]Node
	// allowed and owner are by names of resources.
	allowed map[string]map[string]bool
	owner   map[string]string
	prefer  map[string]string // the node that each should be on
	load    map[string]int32
}

// plan maps names to indexes, from lists in whatever order, and the plan back.
func (g group) plan(nodes, resources []string) map[string]string {
	slices.Sort(nodes)
	slices.Sort(resources)
	p := Problem{Resources: len(resources), Owner: make([]int32, len(resources))}
	for _, name := range nodes {
		n := g.nodes[name]
		if allowed := g.allowed[name]; allowed != nil {
			n.Allowed = make([]uint64, (len(resources)+63)/64)
			for r, resource := range resources {
				if allowed[resource] {
					n.Allowed[r/64] |= 1 << (r % 64)
				}
			}
		}
		for r, resource := range resources {
			if g.prefer[resource] == name {
				if n.Prefer == nil {
					n.Prefer = make([]uint64, (len(resources)+63)/64)
				}
				n.Prefer[r/64] |= 1 << (r % 64)
			}
		}
		p.Nodes = append(p.Nodes, n)
	}
	for r, resource := range resources {
		if g.load != nil {
			p.Load = append(p.Load, g.load[resource])
		}
		p.Owner[r] = int32(slices.Index(nodes, g.owner[resource]))
	}
	plan := map[string]string{}
	for r, n := range Plan(p) {
		if n >= 0 {
			plan[resources[r]] = nodes[n]
		}
	}
	return plan
}

func TestSameInputSamePlan(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(3, 4))
	for round := range 8 {
		some, prefer, load := round&1 != 0, round&2 != 0, round&4 != 0
		g := group{nodes: map[string]Node{}, allowed: map[string]map[string]bool{}, owner: map[string]string{}, prefer: map[string]string{}}
		if load {
			g.load = map[string]int32{}
		}
		var nodes, resources []string
		for i := range 9 {
			nodes = append(nodes, fmt.Sprint("node-", i))
			g.nodes[nodes[i]] = Node{Priority: rng.IntN(2), Weight: rng.IntN(3), Max: 5 + rng.IntN(20)}
		}
		for i := range 70 {
			resources = append(resources, fmt.Sprint("resource-", i))
			g.owner[resources[i]] = fmt.Sprint("node-", rng.IntN(5))
			if prefer {
				g.prefer[resources[i]] = fmt.Sprint("node-", rng.IntN(9))
			}
			if load {
				g.load[resources[i]] = 1 + rng.Int32N(30)
			}
		}
		for _, n := range nodes {
			if g.allowed[n] = map[string]bool{}; !some {
				g.allowed[n] = nil
				continue
			}
			for _, r := range resources {
				g.allowed[n][r] = rng.IntN(3) > 0
			}
		}
		want := g.plan(nodes, resources)
		for i := range 1000 {
			rng.Shuffle(len(nodes), func(a, b int) { nodes[a], nodes[b] = nodes[b], nodes[a] })
			rng.Shuffle(len(resources), func(a, b int) { resources[a], resources[b] = resources[b], resources[a] })
			if got := g.plan(nodes, resources); !reflect.DeepEqual(got, want) {
				t.Fatalf("shuffle %d: %v, want %v", i, got, want)
			}
		}
	}
}

// TestPlanChangesNothing: what the caller gave stays as it was, and what the caller got shares nothing with it.
func TestPlanChangesNothing(t *testing.T) {
	t.Parallel()
	seeds(t, 200, func(t *testing.T, rng *rand.Rand) error {
		p := random(rng, 1+rng.IntN(9), 1+rng.IntN(99))
		q := p
		q.Owner, q.Nodes = slices.Clone(p.Owner), slices.Clone(p.Nodes)
		for i := range q.Nodes {
			q.Nodes[i].Allowed = slices.Clone(p.Nodes[i].Allowed)
		}
		clear(Plan(p))
		if !reflect.DeepEqual(p, q) {
			return fmt.Errorf("%+v became %+v", q, p)
		}
		return nil
	})
}

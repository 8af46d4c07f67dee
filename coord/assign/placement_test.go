package assign

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestActive(t *testing.T) {
	t.Parallel()
	nodes := []Node{{}, {Priority: 1}, {Priority: 1}, {}}
	for _, c := range []struct {
		holds []int32
		n     int
		back  bool
		want  []bool
	}{
		{nil, 1, false, []bool{false, true, false, false}},
		{[]int32{0, 0, 3, 0}, 1, false, []bool{false, false, true, false}},
		{[]int32{2, 0, 0, 0}, 1, false, []bool{true, false, false, false}}, // no fail-back while it is well
		{[]int32{2, 0, 0, 0}, 1, true, []bool{false, true, false, false}},
		{[]int32{0, 0, 3, 0}, 1, true, []bool{false, false, true, false}}, // the same priority is no reason
		{[]int32{0, 0, 0, 1}, 2, false, []bool{false, true, false, true}},
		{nil, 0, false, []bool{true, true, true, true}},
		{nil, 9, false, []bool{true, true, true, true}},
	} {
		if got := Active(nodes, c.holds, c.n, c.back); !slices.Equal(got, c.want) {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

func randomProblem(rng *rand.Rand, resources int, loads bool) Problem {
	p := Problem{Resources: resources, Owner: make([]int32, resources)}
	for range 1 + rng.IntN(6) {
		n := Node{Priority: rng.IntN(2), Weight: rng.IntN(4)}
		if rng.IntN(3) == 0 {
			n.Max = 1 + rng.IntN(resources)
		}
		if rng.IntN(2) == 0 {
			n.Allowed = randomSet(rng, resources)
		}
		if rng.IntN(2) == 0 {
			n.Prefer = randomSet(rng, resources)
		}
		p.Nodes = append(p.Nodes, n)
	}
	for r := range p.Owner {
		p.Owner[r] = int32(rng.IntN(len(p.Nodes)+1)) - 1
		if loads {
			p.Load = append(p.Load, int32(1+rng.IntN(20)))
		}
	}
	return p
}

func randomSet(rng *rand.Rand, n int) []uint64 {
	s := make([]uint64, (n+63)/64)
	for r := range n {
		if rng.IntN(3) > 0 {
			s[r/64] |= 1 << (r % 64)
		}
	}
	return s
}

// valid fails unless a plan keeps to Allowed and Max.
func valid(t *testing.T, seed uint64, p Problem, plan []int32) {
	t.Helper()
	counts := make([]int32, len(p.Nodes))
	for r, o := range plan {
		if o == Nobody {
			continue
		}
		if counts[o]++; !p.Nodes[o].may(r) || counts[o] > p.Nodes[o].limit(p.Resources) {
			t.Fatalf("seed %d: resource %d on node %d, which may not take it", seed, r, o)
		}
	}
}

// Limited moves keep to Allowed and Max at each step, never exceed the limits, and come to the target.
func TestLimit(t *testing.T) {
	t.Parallel()
	for seed := range uint64(2000) {
		rng := rand.New(rand.NewPCG(seed, 11))
		p := randomProblem(rng, 1+rng.IntN(30), rng.IntN(2) == 0)
		p.Owner = Plan(p) // a valid state
		for i := range p.Nodes {
			if rng.IntN(2) == 0 {
				p.Nodes[i].Weight = rng.IntN(6)
			}
		}
		p.Nodes = append(p.Nodes, Node{})
		target := Plan(p)
		most, each := rng.IntN(4), rng.IntN(3)
		for step := 0; ; step++ {
			now := Limit(p, target, most, each, nil)
			valid(t, seed, p, now)
			moved, from := 0, make([]int, len(p.Nodes))
			for r, o := range now {
				if was := p.owner(r); was != Nobody && o != was && target[r] != Nobody && p.Nodes[was].may(r) {
					moved++
					from[was]++
				}
			}
			ring := moved > 1 && (most == 1 || each == 1) && fullNodes(p) > 1
			if !ring && (most > 0 && moved > most || each > 0 && slices.Max(from) > each) {
				t.Fatalf("seed %d: %d moves, %v by node, limits %d and %d", seed, moved, from, most, each)
			}
			if slices.Equal(now, target) {
				break
			}
			if slices.Equal(now, p.Owner) || step > 100 {
				t.Fatalf("seed %d: stands still before the target\nnow    %v\ntarget %v", seed, now, target)
			}
			p.Owner = now
		}
	}
}

func fullNodes(p Problem) int {
	counts, full := make([]int32, len(p.Nodes)), 0
	for r := range p.Owner {
		if o := p.owner(r); o != Nobody {
			counts[o]++
		}
	}
	for i := range p.Nodes {
		if counts[i] >= p.Nodes[i].limit(p.Resources) {
			full++
		}
	}
	return full
}

func TestLimitOfFullNodes(t *testing.T) {
	t.Parallel()
	p := Problem{Nodes: []Node{{Max: 1}, {Max: 1}, {Max: 1}, {}}, Resources: 4, Owner: []int32{0, 1, 2, 3}}
	if got := Limit(p, []int32{1, 2, 0, 3}, 1, 1, nil); !slices.Equal(got, []int32{1, 2, 0, 3}) {
		t.Errorf("a ring of full nodes: %v", got)
	}
	if got := Limit(p, []int32{1, 2, 0, 3}, 1, 1, []int32{-1, -1, -1, 3}); !slices.Equal(got, []int32{1, 2, 0, 3}) {
		t.Errorf("what need not be given back after all is not under way: %v", got)
	}
	p.Resources, p.Owner = 5, []int32{0, 1, 2, 3, -1}
	if got := Limit(p, []int32{1, 2, 0, 3, 3}, 1, 1, []int32{-1, -1, -1, -1, 3}); !slices.Equal(got, []int32{0, 1, 2, 3, 3}) {
		t.Errorf("while something is under way: %v", got)
	}
}

func TestLimitCountsWhatIsUnderWay(t *testing.T) {
	t.Parallel()
	p := Problem{Nodes: make([]Node, 3), Resources: 4, Owner: []int32{0, 0, 1, -1}}
	target := []int32{2, 2, 2, 2}
	busy := []int32{-1, -1, -1, 0}
	for _, c := range []struct {
		most, each int
		want       []int32
	}{
		{0, 0, target},
		{1, 0, []int32{0, 0, 1, 2}},
		{2, 0, []int32{2, 0, 1, 2}},
		{0, 1, []int32{0, 0, 2, 2}},
	} {
		if got := Limit(p, target, c.most, c.each, busy); !slices.Equal(got, c.want) {
			t.Errorf("%d, %d: %v, want %v", c.most, c.each, got, c.want)
		}
	}
}

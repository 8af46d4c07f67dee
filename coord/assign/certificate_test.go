package assign

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// certify proves that a plan is optimal, at sizes where trying all plans is out of the question: it looks at all chains of moves at
// once. None may lead to a higher priority or to a less loaded node, and none that leaves the balance as it is may save moves. Weights must be
// equal within each priority.
func certify(p Problem, plan []int32) error {
	if _, err := costOf(p, plan, counting(p)); err != nil {
		return err
	}
	none := len(p.Nodes)
	counts := make([]int, none+1)
	costs := moveCosts(p, plan, counts)
	dist := shortest(costs)
	for s := range costs {
		if counts[s] == 0 {
			continue
		}
		for t := range none {
			if s == t || dist[s][t] == unreachable || p.Nodes[t].Max > 0 && counts[t] >= p.Nodes[t].Max {
				continue
			}
			if s == none {
				return fmt.Errorf("a resource without a node could be placed at node %d", t)
			}
			ps, pt := p.Nodes[s].Priority, p.Nodes[t].Priority
			switch {
			case pt > ps:
				return fmt.Errorf("a chain leads from node %d to node %d of a higher priority", s, t)
			case pt == ps && counts[s] >= counts[t]+2:
				return fmt.Errorf("a chain leads from node %d with %d to node %d with %d", s, counts[s], t, counts[t])
			case pt == ps && counts[s] == counts[t]+1:
				costs[t][s] = min(costs[t][s], 0) // closes the chains that change no balance
			}
		}
	}
	for n, d := range shortest(costs) {
		if d[n] < 0 {
			return fmt.Errorf("chains through node %d save %d moves", n, -d[n])
		}
	}
	return nil
}

const unreachable = 1 << 30

// moveCosts is what the cheapest move from each node, and none, to each other costs, and counts what they hold.
func moveCosts(p Problem, plan []int32, counts []int) [][]int {
	none := len(p.Nodes)
	costs := make([][]int, none+1)
	for i := range costs {
		costs[i] = slices.Repeat([]int{unreachable}, none+1)
		costs[i][i] = 0
	}
	for r, n := range plan {
		at, owner := int(n), p.owner(r)
		if n == Nobody {
			at = none
		}
		counts[at]++
		moved := func(n int32) int {
			if owner >= 0 && n != owner {
				return 1
			}
			return 0
		}
		for t := range none {
			if p.Nodes[t].word(r/64)>>(r%64)&1 != 0 {
				costs[at][t] = min(costs[at][t], moved(int32(t))-moved(n))
			}
		}
		costs[at][none] = min(costs[at][none], moved(Nobody)-moved(n))
	}
	return costs
}

// shortest are the costs of the cheapest chains.
func shortest(costs [][]int) [][]int {
	dist := make([][]int, len(costs))
	for i := range costs {
		dist[i] = slices.Clone(costs[i])
	}
	for k := range dist {
		for i := range dist {
			if dist[i][k] == unreachable {
				continue
			}
			for j := range dist {
				if dist[k][j] != unreachable {
					dist[i][j] = min(dist[i][j], dist[i][k]+dist[k][j])
				}
			}
		}
	}
	return dist
}

// equalWeights makes the weights equal within each priority.
func equalWeights(p Problem) {
	for i := range p.Nodes {
		p.Nodes[i].Weight = p.Nodes[i].Priority
	}
}

func TestPlanIsCertified(t *testing.T) {
	t.Parallel()
	seeds(t, 400, func(t *testing.T, rng *rand.Rand) error {
		p := random(rng, 2+rng.IntN(70), 1+rng.IntN(300))
		equalWeights(p)
		if rng.IntN(2) == 0 {
			few(rng, p)
		}
		plan := Plan(p)
		if err := certify(p, plan); err != nil {
			return err
		}
		p.Owner = plan
		if again := Plan(p); !slices.Equal(again, plan) {
			return fmt.Errorf("%v, and planned again %v", plan, again)
		}
		return nil
	})
}

// few lets each resource go to few nodes, mostly neighbours, so that chains get long.
func few(rng *rand.Rand, p Problem) {
	for i := range p.Nodes {
		p.Nodes[i].Allowed = make([]uint64, (p.Resources+63)/64)
	}
	for r := range p.Resources {
		n := rng.IntN(len(p.Nodes))
		for range 1 + rng.IntN(3) {
			p.Nodes[n].Allowed[r/64] |= 1 << (r % 64)
			n = min(n+rng.IntN(3), len(p.Nodes)-1)
		}
	}
}

// TestCertifyRefuses shows that the certificate is worth something: it refuses each kind of bad plan.
func TestCertifyRefuses(t *testing.T) {
	t.Parallel()
	two, high := []Node{{}, {}}, []Node{{Priority: 1}, {}}
	for name, c := range map[string]struct {
		p    Problem
		plan []int32
	}{
		"unplaced":      {Problem{Nodes: two, Resources: 1}, []int32{Nobody}},
		"low priority":  {Problem{Nodes: high, Resources: 1}, []int32{1}},
		"unbalanced":    {Problem{Nodes: two, Resources: 2}, []int32{0, 0}},
		"moved":         {Problem{Nodes: two, Resources: 1, Owner: []int32{1}}, []int32{0}},
		"exchanged":     {Problem{Nodes: two, Resources: 2, Owner: []int32{0, 1}}, []int32{1, 0}},
		"above limit":   {Problem{Nodes: []Node{{Max: 1}}, Resources: 2}, []int32{0, 0}},
		"may not":       {Problem{Nodes: []Node{{Allowed: []uint64{}}}, Resources: 1}, []int32{0}},
		"long way home": {Problem{Nodes: two, Resources: 3, Owner: []int32{0, 0, 1}}, []int32{0, 1, 0}},
	} {
		if certify(c.p, c.plan) == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestFlowAgreesWithUniform(t *testing.T) {
	t.Parallel()
	seeds(t, 300, func(t *testing.T, rng *rand.Rand) error {
		p := random(rng, 1+rng.IntN(70), 1+rng.IntN(300))
		equalWeights(p)
		for i := range p.Nodes {
			p.Nodes[i].Allowed = nil
		}
		flow := make([]int32, p.Resources)
		for r := range flow {
			flow[r] = p.owner(r)
		}
		planFlow(p, flow)
		a, errA := costOf(p, Plan(p), counting(p))
		b, errB := costOf(p, flow, counting(p))
		if errA != nil || errB != nil || a.compare(b) != 0 {
			return fmt.Errorf("uniform: %+v %v, flow: %+v %v", a, errA, b, errB)
		}
		return nil
	})
}

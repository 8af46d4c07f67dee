package assign

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// change is a moment in the life of a group: how the problem looks after it, given the plan before it.
type change struct {
	name string
	make func(p Problem) Problem
}

// changes are made from a problem without owners, in which one node more than asked for is there.
func changes() []change {
	without := func(p Problem, node int) Problem {
		p.Nodes = slices.Delete(slices.Clone(p.Nodes), node, node+1)
		return p
	}
	return []change{
		{"fresh", func(p Problem) Problem { return without(p, len(p.Nodes)-1) }},
		{"same", func(p Problem) Problem {
			p = without(p, len(p.Nodes)-1)
			p.Owner = Plan(p)
			return p
		}},
		{"leave", func(p Problem) Problem {
			gone := len(p.Nodes) / 2
			owner := Plan(p)
			for r, o := range owner {
				switch {
				case int(o) == gone:
					owner[r] = Nobody
				case int(o) > gone:
					owner[r]--
				}
			}
			p = without(p, gone)
			p.Owner = owner
			return p
		}},
		{"join", func(p Problem) Problem {
			p = without(p, len(p.Nodes)-1)
			last := p.Nodes[len(p.Nodes)-1]
			old := without(p, len(p.Nodes)-1)
			owner := Plan(old)
			p.Nodes = append(old.Nodes, last)
			p.Owner = owner
			return p
		}},
	}
}

// shape makes a problem harder.
type shape struct {
	name string
	make func(rng *rand.Rand, p Problem)
}

// allowing lets each node take about so many of a thousand resources.
func allowing(permille int) func(rng *rand.Rand, p Problem) {
	return func(rng *rand.Rand, p Problem) {
		for i := range p.Nodes {
			set := make([]uint64, (p.Resources+63)/64)
			for r := range p.Resources {
				if rng.IntN(1000) < permille {
					set[r/64] |= 1 << (r % 64)
				}
			}
			p.Nodes[i].Allowed = set
		}
	}
}

func shapes() []shape {
	return []shape{
		{"uniform", func(*rand.Rand, Problem) {}},
		{"weights", func(rng *rand.Rand, p Problem) {
			for i := range p.Nodes {
				p.Nodes[i].Weight = 1 + rng.IntN(8)
			}
		}},
		{"weights-50%", func(rng *rand.Rand, p Problem) {
			allowing(500)(rng, p)
			for i := range p.Nodes {
				p.Nodes[i].Weight = 1 + rng.IntN(8)
			}
		}},
		{"weights-skewed", func(rng *rand.Rand, p Problem) { // the first half of the resources anywhere, the last ones at few
			for i := range p.Nodes {
				set := make([]uint64, (p.Resources+63)/64)
				for r := range p.Resources * (10 + i%10) / 20 {
					set[r/64] |= 1 << (r % 64)
				}
				p.Nodes[i].Allowed, p.Nodes[i].Weight = set, 1+rng.IntN(8)
			}
		}},
		{"one-declined", func(rng *rand.Rand, p Problem) {
			set := make([]uint64, (p.Resources+63)/64)
			for i := range set {
				set[i] = ^uint64(0)
			}
			set[0] &^= 1
			p.Nodes[0].Allowed = set
		}},
		{"allowed-50%", allowing(500)},
		{"allowed-3%", allowing(30)},
		{"takeover", func(rng *rand.Rand, p Problem) { // one node of the highest priority; the last one, which joins
			allowing(500)(rng, p)
			p.Nodes[len(p.Nodes)-2].Priority = 1
		}},
		{"two-each", func(rng *rand.Rand, p Problem) { // each resource at two nodes only
			for i := range p.Nodes {
				p.Nodes[i].Allowed = make([]uint64, (p.Resources+63)/64)
			}
			for r := range p.Resources {
				for range 2 {
					p.Nodes[rng.IntN(len(p.Nodes))].Allowed[r/64] |= 1 << (r % 64)
				}
			}
		}},
		{"skewed", func(rng *rand.Rand, p Problem) { // a tenth of the resources only at a tenth of the nodes
			tenth := len(p.Nodes) / 10
			for i := range p.Nodes {
				set := make([]uint64, (p.Resources+63)/64)
				for r := range p.Resources {
					if r%10 != 0 || i < tenth {
						set[r/64] |= 1 << (r % 64)
					}
				}
				p.Nodes[i].Allowed = set
			}
		}},
	}
}

func BenchmarkPlan(b *testing.B) {
	for _, size := range []struct{ resources, nodes int }{{24104, 100}, {100000, 1000}} {
		for _, s := range shapes() {
			p := Problem{Nodes: make([]Node, size.nodes+1), Resources: size.resources}
			s.make(rand.New(rand.NewPCG(1, 2)), p)
			for _, c := range changes() {
				b.Run(fmt.Sprintf("%dx%d/%s/%s", size.resources, size.nodes, s.name, c.name), func(b *testing.B) {
					changed := c.make(p)
					b.ReportAllocs()
					for b.Loop() {
						Plan(changed)
					}
				})
			}
		}
	}
}

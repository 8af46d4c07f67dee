package assign

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

func BenchmarkLoad(b *testing.B) {
	for _, size := range []struct{ resources, nodes int }{{24104, 100}, {100000, 1000}} {
		for _, kind := range []string{"one-heavier", "spread", "steep"} {
			p := Problem{Nodes: make([]Node, size.nodes+1), Resources: size.resources}
			p.Load = loads(rand.New(rand.NewPCG(1, 2)), kind, size.resources)
			for _, c := range changes() {
				b.Run(fmt.Sprintf("%dx%d/%s/%s", size.resources, size.nodes, kind, c.name), func(b *testing.B) {
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

// loads are of one kind: all but one alike, up to a hundred, or a few that are much heavier than the rest.
func loads(rng *rand.Rand, kind string, resources int) []int32 {
	loads := make([]int32, resources)
	for r := range loads {
		switch kind {
		case "spread":
			loads[r] = 1 + rng.Int32N(100)
		case "steep":
			loads[r] = int32(10000 / (1 + rng.IntN(resources)))
		default:
			loads[r] = 1
		}
	}
	loads[resources/2] = 50
	return loads
}

// By load: each priority holds as much as by count, planning again moves nothing, and no single move or exchange would better the
// fuller of two nodes by more than the band.
func TestLoad(t *testing.T) {
	t.Parallel()
	for seed := range uint64(5000) {
		rng := rand.New(rand.NewPCG(seed, 7))
		p := randomProblem(rng, 1+rng.IntN(40), true)
		plan := Plan(p)
		valid(t, seed, p, plan)
		unit := p
		unit.Load = nil
		if got, want := byPriority(p, plan), byPriority(p, Plan(unit)); got != want {
			t.Fatalf("seed %d: %v resources by priority, by count %v", seed, got, want)
		}
		if worth := worthIt(p, plan); p.byLoad() && worth != "" {
			t.Fatalf("seed %d: %v: %s", seed, plan, worth)
		}
		again := p
		again.Owner = plan
		if got := Plan(again); !slices.Equal(got, plan) {
			t.Fatalf("seed %d: planning again moves something\n%v\n%v", seed, plan, got)
		}
	}
}

func byPriority(p Problem, plan []int32) (counts [2]int) {
	for _, o := range plan {
		if o != Nobody {
			counts[p.Nodes[o].Priority]++
		}
	}
	return counts
}

// worthIt looks for a move or an exchange within a priority that lowers the greater of two loads by weight by more than a tenth of the mean.
func worthIt(p Problem, plan []int32) string {
	load, count := make([]float64, len(p.Nodes)), make([]int32, len(p.Nodes))
	var sum, weights [2]float64
	for r, o := range plan {
		if o != Nobody {
			load[o] += float64(p.Load[r])
			count[o]++
			sum[p.Nodes[o].Priority] += float64(p.Load[r])
		}
	}
	for i := range p.Nodes {
		weights[p.Nodes[i].Priority] += float64(p.Nodes[i].weight())
	}
	may := func(r int, o int32) bool { return r < 0 || p.Nodes[o].may(r) }
	weight := func(r int) float64 {
		if r < 0 {
			return 0
		}
		return float64(p.Load[r])
	}
	for r, from := range plan {
		for to := range int32(len(p.Nodes)) {
			if from == Nobody || from == to || p.Nodes[from].Priority != p.Nodes[to].Priority || !may(r, to) {
				continue
			}
			a, b, class := float64(p.Nodes[from].weight()), float64(p.Nodes[to].weight()), p.Nodes[to].Priority
			for s := -1; s < len(plan); s++ {
				if s < 0 && count[to] >= p.Nodes[to].limit(p.Resources) || s >= 0 && plan[s] != to || !may(s, from) {
					continue
				}
				shift := weight(r) - weight(s)
				gain := load[from]/a - max((load[from]-shift)/a, (load[to]+shift)/b)
				if gain > sum[class]/weights[class]/10+0.01 {
					return fmt.Sprintf("%d from %d to %d for %d would gain %v", r, from, to, s, gain)
				}
			}
		}
	}
	return ""
}

// Fresh, on nodes that are alike, the fullest is at most a third above what it is in the best of all plans.
func TestLoadOfFew(t *testing.T) {
	t.Parallel()
	for seed := range uint64(500) {
		rng := rand.New(rand.NewPCG(seed, 8))
		p := Problem{Nodes: make([]Node, 1+rng.IntN(3)), Resources: 1 + rng.IntN(8)}
		for range p.Resources {
			p.Load = append(p.Load, int32(1+rng.IntN(30)))
		}
		plan := Plan(p)
		most := func(plan []int32) int64 {
			load := make([]int64, len(p.Nodes))
			for r, o := range plan {
				load[o] += p.load(r)
			}
			return slices.Max(load)
		}
		least, all := most(plan), make([]int32, p.Resources)
		for {
			least = min(least, most(all))
			r := 0
			for ; r < len(all) && int(all[r]) == len(p.Nodes)-1; r++ {
				all[r] = 0
			}
			if r == len(all) {
				break
			}
			all[r]++
		}
		if most(plan)*3 > least*4 {
			t.Fatalf("seed %d: %v of %v: %d at the fullest, %d is possible", seed, plan, p.Load, most(plan), least)
		}
	}
}

// The heaps find what looking at all nodes finds: where the load is least for the weight, and of equal ones the first.
func TestHeaviestFirst(t *testing.T) {
	t.Parallel()
	for seed := range uint64(2000) {
		rng := rand.New(rand.NewPCG(seed, 10))
		p := randomProblem(rng, 1+rng.IntN(60), true)
		for len(p.Nodes) < 20 {
			p.Nodes = append(p.Nodes, Node{Weight: rng.IntN(2), Allowed: randomSet(rng, p.Resources)})
		}
		l := &loader{p: &p, plan: slices.Repeat([]int32{Nobody}, p.Resources), class: make([]int, p.Resources)}
		for i := range p.Nodes {
			l.limits = append(l.limits, p.Nodes[i].limit(p.Resources))
		}
		l.hold(l.plan)
		rest := make([]int32, p.Resources)
		for r := range rest {
			rest[r] = int32(r)
		}
		slices.SortFunc(rest, l.heavier)
		l.spread(rest)
		load, count := make([]int64, len(p.Nodes)), make([]int32, len(p.Nodes))
		for _, r := range rest {
			best := Nobody
			for i := range p.Nodes {
				o, more := int32(i), p.load(int(r))
				if p.Nodes[o].Priority == 0 && p.Nodes[o].may(int(r)) && count[o] < l.limits[o] &&
					(best == Nobody || (load[o]+more)*l.weight(best) < (load[best]+more)*l.weight(o)) {
					best = o
				}
			}
			if l.plan[r] != best {
				t.Fatalf("seed %d: resource %d at %d, want %d", seed, r, l.plan[r], best)
			}
			if best == Nobody {
				break
			}
			load[best] += p.load(int(r))
			count[best]++
		}
	}
}

// Loads that are all the same change nothing.
func TestEqualLoads(t *testing.T) {
	t.Parallel()
	seeds(t, 500, func(t *testing.T, rng *rand.Rand) error {
		p := randomProblem(rng, 1+rng.IntN(40), false)
		want := Plan(p)
		p.Load = slices.Repeat([]int32{7}, p.Resources)
		if got := Plan(p); !slices.Equal(got, want) {
			return fmt.Errorf("%+v: %v, without loads %v", p, got, want)
		}
		return nil
	})
}

// One heavy resource does not starve the others: they go elsewhere.
func TestOneHeavyResource(t *testing.T) {
	t.Parallel()
	p := Problem{Nodes: make([]Node, 3), Resources: 9, Load: []int32{100}}
	plan := Plan(p)
	for r := 1; r < 9; r++ {
		if plan[r] == plan[0] {
			t.Errorf("%v: resource %d is beside the heavy one", plan, r)
		}
	}
	// It stays where it is, and what is beside it leaves.
	p.Load = []int32{100, 10, 10, 10, 10, 10, 10, 10, 10}
	p.Owner = []int32{1, 1, 1, 1, 0, 0, 0, 2, 2}
	if plan := Plan(p); plan[0] != 1 || slices.Contains(plan[1:], 1) {
		t.Errorf("%v", plan)
	}
}

// What is not worth a move stays.
func TestLoadBand(t *testing.T) {
	t.Parallel()
	p := Problem{Nodes: make([]Node, 2), Resources: 4, Load: []int32{100, 104, 100, 90}, Owner: []int32{0, 0, 1, 1}}
	if plan := Plan(p); !slices.Equal(plan, p.Owner) {
		t.Errorf("%v", plan)
	}
	// The difference is above the band, what a move or an exchange would gain is not.
	p = Problem{Nodes: make([]Node, 2), Resources: 5, Load: []int32{103, 3, 47, 47, 1}, Owner: []int32{0, 0, 1, 1, 0}}
	if plan := Plan(p); !slices.Equal(plan, p.Owner) {
		t.Errorf("%v", plan)
	}
}

package assign

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
)

// cost is what Plan minimises, in this order. Counts are per class, highest priority first.
type cost struct {
	unfilled []int // per class: what it does not hold
	balance  []int64
	moves    int
}

func (a cost) compare(b cost) int {
	if c := slices.Compare(a.unfilled, b.unfilled); c != 0 {
		return c
	}
	if c := slices.Compare(a.balance, b.balance); c != 0 {
		return c
	}
	return a.moves - b.moves
}

// costOf judges a plan without any code of the planners but the definition of priority, limit and weight. Balance is the
// sum over the nodes of a class of what each one's resources count: for equal weights 1, 2, 3, …, which is least where no
// chain leads to a count lower by two or more.
func costOf(p Problem, plan []int32, count func(node, x int) int64) (cost, error) {
	order, ends := classes(p.Nodes)
	counts := make([]int, len(p.Nodes))
	var c cost
	for r, n := range plan {
		if o := p.owner(r); o >= 0 && n != o {
			c.moves++
		}
		if n == Nobody {
			continue
		}
		node := p.Nodes[n]
		if node.Allowed != nil && (r/64 >= len(node.Allowed) || node.Allowed[r/64]>>(r%64)&1 == 0) {
			return c, fmt.Errorf("node %d may not take resource %d", n, r)
		}
		counts[n]++
		if node.Max > 0 && counts[n] > node.Max {
			return c, fmt.Errorf("node %d is above its limit %d", n, node.Max)
		}
	}
	start := 0
	for _, end := range ends {
		unfilled, balance := len(plan), int64(0)
		for _, n := range order[start:end] {
			unfilled -= counts[n]
			for x := 1; x <= counts[n]; x++ {
				balance += count(int(n), x)
			}
		}
		start = end
		c.unfilled, c.balance = append(c.unfilled, unfilled), append(c.balance, balance)
	}
	return c, nil
}

// best tries all plans.
func best(p Problem, count func(node, x int) int64) cost {
	plan := make([]int32, p.Resources)
	var found *cost
	var try func(r int)
	try = func(r int) {
		if r == len(plan) {
			if c, err := costOf(p, plan, count); err == nil && (found == nil || c.compare(*found) < 0) {
				found = &c
			}
			return
		}
		for n := int32(-1); int(n) < len(p.Nodes); n++ {
			plan[r] = n
			try(r + 1)
		}
	}
	try(0)
	return *found
}

// counting returns what the x-th resource of a node counts for balance: its number where all of a class have the same weight, else
// twice its middle's distance to the fair share.
func counting(p Problem) func(node, x int) int64 {
	order, ends := classes(p.Nodes)
	counts := make([]func(x int) int64, len(p.Nodes))
	var shares []*big.Rat
	start := 0
	for _, end := range ends {
		class := order[start:end]
		start = end
		if sameWeight(p.Nodes, class) {
			for _, n := range class {
				counts[n] = func(x int) int64 { return int64(x) }
			}
			continue
		}
		if shares == nil {
			shares = fairRatios(p)
		}
		scale := int64(1)
		for _, n := range class {
			scale *= shares[n].Denom().Int64() / new(big.Int).GCD(nil, nil, big.NewInt(scale), shares[n].Denom()).Int64()
		}
		for _, n := range class {
			share := shares[n].Num().Int64() * (scale / shares[n].Denom().Int64())
			counts[n] = func(x int) int64 { return (2*int64(x)-1)*scale - 2*share }
		}
	}
	return func(node, x int) int64 { return counts[node](x) }
}

// fairShares are the shares of a class, in parts of scale, where all may take all: nodes that reach their limit first
// leave more to the others. It takes what the class holds from left.
func fairShares(p Problem, class []int32, left *int) (shares map[int32]int64, scale int64) {
	shares, scale = map[int32]int64{}, 1
	full := map[int32]bool{}
	capacity := 0
	for _, n := range class {
		capacity += int(p.Nodes[n].limit(p.Resources))
	}
	total := min(*left, capacity)
	*left -= total
	for again := true; again; {
		again = false
		rest, weights := int64(total), int64(0)
		for _, n := range class {
			if full[n] {
				rest -= int64(p.Nodes[n].limit(p.Resources))
			} else {
				weights += p.Nodes[n].weight()
			}
		}
		scale = max(weights, 1)
		for _, n := range class {
			limit := int64(p.Nodes[n].limit(p.Resources)) * scale
			if shares[n] = rest * p.Nodes[n].weight(); full[n] || shares[n] > limit {
				shares[n] = limit
				again = again || !full[n]
				full[n] = true
			}
		}
	}
	return shares, scale
}

// random returns a small problem; each of the things that make it hard is there in many of them.
func random(rng *rand.Rand, nodes, resources int) Problem {
	p := Problem{Nodes: make([]Node, nodes), Resources: resources}
	half := func() bool { return rng.IntN(2) == 0 }
	priorities, limits, weights := half(), half(), rng.IntN(3) == 0
	allowed, density := rng.IntN(4) > 0, 1+rng.IntN(4)
	for i := range p.Nodes {
		n := &p.Nodes[i]
		if priorities {
			n.Priority = rng.IntN(3)
		}
		if weights {
			n.Weight = rng.IntN(7)
		}
		n.Late = rng.IntN(5) - 1
		if limits && half() {
			n.Max = 1 + rng.IntN(resources+1)
		}
		if allowed && rng.IntN(8) > 0 {
			n.Allowed = make([]uint64, (resources+63)/64)
			for r := range resources {
				if rng.IntN(5) < density {
					n.Allowed[r/64] |= 1 << (r % 64)
				}
			}
		}
	}
	if rng.IntN(4) > 0 {
		p.Owner = make([]int32, resources)
		skew := 1 + rng.IntN(nodes)
		for r := range p.Owner {
			p.Owner[r] = int32(rng.IntN(skew+1)) - int32(rng.IntN(2))
		}
	}
	return p
}

// seeds calls check for a number of seeds in a row, or for the one in ASSIGN_SEED alone.
func seeds(t *testing.T, number int, check func(t *testing.T, rng *rand.Rand) error) {
	t.Helper()
	first, last := uint64(1), uint64(number)
	if s := os.Getenv("ASSIGN_SEED"); s != "" {
		one, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatalf("ASSIGN_SEED: %v", err)
		}
		first, last = one, one
	}
	for seed := first; seed <= last; seed++ {
		if err := check(t, rand.New(rand.NewPCG(seed, 0))); err != nil {
			t.Fatalf("%v\nreplay: ASSIGN_SEED=%d go test ./coord/assign -run '^%s$'", err, seed, t.Name())
		}
	}
}

func TestPlanIsTheBestOfAll(t *testing.T) {
	t.Parallel()
	seeds(t, 5000, func(t *testing.T, rng *rand.Rand) error {
		p := random(rng, 1+rng.IntN(4), 1+rng.IntN(6))
		plan := Plan(p)
		got, err := costOf(p, plan, counting(p))
		if err != nil {
			return fmt.Errorf("%+v: %v: %w", p, plan, err)
		}
		if want := best(p, counting(p)); got.compare(want) != 0 {
			return fmt.Errorf("%+v: %v costs %+v, the best plan %+v", p, plan, got, want)
		}
		again := p
		again.Owner = plan
		if next := Plan(again); !slices.Equal(next, plan) {
			return fmt.Errorf("%+v: %v, and planned again %v", p, plan, next)
		}
		return nil
	})
}

package assign

import (
	"math/bits"
	"slices"
)

// score says how much a node is loaded: its x-th resource has the score step*x + base. A class (the nodes of one priority) is
// balanced when no resource can go from a node to one whose next score is lower than the first one's last. Any
// step > 0 gives a convex cost, which is all that the planners need of it.
type score struct{ step, base int64 }

func (s score) of(x int32) int64 { return s.step*int64(x) + s.base }

// upTo is how many resources have a score of at most limit.
func (s score) upTo(limit int64) int64 {
	if limit < s.base {
		return 0
	}
	return (limit - s.base) / s.step
}

// fraction is the unit in which scores count parts of a resource.
const fraction = 1 << 30

// ratio is what one resource counts on a node of weight 1 in ratioScores: divided without a rest by each weight up to 16,
// still more than 1,000 for MaxWeight, and small enough for 2^31 resources.
const ratio = 720720 * 1489

// classes returns the indexes of the nodes, highest priority first and otherwise in order, and where each class ends.
func classes(nodes []Node) (order []int32, ends []int) {
	order = make([]int32, len(nodes))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(a, b int32) int {
		pa, pb := nodes[a].Priority, nodes[b].Priority
		switch {
		case pa > pb:
			return -1
		case pa < pb:
			return 1
		}
		return 0
	})
	for i := range order {
		if i+1 == len(order) || nodes[order[i]].Priority != nodes[order[i+1]].Priority {
			ends = append(ends, i+1)
		}
	}
	return order, ends
}

func sameWeight(nodes []Node, class []int32) bool {
	for _, n := range class {
		if nodes[n].weight() != nodes[class[0]].weight() {
			return false
		}
	}
	return true
}

// countScores makes a node's score its count: balance by number.
func countScores(class []int32, scores []score) {
	for _, n := range class {
		scores[n] = score{step: 1}
	}
}

// shareScores makes a node's score its distance to its fair share of total, so that each ends within one of it.
func shareScores(nodes []Node, class []int32, limits []int32, total int64, scores []score) {
	var weights uint64
	for _, n := range class {
		weights += uint64(nodes[n].weight())
	}
	byReach := slices.Clone(class) // first those whose limit is reached at the lowest share per weight
	slices.SortStableFunc(byReach, func(a, b int32) int {
		x, y := int64(limits[a])*nodes[b].weight(), int64(limits[b])*nodes[a].weight()
		switch {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return 0
	})
	left := uint64(total)
	for i, n := range byReach {
		w := uint64(nodes[n].weight())
		if uint64(limits[n])*weights > left*w {
			for _, m := range byReach[i:] {
				scores[m] = score{fraction, -part(left, uint64(nodes[m].weight()), weights)}
			}
			return
		}
		scores[n] = score{fraction, -fraction * int64(limits[n])}
		left, weights = left-uint64(limits[n]), weights-w
	}
}

// part is total*weight/weights in fractions.
func part(total, weight, weights uint64) int64 {
	hi, lo := bits.Mul64(total*fraction, weight)
	q, _ := bits.Div64(hi, lo, weights) // q <= total*fraction, for weight <= weights
	return int64(q)
}

// ratioScores makes a node's score what it holds by weight, each resource counted at its middle: good enough to place the first
// resources, before the fair shares are known.
func ratioScores(nodes []Node, class []int32, scores []score) {
	for _, n := range class {
		unit := ratio / nodes[n].weight()
		scores[n] = score{2 * unit, -unit}
	}
}

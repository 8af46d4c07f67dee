package assign

// planUniform plans where every node may take every resource: how many each node holds follows from the priorities, limits and
// weights alone, each keeps what it has up to that number, and the rest is dealt. plan holds the owners and receives the plan.
func planUniform(p Problem, plan []int32) {
	held := make([]int32, len(p.Nodes))
	for _, o := range plan {
		if o >= 0 {
			held[o]++
		}
	}
	quota := quotas(p, held)
	free := keep(plan, quota, held)
	deal(plan, quota, held, free)
}

// quotas returns how many resources each node should hold: balanced, and among the balanced ways closest to what they hold.
func quotas(p Problem, held []int32) []int32 {
	limits := make([]int32, len(p.Nodes))
	for i := range limits {
		limits[i] = p.Nodes[i].limit(p.Resources)
	}
	quota := make([]int32, len(p.Nodes))
	scores := make([]score, len(p.Nodes))
	order, ends := classes(p.Nodes)
	left, start := int64(p.Resources), 0
	for _, end := range ends {
		class := order[start:end]
		start = end
		var capacity int64
		for _, n := range class {
			capacity += int64(limits[n])
		}
		total := min(left, capacity)
		left -= total
		if sameWeight(p.Nodes, class) {
			countScores(class, scores)
		} else {
			shareScores(p.Nodes, class, limits, total, scores)
		}
		fill(p.Nodes, class, scores, limits, total, held, quota)
	}
	return quota
}

// fill divides total among the nodes of a class: all that is below the highest score that fits, and of what has exactly that score
// first to nodes that would otherwise have to give one up, before all others to those that would give up one that did not come late.
func fill(nodes []Node, class []int32, scores []score, limits []int32, total int64, held, quota []int32) {
	count := func(limit int64) (sum int64) {
		for _, n := range class {
			sum += min(scores[n].upTo(limit), int64(limits[n]))
		}
		return sum
	}
	low, high := int64(0), int64(0) // the greatest limit that takes no more than total lies in [low, high)
	for _, n := range class {
		low = min(low, scores[n].base)
		high = max(high, scores[n].of(limits[n])+1)
	}
	for high-low > 1 {
		if mid := low + (high-low)/2; count(mid) <= total {
			low = mid
		} else {
			high = mid
		}
	}
	for _, n := range class {
		quota[n] = int32(min(scores[n].upTo(low), int64(limits[n])))
		total -= int64(quota[n])
	}
	for _, rank := range []int{0, 1, 2} {
		for _, n := range class {
			if next := quota[n] + 1; total > 0 && next <= limits[n] && scores[n].of(next) == low+1 && nodes[n].claim(held[n], next) == rank {
				quota[n]++
				total--
			}
		}
	}
}

// claim ranks nodes for their next resource: 0 for one that holds so many without what came late, 1 for one that holds so many, 2 for others.
func (n *Node) claim(held, next int32) int {
	switch {
	case held < next:
		return 2
	case int(held)-max(n.Late, 0) < int(next):
		return 1
	}
	return 0
}

// keep leaves each node its first resources up to its quota, takes the others away, sets held to what is left, and returns
// how many resources have no node now.
func keep(plan, quota, held []int32) (free int) {
	clear(held)
	for r, o := range plan {
		switch {
		case o >= 0 && held[o] < quota[o]:
			held[o]++
		default:
			plan[r] = Nobody
			free++
		}
	}
	return free
}

// deal gives the free resources to the nodes below their quota, each node's evenly spread over the order of the
// resources: like cards where all lack the same number.
func deal(plan, quota, held []int32, free int) {
	lack := 0
	for n := range quota {
		lack += int(quota[n] - held[n])
	}
	if lack == 0 {
		return
	}
	// The i-th of the d resources that a node lacks has its place at (2i+1)/(2d) of the way. Sorted by counting.
	starts := make([]int32, lack+1)
	turns := func(do func(place int, n int32)) {
		for n := range quota {
			d := int(quota[n] - held[n])
			for i := range d {
				do((2*i+1)*lack/(2*d), int32(n))
			}
		}
	}
	turns(func(place int, _ int32) { starts[place+1]++ })
	for i := range lack {
		starts[i+1] += starts[i]
	}
	hand := make([]int32, lack)
	turns(func(place int, n int32) {
		hand[starts[place]] = n
		starts[place]++
	})
	next := 0
	for r := range plan {
		if next < lack && plan[r] < 0 {
			plan[r] = hand[next]
			next++
		}
	}
}

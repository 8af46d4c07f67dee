package assign

// Active chooses the n nodes that may hold anything; all of them where n is less than 1. Those that hold something now (holds,
// by node) stay before those that do not, then a higher priority counts, then the order of the nodes. With failBack a higher
// priority counts first, also against a node that holds something.
func Active(nodes []Node, holds []int32, n int, failBack bool) []bool {
	active := make([]bool, len(nodes))
	if n < 1 {
		n = len(nodes)
	}
	before := func(a, b int) bool {
		pa, pb := nodes[a].Priority, nodes[b].Priority
		ha, hb := a < len(holds) && holds[a] > 0, b < len(holds) && holds[b] > 0
		switch {
		case failBack && pa != pb:
			return pa > pb
		case ha != hb:
			return ha
		case pa != pb:
			return pa > pb
		}
		return a < b
	}
	for range min(n, len(nodes)) {
		best := -1
		for i := range nodes {
			if !active[i] && (best < 0 || before(i, best)) {
				best = i
			}
		}
		active[best] = true
	}
	return active
}

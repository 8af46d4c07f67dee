package assign

// Limit returns how far a plan may be carried out now: of the moves of resources that a node of the problem owns, at most so
// many take place at a time, and so many from one node; less than 1: no limit. busy names, for each resource whose
// hand-over is under way, the node that still has to give it back, or Nobody; nil: none is. These count as well, unless the problem says that
// this node owns it: it need not give it back then.
//
// What nobody owns, or its owner may not keep, is placed as soon as its new node is below its Max. The rest goes in the order of the
// resources, each under the same condition; where nodes at their Max only have to exchange, one ring of them moves
// at once, whatever the limits. Applied again to what it returned, once that has been carried out, it comes to the target.
func Limit(p Problem, target []int32, most, perNode int, busy []int32) []int32 {
	l := limiter{p: &p, most: most, perNode: perNode, from: make([]int, len(p.Nodes)), counts: make([]int32, len(p.Nodes))}
	now := make([]int32, len(target))
	for r := range target {
		now[r] = p.owner(r)
		if o := now[r]; o != Nobody && (target[r] == Nobody || !p.Nodes[o].may(r)) {
			now[r] = Nobody
		}
		if now[r] != Nobody {
			l.counts[now[r]]++
		}
		if r < len(busy) && busy[r] >= 0 && int(busy[r]) < len(p.Nodes) && busy[r] != now[r] {
			l.total++
			l.from[busy[r]]++
		}
	}
	// A node at its Max takes what it is to get only after it gave up what it is to give: until nothing moves any more.
	for again := true; again; {
		again = false
		for r := range target {
			if now[r] != target[r] && l.move(now[r], target[r]) {
				now[r] = target[r]
				again = true
			}
		}
	}
	if l.total == 0 {
		l.ring(now, target)
	}
	return now
}

// ring carries out moves that lead from one full node to the next and back to the first: nothing else can begin. From any node
// that is to get something a move leads on, since it is full, so a walk comes to a node again.
func (l *limiter) ring(now, target []int32) {
	next := make([]int, len(l.p.Nodes)) // the first move from each node, -1: none
	for i := range next {
		next[i] = -1
	}
	at := Nobody
	for r := range target {
		if now[r] != target[r] && now[r] != Nobody && next[now[r]] < 0 {
			next[now[r]] = r
			if at == Nobody {
				at = now[r]
			}
		}
	}
	if at == Nobody {
		return
	}
	for range l.p.Nodes { // after so many steps the walk is on the ring
		if next[at] < 0 {
			return
		}
		at = target[next[at]]
	}
	for r := next[at]; r >= 0 && now[r] != target[r]; r = next[at] {
		at = target[r]
		now[r] = at
	}
}

type limiter struct {
	p             *Problem
	most, perNode int
	total         int
	from          []int
	counts        []int32
}

// move counts a move if it is within the limits.
func (l *limiter) move(from, to int32) bool {
	switch full := l.counts[to] >= l.p.Nodes[to].limit(l.p.Resources); {
	case full:
		return false
	case from == Nobody:
		l.counts[to]++
		return true
	}
	if l.most > 0 && l.total >= l.most || l.perNode > 0 && l.from[from] >= l.perNode {
		return false
	}
	l.total++
	l.from[from]++
	l.counts[from]--
	l.counts[to]++
	return true
}

// may tells whether the node may take a resource.
func (n *Node) may(r int) bool { return n.Allowed == nil || has(n.Allowed, r) }

// has tells whether a set has an index.
func has(set []uint64, r int) bool { return r/64 < len(set) && set[r/64]>>(r%64)&1 == 1 }

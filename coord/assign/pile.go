package assign

// pile holds the nodes of one priority and weight, so that the one with the least load is found at once: a heap.
type pile struct {
	priority int
	weight   int64
	nodes    []int32
	at       []int32 // stack of places to look at: scratch of least
}

// pileUp adds a node to its pile.
func (l *loader) pileUp(piles []pile, n int32) []pile {
	priority, weight := l.p.Nodes[n].Priority, l.weight(n)
	i := 0
	for i < len(piles) && (piles[i].priority != priority || piles[i].weight != weight) {
		i++
	}
	if i == len(piles) {
		piles = append(piles, pile{priority: priority, weight: weight})
	}
	p := &piles[i]
	p.nodes = append(p.nodes, n)
	for at := len(p.nodes) - 1; at > 0 && l.less(p.nodes[at], p.nodes[(at-1)/2], 0); at = (at - 1) / 2 {
		p.nodes[at], p.nodes[(at-1)/2] = p.nodes[(at-1)/2], p.nodes[at]
	}
	return piles
}

// least is the node with the least load that r fits at; Nobody: at none. What is below one that it fits at has
// no less load, so it is not looked at.
func (p *pile) least(l *loader, r int32) int32 {
	best := Nobody
	for p.at = append(p.at[:0], 0); len(p.at) > 0; {
		at := p.at[len(p.at)-1]
		p.at = p.at[:len(p.at)-1]
		if int(at) >= len(p.nodes) {
			continue
		}
		switch n := p.nodes[at]; {
		case best != Nobody && !l.less(n, best, 0):
		case l.fits(r, n):
			best = n
		default:
			p.at = append(p.at, 2*at+2, 2*at+1)
		}
	}
	return best
}

// sift puts a node that got more where it belongs.
func (p *pile) sift(l *loader, n int32) {
	at := 0
	for p.nodes[at] != n {
		at++
	}
	for {
		least := at
		for child := 2*at + 1; child <= 2*at+2 && child < len(p.nodes); child++ {
			if l.less(p.nodes[child], p.nodes[least], 0) {
				least = child
			}
		}
		if least == at {
			return
		}
		p.nodes[at], p.nodes[least] = p.nodes[least], p.nodes[at]
		at = least
	}
}

package assign

import (
	"cmp"
	"slices"
)

// balance improves the nodes of one priority until nothing is worth a move. Each step lowers the greater of two loads by more
// than the band, so it ends; the bound is for inputs that would take very many.
func (l *loader) balance(class []int32) {
	var sum, weights int64
	for _, n := range class {
		sum += l.load[n]
		weights += l.weight(n)
	}
	l.band = sum * relScale / weights / 10
	nodes := slices.Clone(class)
	steps := 4 * len(l.plan)
	for again := true; again; {
		again = false
		slices.SortFunc(nodes, func(a, b int32) int { return cmp.Or(cmp.Compare(l.rel[b], l.rel[a]), cmp.Compare(a, b)) })
		for i, from := range nodes {
			for j := len(nodes) - 1; j > i && l.rel[from]-l.rel[nodes[j]] > l.band; {
				if !l.improve(from, nodes[j]) {
					j--
					continue
				}
				again = true
				if steps--; steps == 0 {
					return
				}
			}
		}
	}
}

// offer is a move, or an exchange, between two nodes.
type offer struct {
	give, back int32 // back is Nobody for a move
	shift      int64 // the load that it moves
	top        int64 // the greater of both relative loads afterwards
}

// improve lowers the load of one node by what another one takes, if that is worth it: by a move, or else by an exchange.
func (l *loader) improve(from, to int32) bool {
	best := offer{give: Nobody, top: l.rel[from] - l.band}
	if l.counts[to] < l.limits[to] {
		l.offers(from, to, Nobody, &best)
	}
	if best.give == Nobody {
		for _, back := range l.held[to] {
			if l.p.Nodes[from].may(int(back)) {
				l.offers(from, to, back, &best)
			}
		}
	}
	if best.give == Nobody {
		return false
	}
	l.take(best.give)
	if best.back != Nobody {
		l.take(best.back)
		l.put(best.back, from)
	}
	l.put(best.give, to)
	return true
}

// offers looks for what from should give, and get back for it, so that the load that moves is as near as can be to what would make both
// equal. It looks at the nearest resources on either side, and a bounded number further where to may not take those.
func (l *loader) offers(from, to, back int32, best *offer) {
	var less int64
	if back != Nobody {
		less = l.p.load(int(back))
	}
	equal := (l.load[from]*l.weight(to) - l.load[to]*l.weight(from)) / (l.weight(from) + l.weight(to))
	held := l.held[from]
	at, _ := slices.BinarySearchFunc(held, equal+less, func(r int32, load int64) int { return cmp.Compare(load, l.p.load(int(r))) })
	const most = 64
	for i := at; i < min(at+most, len(held)) && !l.try(from, to, held[i], back, less, best); i++ {
	}
	for i := at - 1; i >= max(at-most, 0) && !l.try(from, to, held[i], back, less, best); i-- {
	}
}

// try takes an offer if it is better than the best one, and of equal ones the lighter: what is heavy stays if it can. It reports whether
// the resource may move at all, so that those farther on are worse.
func (l *loader) try(from, to, give, back int32, less int64, best *offer) bool {
	shift := l.p.load(int(give)) - less
	if shift <= 0 {
		return true
	}
	if !l.p.Nodes[to].may(int(give)) {
		return false
	}
	top := max((l.load[from]-shift)*relScale/l.weight(from), (l.load[to]+shift)*relScale/l.weight(to))
	if top < best.top || top == best.top && best.give != Nobody && shift < best.shift {
		*best = offer{give, back, shift, top}
	}
	return true
}

package assign

import (
	"cmp"
	"slices"
)

// relScale is what a load per weight is counted in, so that no floating point decides anything.
const relScale = 1 << 10

// loader balances loads within each priority: by moves and exchanges that lower the greater of two relative loads, from where
// the resources are.
type loader struct {
	p      *Problem
	plan   []int32
	class  []int   // priority that each resource belongs to, as the unit plan found
	load   []int64 // by node
	counts []int32
	held   [][]int32 // resources by node
	band   int64     // of the class at hand
}

// planLoad plans by load. Which priority a resource goes to, and that all that can be placed is, comes from the plan by
// count; where each stands within its priority is decided by load.
func planLoad(p Problem, plan []int32) {
	unit := p
	unit.Load = nil
	byCount := Plan(unit)
	l := &loader{p: &p, plan: plan}
	l.class = make([]int, len(plan))
	for r, o := range byCount {
		if o != Nobody {
			l.class[r] = p.Nodes[o].Priority
		}
	}
	if !l.start(byCount, true) {
		l.start(byCount, false)
	}
	for _, class := range p.priorities() {
		l.balance(class)
	}
}

// start keeps resources where they are if that fits, and places the rest, the heaviest first. It fails when that leaves
// something without a place; without keeping, everything starts from the plan by count, which has a place for all.
func (l *loader) start(byCount []int32, keep bool) bool {
	n := len(l.p.Nodes)
	l.load, l.counts, l.held = make([]int64, n), make([]int32, n), make([][]int32, n)
	var rest []int32
	for r, by := range byCount {
		o := by
		if keep {
			o = l.p.owner(r)
			if by == Nobody || o == Nobody || !l.fits(r, o) {
				o = Nobody
			}
		}
		l.plan[r] = Nobody
		switch {
		case by == Nobody:
		case o == Nobody:
			rest = append(rest, int32(r))
		default:
			l.put(int32(r), o)
		}
	}
	slices.SortStableFunc(rest, func(a, b int32) int { return cmp.Compare(l.p.load(int(b)), l.p.load(int(a))) })
	for _, r := range rest {
		best := Nobody
		for i := range l.p.Nodes {
			if o := int32(i); l.fits(int(r), o) && (best == Nobody || l.relWith(o, r) < l.relWith(best, r)) {
				best = o
			}
		}
		if best == Nobody {
			return false
		}
		l.put(r, best)
	}
	return true
}

// fits tells whether a node of the resource's priority may take it, below its Max.
func (l *loader) fits(r int, o int32) bool {
	n := &l.p.Nodes[o]
	return n.Priority == l.class[r] && n.may(r) && l.counts[o] < n.limit(l.p.Resources)
}

func (l *loader) put(r, o int32) {
	l.plan[r] = o
	l.load[o] += l.p.load(int(r))
	l.counts[o]++
	l.held[o] = append(l.held[o], r)
}

func (l *loader) take(r int32) {
	o := l.plan[r]
	l.plan[r] = Nobody
	l.load[o] -= l.p.load(int(r))
	l.counts[o]--
	i := slices.Index(l.held[o], r)
	l.held[o] = slices.Delete(l.held[o], i, i+1)
}

// rel is a node's load for its weight.
func (l *loader) rel(o int32, load int64) int64 {
	return load * relScale / l.p.Nodes[o].weight()
}

func (l *loader) relWith(o, r int32) int64 { return l.rel(o, l.load[o]+l.p.load(int(r))) }

// balance improves the nodes of one priority until nothing is worth a move. Each step lowers the greatest of two loads by more
// than the band, so it ends; the bound is for inputs that would take very many.
func (l *loader) balance(class int) {
	var nodes []int32
	var sum, weights int64
	for i := range l.p.Nodes {
		if l.p.Nodes[i].Priority == class {
			nodes = append(nodes, int32(i))
			sum += l.load[i]
			weights += l.p.Nodes[i].weight()
		}
	}
	if len(nodes) < 2 || sum == 0 {
		return
	}
	l.band = sum * relScale / weights / 10
	for range 4 * len(l.plan) {
		slices.SortStableFunc(nodes, func(a, b int32) int { return cmp.Compare(l.rel(b, l.load[b]), l.rel(a, l.load[a])) })
		if !l.step(nodes) {
			return
		}
	}
}

// step carries out the best move or exchange from the fullest node that has one worth it.
func (l *loader) step(nodes []int32) bool {
	for i, from := range nodes {
		for j := len(nodes) - 1; j > i; j-- {
			if l.rel(from, l.load[from])-l.rel(nodes[j], l.load[nodes[j]]) <= l.band {
				break // those that follow are fuller still
			}
			if l.improve(from, nodes[j]) {
				return true
			}
		}
	}
	return false
}

// improve lowers the load of one node by what another one takes, if that is worth it.
func (l *loader) improve(from, to int32) bool {
	best := l.rel(from, l.load[from]) - l.band // the greater of both loads afterwards is to be below
	give, back, least := Nobody, Nobody, int64(0)
	try := func(r, s int32, shift int64) {
		top := max(l.rel(from, l.load[from]-shift), l.rel(to, l.load[to]+shift))
		if shift > 0 && (top < best || top == best && give != Nobody && shift < least) { // what is heavy stays if it can
			best, give, back, least = top, r, s, shift
		}
	}
	for _, r := range l.held[from] {
		if !l.p.Nodes[to].may(int(r)) {
			continue
		}
		if l.fits(int(r), to) {
			try(r, Nobody, l.p.load(int(r)))
		}
	}
	if give == Nobody {
		l.exchanges(from, to, try)
	}
	if give == Nobody {
		return false
	}
	l.take(give)
	if back != Nobody {
		l.take(back)
		l.put(back, from)
	}
	l.put(give, to)
	return true
}

// exchanges tries pairs, of the heaviest there with the lightest here, of which a bounded number is looked at.
func (l *loader) exchanges(from, to int32, try func(r, s int32, shift int64)) {
	const most = 64
	heavy, light := l.byLoad(from), l.byLoad(to)
	slices.Reverse(heavy)
	for _, r := range heavy[:min(most, len(heavy))] {
		for _, s := range light[:min(most, len(light))] {
			if l.p.Nodes[to].may(int(r)) && l.p.Nodes[from].may(int(s)) {
				try(r, s, l.p.load(int(r))-l.p.load(int(s)))
			}
		}
	}
}

func (l *loader) byLoad(o int32) []int32 {
	return slices.SortedStableFunc(slices.Values(l.held[o]), func(a, b int32) int { return cmp.Compare(l.p.load(int(a)), l.p.load(int(b))) })
}

// load is the weight of a resource.
func (p *Problem) load(r int) int64 {
	if r >= len(p.Load) || p.Load[r] < 1 {
		return 1
	}
	return int64(min(p.Load[r], MaxWeight))
}

// byLoad tells whether loads differ.
func (p *Problem) byLoad() bool {
	for r := range p.Resources {
		if p.load(r) != p.load(0) {
			return true
		}
	}
	return false
}

// priorities are those of the nodes, the highest first.
func (p *Problem) priorities() []int {
	var ps []int
	for i := range p.Nodes {
		ps = append(ps, p.Nodes[i].Priority)
	}
	slices.Sort(ps)
	ps = slices.Compact(ps)
	slices.Reverse(ps)
	return ps
}

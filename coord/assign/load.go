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
	class  []int   // priority that each resource belongs to
	load   []int64 // by node
	rel    []int64 // the same for its weight
	counts []int32
	limits []int32
	held   [][]int32 // resources by node, the heaviest first
	band   int64     // of the class at hand
}

// planLoad plans by load. Which priority a resource goes to, and that all that can be placed is, is decided by count, with as few
// moves as that takes; where each stands within its priority is decided by load. plan holds the owners and receives the plan.
func planLoad(p Problem, plan []int32) {
	l := &loader{p: &p, plan: plan, class: make([]int, len(plan)), limits: make([]int32, len(p.Nodes))}
	for i := range p.Nodes {
		l.limits[i] = p.Nodes[i].limit(p.Resources)
	}
	placed := p.place(plan)
	for r, o := range placed {
		if o != Nobody {
			l.class[r] = p.Nodes[o].Priority
		}
	}
	if !l.start(placed, true) {
		l.start(placed, false)
	}
	for again := true; again; { // what is exchanged for a preference may make way for another move
		order, ends := classes(p.Nodes)
		start := 0
		for _, end := range ends {
			l.balance(order[start:end])
			start = end
		}
		if again = prefer(&p, plan); again {
			l.hold(plan)
		}
	}
}

// place finds a place for all that can have one, in the highest priorities that can be had. Where all have that already, none is
// moved to another priority.
func (p *Problem) place(owners []int32) []int32 {
	placed := slices.Clone(owners)
	if _, ends := classes(p.Nodes); len(ends) == 1 && p.uniform() {
		planUniform(*p, placed)
		return placed
	}
	f := newFlow(*p, placed)
	f.start()
	f.deal()
	f.raise()
	for r, o := range f.at {
		if o == f.none {
			f.at[r] = Nobody
		}
	}
	return f.at
}

// start keeps resources where they are if that fits, and places the rest, the heaviest first. It fails when that leaves
// something without a place; without keeping, everything starts from the places that were found by count.
func (l *loader) start(placed []int32, keep bool) bool {
	copy(l.plan, placed)
	l.counts = make([]int32, len(l.p.Nodes))
	var rest []int32
	for r, o := range placed {
		if !keep || o == Nobody {
			continue
		}
		if l.plan[r] = l.p.owner(r); l.plan[r] == Nobody || !l.fits(int32(r), l.plan[r]) {
			l.plan[r] = Nobody
			rest = append(rest, int32(r))
		} else {
			l.counts[l.plan[r]]++
		}
	}
	l.hold(l.plan)
	slices.SortFunc(rest, l.heavier)
	return l.spread(rest)
}

// hold enters all resources where a plan has them.
func (l *loader) hold(plan []int32) {
	n := len(l.p.Nodes)
	l.load, l.rel, l.counts, l.held = make([]int64, n), make([]int64, n), make([]int32, n), make([][]int32, n)
	for r, o := range plan {
		if o != Nobody {
			l.held[o] = append(l.held[o], int32(r))
			l.count(int32(r), o, 1)
		}
	}
	for _, held := range l.held {
		slices.SortFunc(held, l.heavier)
	}
}

// spread places resources, each where the load is least with it.
func (l *loader) spread(rest []int32) bool {
	var piles []pile
	for i := range l.p.Nodes {
		piles = l.pileUp(piles, int32(i))
	}
	for _, r := range rest {
		best, from := Nobody, 0
		for i := range piles {
			if pile := &piles[i]; pile.priority == l.class[r] {
				if o := pile.least(l, r); o != Nobody && (best == Nobody || l.less(o, best, l.p.load(int(r)))) {
					best, from = o, i
				}
			}
		}
		if best == Nobody {
			return false
		}
		l.put(r, best)
		piles[from].sift(l, best)
	}
	return true
}

// less says whether a would have a lower load than b with so much more; of equal ones the first.
func (l *loader) less(a, b int32, more int64) bool {
	x, y := (l.load[a]+more)*l.weight(b), (l.load[b]+more)*l.weight(a)
	return x < y || x == y && a < b
}

// heavier orders resources, the heaviest first.
func (l *loader) heavier(a, b int32) int {
	return cmp.Or(cmp.Compare(l.p.load(int(b)), l.p.load(int(a))), cmp.Compare(a, b))
}

// fits tells whether a node of the resource's priority may take it, below its Max.
func (l *loader) fits(r, o int32) bool {
	n := &l.p.Nodes[o]
	return n.Priority == l.class[r] && l.counts[o] < l.limits[o] && n.may(int(r))
}

func (l *loader) put(r, o int32) {
	l.plan[r] = o
	i, _ := slices.BinarySearchFunc(l.held[o], r, l.heavier)
	l.held[o] = slices.Insert(l.held[o], i, r)
	l.count(r, o, 1)
}

func (l *loader) take(r int32) {
	o := l.plan[r]
	l.plan[r] = Nobody
	i, _ := slices.BinarySearchFunc(l.held[o], r, l.heavier)
	l.held[o] = slices.Delete(l.held[o], i, i+1)
	l.count(r, o, -1)
}

// count enters a resource at a node, or takes it out again.
func (l *loader) count(r, o, by int32) {
	l.load[o] += int64(by) * l.p.load(int(r))
	l.counts[o] += by
	l.rel[o] = l.load[o] * relScale / l.weight(o)
}

func (l *loader) weight(o int32) int64 { return l.p.Nodes[o].weight() }

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

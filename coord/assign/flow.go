package assign

import "math/bits"

// planFlow plans where some nodes may not take some resources. It starts from the present owners, deals what has none, and
// then moves resources along chains: first to higher priorities, then to less loaded nodes, each time along a chain that costs the
// fewest moves, and at last along chains that change no balance but save moves. plan holds the owners and receives the plan.
func planFlow(p Problem, plan []int32) {
	f := newFlow(p, plan)
	f.start()
	f.deal()
	f.raise()
	for c := range f.ends {
		if !sameWeight(f.nodes, f.members(c)) {
			f.divide(c)
		}
		f.balance(f.members(c), f.class)
	}
	for c := range f.ends {
		f.save(c)
	}
	for r := range plan {
		plan[r] = f.at[r]
		if plan[r] == f.none {
			plan[r] = Nobody
		}
	}
}

// The kinds of resources at a node, by what it costs to move them on.
const (
	home  = iota // at its present owner: one move more
	loose        // has no present owner that may take it: nothing
	stray        // away from its present owner: nothing, and one move less if it goes back
	kinds
)

// flow is a plan in the making: a min-cost flow from resources to nodes, kept so that no cycle of moves would be cheaper.
// Index none, one behind the nodes, stands for no node at all.
type flow struct {
	nodes  []Node
	limits []int32
	scores []score
	order  []int32 // of the nodes, by class
	ends   []int   // of the classes in order
	class  []int32 // of each node; that of none is the last
	none   int32

	words   int      // of a set of nodes
	allowed []uint64 // for each resource the nodes that may take it
	reach   []uint64 // for each kind at each node, and none, the nodes that one of its resources may go to
	stale   []bool   // whether that has to be found again

	owner  []int32 // of each resource: present owner if it may take it, else Nobody
	at     []int32 // of each resource: the node that holds it in this plan, or none
	count  []int32 // of each node, and none: how many it holds in this plan
	strays int     // how many resources are away from their owner
	heads  []int32 // first resource of each kind at each node, or -1: lists without an order that means anything
	next   []int32
	prev   []int32

	search search
	chain  []int32 // resources to move, the last one first: scratch of follow
}

func newFlow(p Problem, owners []int32) *flow {
	n, resources := len(p.Nodes), len(owners)
	f := &flow{
		nodes: p.Nodes, none: int32(n), words: n/64 + 1,
		limits: make([]int32, n), scores: make([]score, n), class: make([]int32, n+1),
		owner: owners, at: make([]int32, resources), count: make([]int32, n+1),
		heads: make([]int32, kinds*(n+1)), next: make([]int32, resources), prev: make([]int32, resources),
	}
	for i := range p.Nodes {
		f.limits[i] = p.Nodes[i].limit(resources)
	}
	f.order, f.ends = classes(p.Nodes)
	for c := range f.ends {
		class := f.members(c)
		for _, i := range class {
			f.class[i] = int32(c)
		}
		if sameWeight(p.Nodes, class) {
			countScores(class, f.scores)
		} else {
			ratioScores(p.Nodes, class, f.scores)
		}
	}
	f.class[n] = int32(len(f.ends))
	for i := range f.heads {
		f.heads[i] = -1
	}
	f.allowed = takers(p.Nodes, resources, f.words)
	f.reach, f.stale = make([]uint64, kinds*(n+1)*f.words), make([]bool, kinds*(n+1))
	f.search.init(f)
	f.chain = make([]int32, 0, n+1)
	return f
}

// members are the nodes of class c.
func (f *flow) members(c int) []int32 {
	if c == 0 {
		return f.order[:f.ends[0]]
	}
	return f.order[f.ends[c-1]:f.ends[c]]
}

// mayTake is the set of nodes that may take r.
func (f *flow) mayTake(r int32) []uint64 {
	return f.allowed[int(r)*f.words : (int(r)+1)*f.words]
}

// start puts each resource to its present owner, as long as that may take it and is below its limit, and the others to none: so far
// no plan with the same counts has fewer moves.
func (f *flow) start() {
	for r := range f.at {
		o := f.owner[r]
		if o >= 0 && f.mayTake(int32(r))[o/64]>>(o%64)&1 == 0 {
			o = Nobody
			f.owner[r] = Nobody
		}
		if o < 0 || f.count[o] == f.limits[o] {
			o = f.none
		}
		f.put(int32(r), o)
	}
}

// spare says whether n may take one more.
func (f *flow) spare(n int32) bool { return n != f.none && f.count[n] < f.limits[n] }

// last is the score of the last resource that n holds, following that of one more.
func (f *flow) last(n int32) int64      { return f.scores[n].of(f.count[n]) }
func (f *flow) following(n int32) int64 { return f.scores[n].of(f.count[n] + 1) }

// put enters r, which is nowhere, at n.
func (f *flow) put(r, n int32) {
	f.at[r] = n
	f.count[n]++
	kind := f.kind(r)
	if kind == stray {
		f.strays++
	}
	list := int(n)*kinds + kind
	f.prev[r], f.next[r] = -1, f.heads[list]
	if f.heads[list] >= 0 {
		f.prev[f.heads[list]] = r
	}
	f.heads[list] = r
	for w, b := range f.mayTake(r) {
		f.reach[list*f.words+w] |= b
	}
}

// move takes r from where it is to n.
func (f *flow) move(r, n int32) {
	from, kind := f.at[r], f.kind(r)
	if kind == stray {
		f.strays--
	}
	f.count[from]--
	list := int(from)*kinds + kind
	if f.prev[r] >= 0 {
		f.next[f.prev[r]] = f.next[r]
	} else {
		f.heads[list] = f.next[r]
	}
	if f.next[r] >= 0 {
		f.prev[f.next[r]] = f.prev[r]
	}
	f.stale[list] = true
	f.put(r, n)
}

// kind is that of r where it is now.
func (f *flow) kind(r int32) int {
	switch f.owner[r] {
	case Nobody:
		return loose
	case f.at[r]:
		return home
	}
	return stray
}

// targets is the set of nodes that the resources of a kind at n may go to.
func (f *flow) targets(n int32, kind int) []uint64 {
	list := int(n)*kinds + kind
	reach := f.reach[list*f.words:][:f.words]
	if !f.stale[list] {
		return reach
	}
	f.stale[list] = false
	missing := 0 // what is there is right or too much, so it is right again when all of it was found
	for w, b := range reach {
		missing += bits.OnesCount64(b)
		reach[w] = 0
	}
	for r := f.heads[list]; r >= 0 && missing > 0; r = f.next[r] {
		for w, b := range f.mayTake(r) {
			missing -= bits.OnesCount64(b &^ reach[w])
			reach[w] |= b
		}
	}
	return reach
}

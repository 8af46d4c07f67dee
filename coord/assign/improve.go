package assign

import "slices"

// goal says between which nodes a round moves resources.
type goal struct {
	sources []int32            // where chains may begin,
	source  func(n int32) bool // as long as this holds for them
	target  func(n int32) bool // where they may end, if they have room
	better  func(a, b int32) bool
}

// round looks for the cheapest chains and follows them, each time to the best target and to the nearest of equal ones, for as
// long as it knows a chain that is still the cheapest between its ends. It reports whether there was one at all; if not, the
// nodes that the search reached are all that the sources can reach.
func (f *flow) round(g goal) (found bool) {
	f.begin()
	for _, n := range g.sources {
		if f.gives(n, g) && !f.isBlocked(n) {
			f.from(n)
		}
	}
	f.run()
	cursor := 0
	for t := f.best(g); t != f.none && f.follow(t, g, &cursor); t = f.best(g) {
		found = true
	}
	return found
}

// gives says whether a chain may begin at n.
func (f *flow) gives(n int32, g goal) bool { return f.count[n] > 0 && g.source(n) }

// best is the target to serve next; none: no target is left.
func (f *flow) best(g goal) int32 {
	best, dist := f.none, f.search.dist
	for n := range f.none {
		if dist[n] == far || !f.spare(n) || !g.target(n) {
			continue
		}
		if best == f.none || g.better(n, best) || dist[n] < dist[best] && !g.better(best, n) {
			best = n
		}
	}
	return best
}

// raise moves resources to higher priorities until no chain leads to one. First those that have no node at all; where none can
// be placed any more, all that they could go to is at its limit for good, and is left out from then on.
func (f *flow) raise() {
	g := goal{
		sources: []int32{f.none},
		source:  func(int32) bool { return true },
		target:  func(int32) bool { return true },
		better:  f.better,
	}
	for f.count[f.none] > 0 {
		if !f.round(g) {
			f.block()
			break
		}
	}
	before := slices.Clone(f.search.blocked)
	for c := len(f.ends) - 1; c > 0; c-- {
		g.sources = f.members(c)
		g.target = func(n int32) bool { return int(f.class[n]) < c }
		for f.round(g) {
		}
		f.block() // the chains of higher classes find no room there either
	}
	copy(f.search.blocked, before)
}

// balance moves resources from the most loaded of some nodes of a class to the least loaded ones that chains lead to, until no chain leads
// to one that is less loaded. All of these nodes, and no others, have the same number in set. What the most loaded can reach is then balanced for good: whatever comes after them is
// loaded no more than they are, so nothing will be moved there, and it is left out.
func (f *flow) balance(nodes, set []int32) {
	before := slices.Clone(f.search.blocked)
	var limit int64
	g := goal{
		sources: nodes,
		source:  func(n int32) bool { return f.last(n) == limit },
		target:  func(n int32) bool { return set[n] == set[nodes[0]] && f.following(n) < limit },
		better:  f.better,
	}
	for {
		most := f.none
		for _, n := range nodes {
			if f.count[n] > 0 && !f.isBlocked(n) && (most == f.none || f.last(n) > f.last(most)) {
				most = n
			}
		}
		if most == f.none {
			break
		}
		if limit = f.last(most); !f.round(g) {
			f.block()
		}
	}
	copy(f.search.blocked, before)
}

// save follows the chains that save moves and leave class c as balanced as it is: those from nodes whose last resource has
// some score to nodes where the following one has the same.
func (f *flow) save(c int) {
	var score int64
	dist := f.search.dist
	g := goal{
		sources: f.members(c),
		source:  func(n int32) bool { return f.last(n) == score },
		target:  func(n int32) bool { return int(f.class[n]) == c && dist[n] < 0 && f.following(n) == score },
		better:  func(a, b int32) bool { return dist[a] < dist[b] },
	}
	var scores []int64
	for again := f.strays > 0; again; {
		again, scores = false, scores[:0]
		for _, n := range f.members(c) {
			scores = append(scores, f.last(n))
		}
		slices.Sort(scores)
		for _, score = range slices.Compact(scores) {
			for f.round(g) {
				again = true
			}
		}
	}
}

package assign

import "slices"

// raise moves resources to higher priorities until no chain leads to one. First those that have no node at all; where none can
// be placed any more, all that they could go to is at its limit for good, and is left out from then on.
func (f *flow) raise() {
	for f.count[f.none] > 0 {
		f.begin()
		f.from(f.none)
		f.run()
		if !f.improve(func(n int32) bool { return true }, f.better) {
			f.block()
			break
		}
	}
	for c := len(f.ends) - 1; c > 0; c-- {
		for {
			f.begin()
			for _, n := range f.members(c) {
				if f.count[n] > 0 && !f.isBlocked(n) {
					f.from(n)
				}
			}
			f.run()
			if !f.improve(func(n int32) bool { return int(f.class[n]) < c }, f.better) {
				break
			}
		}
	}
}

// improve follows the chain to the best node with room that target allows, the cheapest among equals; false: there is none.
func (f *flow) improve(target func(n int32) bool, better func(a, b int32) bool) bool {
	best, dist := f.none, f.search.dist
	for n := range f.none {
		if dist[n] == far || !f.spare(n) || !target(n) {
			continue
		}
		if best == f.none || better(n, best) || !better(best, n) && dist[n] < dist[best] {
			best = n
		}
	}
	if best == f.none {
		return false
	}
	f.follow(best)
	return true
}

// block leaves all that the last search reached out of the next ones.
func (f *flow) block() {
	for n, d := range f.search.dist {
		if d != far {
			f.search.blocked[n/64] |= 1 << (n % 64)
		}
	}
}

func (f *flow) isBlocked(n int32) bool { return f.search.blocked[n/64]>>(n%64)&1 != 0 }

// balance moves resources from the most loaded node of class c to the least loaded one that a chain leads to, until no chain
// leads to one that is less loaded. What a fully loaded node can reach is then balanced for good: whatever comes after it
// is loaded no more than it, so nothing will be moved there, and it is left out.
func (f *flow) balance(c int) {
	before := append([]uint64(nil), f.search.blocked...)
	for {
		source := f.none
		for _, n := range f.members(c) {
			if f.count[n] > 0 && !f.isBlocked(n) && (source == f.none || f.last(n) > f.last(source)) {
				source = n
			}
		}
		if source == f.none {
			break
		}
		f.begin()
		f.from(source)
		f.run()
		limit := f.last(source)
		lower := func(n int32) bool { return int(f.class[n]) == c && f.following(n) < limit }
		if !f.improve(lower, f.better) {
			f.block()
		}
	}
	copy(f.search.blocked, before)
}

// save follows the chains that save moves and leave class c as balanced as it is: those from nodes whose last resource has
// some score to nodes where the following one has the same.
func (f *flow) save(c int) {
	var scores []int64
	for again := f.strays > 0; again; {
		again, scores = false, scores[:0]
		for _, n := range f.members(c) {
			scores = append(scores, f.last(n))
		}
		slices.Sort(scores)
		for _, score := range slices.Compact(scores) {
			for f.saveAt(c, score) {
				again = true
			}
		}
	}
}

// saveAt follows one such chain for this score, if there is one.
func (f *flow) saveAt(c int, score int64) bool {
	f.begin()
	for _, n := range f.members(c) {
		if f.count[n] > 0 && !f.isBlocked(n) && f.last(n) == score {
			f.from(n)
		}
	}
	f.run()
	dist := f.search.dist
	saves := func(n int32) bool { return int(f.class[n]) == c && dist[n] < 0 && f.following(n) == score }
	return f.improve(saves, func(a, b int32) bool { return dist[a] < dist[b] })
}

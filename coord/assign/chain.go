package assign

// follow carries out a cheapest chain to t, along the nodes that the search found: any resources whose moves cost as much as
// the distances say will do, and any source. Earlier chains of the round do no harm: the distances are a valid potential, and a
// move whose cost is the difference of the distances leaves them one. false: there is no such chain left.
func (f *flow) follow(t int32, g goal, cursor *int) bool {
	s := &f.search
	f.chain = f.chain[:0]
	n := t
	for ; s.parent[s.parent[n]] >= 0; n = s.parent[n] {
		r := f.tight(s.parent[n], n)
		if r < 0 {
			return false
		}
		f.chain = append(f.chain, r)
	}
	r := f.first(n, g, cursor)
	if r < 0 {
		return false
	}
	for _, r := range append(f.chain, r) {
		from := f.at[r]
		f.move(r, t)
		t = from
	}
	return true
}

// first is a resource to begin a chain with, which goes on at n: from the source that the search found, or else from the
// next one behind the cursor; -1: none.
func (f *flow) first(n int32, g goal, cursor *int) int32 {
	s := &f.search
	if a := s.parent[n]; f.gives(a, g) {
		if r := f.tight(a, n); r >= 0 {
			return r
		}
	}
	for ; *cursor < len(g.sources); *cursor++ {
		a := g.sources[*cursor]
		if s.dist[a] != 0 || !f.gives(a, g) { // others lie behind another source, perhaps on this very chain
			continue
		}
		if r := f.tight(a, n); r >= 0 {
			return r
		}
	}
	return -1
}

// tight is a resource whose move from a to b costs as much as b is farther than a; -1: none.
func (f *flow) tight(a, b int32) int32 {
	cost := f.search.dist[b] - f.search.dist[a]
	word, bit := b/64, uint64(1)<<(b%64)
	for kind, r := range f.heads[int(a)*kinds:][:kinds] {
		if kind == home && cost != 1 || kind == loose && cost != 0 || kind == stray && cost > 0 {
			continue
		}
		for ; r >= 0; r = f.next[r] {
			if f.mayTake(r)[word]&bit != 0 && f.cost(r, b) == cost {
				return r
			}
		}
	}
	return -1
}

// cost is the number of moves that taking r from where it is to b costs.
func (f *flow) cost(r, b int32) int32 {
	switch {
	case f.owner[r] < 0:
		return 0
	case f.owner[r] == f.at[r]:
		return 1
	case f.owner[r] == b:
		return -1
	}
	return 0
}

package assign

import "math/bits"

// search finds the cheapest chains of moves from some nodes to all others. The cost of a chain is the number of
// moves by which it makes the plan worse: a small number, that can be negative, so it is a label-correcting search. Sets of nodes by
// their distance make the resources that can improve nothing cheap to pass over.
type search struct {
	dist    []int32 // of each node, and none; far: not reached
	parent  []int32 // the node before it in the cheapest chain; -1 where one begins
	pending []uint64
	blocked []uint64 // nodes that no chain may enter

	// levels hold, for each distance from low to high, the nodes that are no farther, and the blocked ones. All nodes
	// are no farther than high, or not reached.
	levels    []uint64
	zero      int // index of the level of distance 0
	low, high int32
	current   int32 // no pending node is nearer
}

const far = int32(1<<31 - 1)

func (s *search) init(f *flow) {
	s.dist, s.parent = make([]int32, f.none+1), make([]int32, f.none+1)
	s.pending, s.blocked = make([]uint64, f.words), make([]uint64, f.words)
	s.zero = int(f.none) + 2
	s.levels = make([]uint64, (2*s.zero+1)*f.words)
}

// level is the set of nodes that are blocked or no farther than d, where d is at most one more than high.
func (f *flow) level(d int32) []uint64 {
	s := &f.search
	if d < s.low {
		return s.blocked
	}
	l := s.levels[(s.zero+int(d))*f.words:][:f.words]
	if d > s.high {
		copy(l, s.levels[(s.zero+int(s.high))*f.words:][:f.words])
		s.high = d
	}
	return l
}

// begin forgets the last search.
func (f *flow) begin() {
	s := &f.search
	for i := range s.dist {
		s.dist[i], s.parent[i] = far, -1
	}
	s.low, s.high, s.current = 0, 0, 0
	copy(s.levels[s.zero*f.words:][:f.words], s.blocked)
}

// from makes n, which is not blocked, a start of chains.
func (f *flow) from(n int32) { f.reached(n, 0, -1) }

// reached records that a chain of cost d, less than what was known, comes to n from a. The level of
// d is there already.
func (f *flow) reached(n, d, a int32) {
	s := &f.search
	for ; s.low > d; s.low-- {
		copy(s.levels[(s.zero+int(s.low)-1)*f.words:][:f.words], s.blocked)
	}
	word, bit := int(n/64), uint64(1)<<(n%64)
	for l := d; l <= s.high && l < s.dist[n]; l++ {
		s.levels[(s.zero+int(l))*f.words+word] |= bit
	}
	s.dist[n], s.parent[n] = d, a
	s.pending[word] |= bit
	s.current = min(s.current, d)
}

// run finds all distances.
func (f *flow) run() {
	for n := f.nearest(); n >= 0; n = f.nearest() {
		f.expand(n)
	}
}

// nearest takes the first of the nearest nodes out of those that are pending; -1: there are none.
func (f *flow) nearest() int32 {
	s := &f.search
	for ; s.current <= s.high; s.current++ {
		level := f.level(s.current)
		for w, b := range s.pending {
			if b &= level[w]; b != 0 {
				bit := bits.TrailingZeros64(b)
				s.pending[w] &^= 1 << bit
				return int32(w*64 + bit)
			}
		}
	}
	return -1
}

// expand looks where the resources of a can go.
func (f *flow) expand(a int32) {
	d := f.search.dist[a]
	for r := f.heads[int(a)*kinds+stray]; r >= 0; r = f.next[r] {
		if o := f.owner[r]; d-1 < f.search.dist[o] && !f.isBlocked(o) {
			f.reached(o, d-1, a)
		}
	}
	f.spread(a, loose, d)
	f.spread(a, stray, d)
	f.spread(a, home, d+1)
}

// spread records that resources of a kind at a can go to their targets at cost d.
func (f *flow) spread(a int32, kind int, d int32) {
	if f.heads[int(a)*kinds+kind] < 0 {
		return
	}
	near := f.level(d)
	for w, b := range f.targets(a, kind) {
		for b &^= near[w]; b != 0; b &= b - 1 {
			f.reached(int32(w*64+bits.TrailingZeros64(b)), d, a)
		}
	}
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

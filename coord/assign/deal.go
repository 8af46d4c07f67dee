package assign

import "math/bits"

// deal places what has no node as well as it goes without moving anything else: with the highest priority, and there with the
// least loaded.
func (f *flow) deal() {
	front, left := make([]uint64, f.words), 0 // the best of all nodes
	for r := range f.at {
		if f.at[r] != f.none {
			continue
		}
		if left == 0 {
			if left = f.bestOfAll(front); left == 0 {
				return // nobody has room
			}
		}
		takers := f.mayTake(int32(r))
		n := firstInBoth(takers, front)
		if n >= 0 {
			front[n/64] &^= 1 << (n % 64)
			left--
		} else {
			n = f.bestOf(takers)
		}
		if n != f.none {
			f.move(int32(r), n)
		}
	}
}

// bestOfAll makes front the nodes with room where one more resource is placed best, and counts them.
func (f *flow) bestOfAll(front []uint64) (number int) {
	best := f.none
	for n := range f.none {
		if !f.spare(n) || f.better(best, n) {
			continue
		}
		if f.better(n, best) {
			clear(front)
			best, number = n, 0
		}
		front[n/64] |= 1 << (n % 64)
		number++
	}
	return number
}

// bestOf is the node with room in set where one more resource is placed best; none: there is none.
func (f *flow) bestOf(set []uint64) int32 {
	best := f.none
	for w, b := range set {
		for ; b != 0; b &= b - 1 {
			if n := int32(w*64 + bits.TrailingZeros64(b)); f.spare(n) && f.better(n, best) {
				best = n
			}
		}
	}
	return best
}

func firstInBoth(a, b []uint64) int32 {
	for w := range a {
		if both := a[w] & b[w]; both != 0 {
			return int32(w*64 + bits.TrailingZeros64(both))
		}
	}
	return -1
}

// better says whether one more resource is better placed at a than at b; false when equal.
func (f *flow) better(a, b int32) bool {
	if f.class[a] != f.class[b] {
		return f.class[a] < f.class[b]
	}
	return a != f.none && f.following(a) < f.following(b)
}

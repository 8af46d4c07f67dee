package assign

// takers turns the sets of resources that each node may take into the sets of nodes that may take each resource, of so
// many words: in squares of 64 by 64.
func takers(nodes []Node, resources, words int) []uint64 {
	sets := make([]uint64, resources*words)
	var square [64]uint64
	for first := 0; first < len(nodes); first += 64 {
		for start := 0; start < resources; start += 64 {
			clear(square[:])
			for i := range min(64, len(nodes)-first) {
				square[i] = nodes[first+i].word(start / 64)
			}
			transpose(&square)
			for i := range min(64, resources-start) {
				sets[(start+i)*words+first/64] = square[i]
			}
		}
	}
	return sets
}

// word is the i-th word of what the node may take.
func (n *Node) word(i int) uint64 {
	switch {
	case n.Allowed == nil:
		return ^uint64(0)
	case i < len(n.Allowed):
		return n.Allowed[i]
	}
	return 0
}

// transpose makes bit j of word i bit i of word j: halves of words are swapped between halves of the square, then quarters
// within these, and so on.
func transpose(square *[64]uint64) {
	mask := ^uint64(0)
	for size := 32; size > 0; size /= 2 {
		mask ^= mask << size // the low half of each pair of parts
		for i := 0; i < 64; i++ {
			if i&size != 0 {
				continue
			}
			swap := (square[i]>>size ^ square[i+size]) & mask
			square[i] ^= swap << size
			square[i+size] ^= swap
		}
	}
}

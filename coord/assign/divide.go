package assign

import (
	"math/bits"
	"slices"
)

// division finds the fair shares of a class with unequal weights, as Node.Weight defines them, and makes a node's score its
// distance to its share. It supposes that all nodes of a set have the same share per weight, and looks whether resources that
// may be cut into parts can be divided like that. If not, some of the nodes get less than that whatever the others do, and these are
// left with as much as they can get; the nodes of either part are then a set of their own.
type division struct {
	f      *flow
	set    []int32 // of each node: a number for the set that it belongs to
	sets   int32
	have   []int64 // of each node: parts that it holds
	want   []int64 // its share
	most   []int64 // its share, or its limit if that is less
	heads  []int32 // the first piece at each node, or -1
	pieces []piece
	reach  []uint64 // for each node the nodes that one of its pieces may go to, or more
	seen   []uint64 // nodes that the last search came to
	queue  []int32  // the same in the order of the search
	from   []int32  // the node before each one in that; -1 where it began
	path   []int32  // pieces to move: scratch of send
}

// piece is what a node holds of a resource.
type piece struct {
	parts    int64
	resource int32
	next     int32 // the next piece at the same node, or -1
}

// divide finds the fair shares of class c.
func (f *flow) divide(c int) {
	n := len(f.nodes)
	d := division{
		f: f, set: make([]int32, n), have: make([]int64, n), want: make([]int64, n), most: make([]int64, n),
		heads: make([]int32, n), reach: make([]uint64, n*f.words), seen: make([]uint64, f.words), from: make([]int32, n),
	}
	for todo := [][]int32{f.members(c)}; len(todo) > 0; {
		nodes := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if low, high := d.try(nodes); len(low) > 0 {
			todo = append(todo, low, high)
		}
	}
}

// try gives each node of a set the same share per weight. If that cannot be, it returns the nodes that get less and those
// that get more, after it gave the former all that they can get.
func (d *division) try(nodes []int32) (low, high []int32) {
	f := d.f
	d.sets++
	var total, weights int64
	for _, n := range nodes {
		d.set[n] = d.sets
		total += int64(f.count[n])
		weights += f.nodes[n].weight()
	}
	for _, n := range nodes {
		f.scores[n] = score{fraction, -part(uint64(total), uint64(f.nodes[n].weight()), uint64(weights))}
	}
	f.balance(nodes, d.set)
	d.cut(nodes, total, weights)
	for d.pass() {
	}
	if !slices.ContainsFunc(nodes, d.above) {
		return nil, nil
	}
	for _, n := range nodes {
		if d.seen[n/64]>>(n%64)&1 == 0 || d.want[n] > d.most[n] {
			low = append(low, n)
		} else {
			high = append(high, n)
		}
	}
	d.give(high, low)
	return low, high
}

// give moves whole resources to the nodes of low until no chain leads there.
func (d *division) give(high, low []int32) {
	d.sets++
	for _, n := range low {
		d.set[n] = d.sets
	}
	g := goal{
		sources: high,
		source:  func(int32) bool { return true },
		target:  func(n int32) bool { return d.set[n] == d.sets },
		better:  d.f.better,
	}
	for d.f.round(g) {
	}
}

// above says whether n has more than its share.
func (d *division) above(n int32) bool { return d.have[n] > d.want[n] }

// cut begins with whole resources where they are now, of as many parts as the weights of the set together: so all shares are whole.
func (d *division) cut(nodes []int32, total, weights int64) {
	f := d.f
	for n := range d.have {
		d.have[n] = int64(f.count[n]) * weights
		d.want[n], d.most[n] = d.have[n], d.have[n] // others only pass on
		d.heads[n] = -1
		reach := d.reach[n*f.words:][:f.words]
		clear(reach)
		for kind := range kinds {
			for w, b := range f.targets(int32(n), kind) {
				reach[w] |= b
			}
		}
	}
	for _, n := range nodes {
		d.want[n] = total * f.nodes[n].weight()
		d.most[n] = min(d.want[n], int64(f.limits[n])*weights)
	}
	d.pieces = d.pieces[:0]
	for r, n := range f.at {
		if n != f.none {
			d.put(int32(r), n, weights)
		}
	}
}

func (d *division) put(r, n int32, parts int64) {
	d.pieces = append(d.pieces, piece{parts, r, d.heads[n]})
	d.heads[n] = int32(len(d.pieces) - 1)
}

// pass moves pieces from nodes above their share to those below, along chains that are as short as can be. It reports whether
// another pass may find more; if not, seen are the nodes that chains from those above their share lead to.
func (d *division) pass() (again bool) {
	f := d.f
	clear(d.seen)
	d.queue = d.queue[:0]
	for n := range d.have {
		if d.above(int32(n)) {
			d.found(int32(n), -1)
		}
	}
	for i := 0; i < len(d.queue); i++ {
		a := d.queue[i]
		for w, b := range d.reach[int(a)*f.words:][:f.words] {
			for b &^= d.seen[w]; b != 0; b &= b - 1 {
				d.found(int32(w*64+bits.TrailingZeros64(b)), a)
			}
		}
	}
	for _, n := range d.queue {
		if d.have[n] < d.most[n] {
			d.send(n)
			again = true
		}
	}
	return again
}

func (d *division) found(n, from int32) {
	d.seen[n/64] |= 1 << (n % 64)
	d.from[n] = from
	d.queue = append(d.queue, n)
}

// send moves as much as possible to t along the chain that was found. Where that has no piece to move any more, it is cut, so
// that the next pass looks for another.
func (d *division) send(t int32) {
	parts := d.most[t] - d.have[t]
	d.path = d.path[:0]
	start := t
	for ; d.from[start] >= 0; start = d.from[start] {
		a := d.from[start]
		i := d.find(a, start)
		if i < 0 {
			d.reach[int(a)*d.f.words+int(start/64)] &^= 1 << (start % 64)
			return
		}
		parts = min(parts, d.pieces[i].parts)
		d.path = append(d.path, i)
	}
	if parts = min(parts, d.have[start]-d.want[start]); parts <= 0 {
		return
	}
	d.have[start] -= parts
	d.have[t] += parts
	for _, i := range d.path {
		r := d.pieces[i].resource
		d.pieces[i].parts -= parts
		d.put(r, t, parts)
		for w, b := range d.f.mayTake(r) {
			d.reach[int(t)*d.f.words+w] |= b
		}
		t = d.from[t]
	}
}

// find is a piece at a that may go to b; -1: there is none. Those of which nothing is left are taken out on the way.
func (d *division) find(a, b int32) int32 {
	for at := &d.heads[a]; *at >= 0; {
		p := &d.pieces[*at]
		if p.parts == 0 {
			*at = p.next
			continue
		}
		if d.f.mayTake(p.resource)[b/64]>>(b%64)&1 != 0 {
			return *at
		}
		at = &p.next
	}
	return -1
}

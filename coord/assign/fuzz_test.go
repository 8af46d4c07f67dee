package assign

import (
	"slices"
	"testing"
)

// decode makes a small problem of any bytes.
func decode(data []byte) Problem {
	next := func() int {
		if len(data) == 0 {
			return 0
		}
		b := data[0]
		data = data[1:]
		return int(b)
	}
	p := Problem{Nodes: make([]Node, next()%70), Resources: next()}
	for i := range p.Nodes {
		n := &p.Nodes[i]
		flags := next()
		n.Priority = flags & 3
		if flags&4 != 0 {
			n.Max = next()
		}
		if flags&8 != 0 {
			n.Allowed = make([]uint64, next()%6)
			for w := range n.Allowed {
				n.Allowed[w] = uint64(next()) * 0x0101010101010101 << (next() % 9)
			}
		}
		if n.Weight = n.Priority; flags&16 != 0 {
			n.Weight = next()
		}
	}
	p.Owner = make([]int32, min(p.Resources, len(data)))
	for r := range p.Owner {
		p.Owner[r] = int32(next()) - 1
	}
	return p
}

// FuzzPlan plans anything, and certifies it where weights are equal.
func FuzzPlan(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{3, 9, 0, 4, 2, 1, 8, 1, 255, 0, 1, 1, 1, 2, 2, 0})
	f.Add([]byte{66, 200, 8, 4, 255, 1, 15, 0, 170, 8})
	f.Fuzz(func(t *testing.T, data []byte) {
		p := decode(data)
		plan := Plan(p)
		if _, err := costOf(p, plan, func(int, int) int64 { return 0 }); err != nil {
			t.Fatalf("%+v: %v", p, err)
		}
		equal := true
		order, ends := classes(p.Nodes)
		for c := 0; c < len(ends); c++ {
			start := 0
			if c > 0 {
				start = ends[c-1]
			}
			equal = equal && sameWeight(p.Nodes, order[start:ends[c]])
		}
		if equal {
			if err := certify(p, plan); err != nil {
				t.Fatalf("%+v: %v", p, err)
			}
		}
		p.Owner = plan
		if again := Plan(p); !slices.Equal(again, plan) {
			t.Fatalf("%+v: planned again %v", p, again)
		}
	})
}

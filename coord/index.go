package coord

import (
	"maps"
	"slices"
)

// indexed are the resources of a plan, by name.
type indexed struct {
	names  []string
	sorted []string // the same
	of     map[string]int32
	// ties are the nodes that resources are to be on, where those are planned for.
	ties map[int32]string
}

func (x *indexed) all() bits {
	b := newBits(len(x.names))
	for j := range x.names {
		b.set(int32(j))
	}
	return b
}

// index numbers the resources to plan: those of each node in the order in which they came to it, so that what came last, and
// has moved already, is what it gives up, then what others had that are given nothing any more, the other way round (see arrival.go), then the rest. Those that are paused without their claim are nobody's.
func (m *Machine) index(nodes []Member, take []bool, p *plan) *indexed {
	c := &m.lead.control
	x := &indexed{ties: map[int32]string{}}
	for _, n := range m.planned(nodes) {
		paused, keep := c.pause(n)
		if paused && !keep {
			continue
		}
		if paused {
			p.paused[n] = true
		}
		x.sorted = append(x.sorted, n)
	}
	x.of = make(map[string]int32, len(x.sorted))
	for _, n := range x.sorted {
		x.of[n] = -1
	}
	add := func(n string) {
		if j, ok := x.of[n]; ok && j < 0 {
			x.of[n] = int32(len(x.names))
			x.names = append(x.names, n)
		}
	}
	gone := maps.Clone(m.lead.entries)
	for i, mi := range nodes {
		if take[i] {
			delete(gone, mi.Node)
			for _, n := range m.lead.entries[mi.Node].value.Share {
				add(n)
			}
		}
	}
	for _, node := range sortedKeys(gone) { // who is given nothing any more: what came last first
		for _, n := range slices.Backward(gone[node].value.Share) {
			add(n)
		}
	}
	for _, n := range x.sorted {
		add(n)
	}
	m.tie(nodes, take, x)
	return x
}

// tie enters the nodes that resources are to be on. A node that is not there, or may not take the resource, ties nothing: idle is worse
// than elsewhere.
func (m *Machine) tie(nodes []Member, take []bool, x *indexed) {
	c := &m.lead.control
	if len(c.pins)+len(c.moves) == 0 {
		return
	}
	room, who := map[string]int{}, map[string]Member{}
	for i, mi := range nodes {
		if take[i] && m.lead.reserved[mi.Node] == 0 {
			who[mi.Node], room[mi.Node] = mi, mi.Max
		}
	}
	for _, ties := range []map[string]string{c.moves, c.pins} {
		for _, r := range sortedKeys(ties) {
			j, ok := x.of[r]
			mi, here := who[ties[r]]
			if _, tied := x.ties[j]; !ok || !here || tied || !m.may(mi, r) || mi.Max > 0 && room[mi.Node] == 0 {
				continue
			}
			room[mi.Node]--
			x.ties[j] = mi.Node
		}
	}
}

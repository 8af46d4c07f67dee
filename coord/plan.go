package coord

import (
	"slices"
	"sort"

	"github.com/rebalancer-go/rebalancer/coord/assign"
)

// plan is a whole new assignment.
type plan struct {
	shares map[string][]string // by node, sorted; every node planned for has an entry
	next   map[string]string   // owner of each resource that has one
	old    map[string]published
	all    bool // every entry is written, changed or not
	reason string
}

func sortedMembers(ms []Member) []Member {
	return slices.SortedFunc(slices.Values(ms), func(a, b Member) int {
		switch {
		case a.Node < b.Node:
			return -1
		case a.Node > b.Node:
			return 1
		}
		return 0
	})
}

// makePlan assigns the resources to these nodes, which are sorted by name.
func (m *Machine) makePlan(nodes []Member) *plan {
	l := &m.lead
	names := m.planned(nodes)
	index := make(map[string]int32, len(names))
	for i, n := range names {
		index[n] = int32(i)
	}
	pr := assign.Problem{Resources: len(names), Owner: make([]int32, len(names))}
	for i := range pr.Owner {
		pr.Owner[i] = -1
	}
	for i, mi := range nodes {
		pr.Nodes = append(pr.Nodes, assign.Node{
			Priority: mi.Priority, Weight: mi.Weight, Max: mi.Max, Allowed: m.allowed(mi, names, index),
		})
		for _, r := range l.entries[mi.Node].value.Share {
			if j, ok := index[r]; ok && pr.Owner[j] < 0 {
				pr.Owner[j] = int32(i)
			}
		}
	}
	owners := assign.Plan(pr)
	p := &plan{shares: map[string][]string{}, next: make(map[string]string, len(names)), old: l.entries, all: l.rewrite}
	for _, mi := range nodes {
		p.shares[mi.Node] = nil
	}
	var unplaced []string
	for j, o := range owners {
		if o < 0 {
			unplaced = append(unplaced, names[j])
			continue
		}
		node := nodes[o].Node
		p.shares[node] = append(p.shares[node], names[j])
		p.next[names[j]] = node
	}
	l.unplaced = unplaced
	return p
}

// planned are the sorted names of the resources to plan.
func (m *Machine) planned(nodes []Member) []string {
	if m.cfg.Origin != OriginStatic {
		return m.lead.resources
	}
	if len(nodes) == 0 {
		return nil
	}
	first := m.staticOf(nodes[0])
	same := true
	for _, mi := range nodes[1:] {
		same = same && slices.Equal(first, m.staticOf(mi))
	}
	var all []string
	if same {
		all = slices.Clone(first)
	} else {
		for _, mi := range nodes {
			all = append(all, m.staticOf(mi)...)
		}
		sort.Strings(all)
	}
	return slices.Compact(all)
}

// allowed is the set of resources that a node may take; nil for all of them.
func (m *Machine) allowed(mi Member, names []string, index map[string]int32) []uint64 {
	restricted := m.cfg.Origin == OriginStatic && !slices.Equal(m.staticOf(mi), names)
	if !restricted && len(mi.Declined) == 0 {
		return nil
	}
	bits := make([]uint64, (len(names)+63)/64)
	if restricted {
		for _, n := range m.staticOf(mi) {
			if j, ok := index[n]; ok {
				bits[j/64] |= 1 << (j % 64)
			}
		}
	} else {
		for j := range names {
			bits[j/64] |= 1 << (j % 64)
		}
	}
	for _, n := range mi.Declined {
		if j, ok := index[n]; ok {
			bits[j/64] &^= 1 << (j % 64)
		}
	}
	return bits
}

// moves tells whether any node's share changes.
func (p *plan) moves() bool {
	for node, share := range p.shares { // any
		if !slices.Equal(share, p.old[node].value.Share) {
			return true
		}
	}
	for node, old := range p.old { // any
		if _, planned := p.shares[node]; !planned && len(old.value.Share) > 0 {
			return true
		}
	}
	return false
}

// changes tells whether anything is to be written: also an entry for a node that has none.
func (p *plan) changes() bool {
	for node := range p.shares { // any
		if p.old[node].version == 0 {
			return true
		}
	}
	return p.moves()
}

package coord

import (
	"slices"
	"strings"
)

// bits is a set of indexes of resources; nil for all of them.
type bits []uint64

func newBits(n int) bits { return make(bits, (n+63)/64) }

func (b bits) set(j int32)   { b[j/64] |= 1 << (j % 64) }
func (b bits) clear(j int32) { b[j/64] &^= 1 << (j % 64) }

// allowed is the set of resources that a node may take; nil for all of them.
func (m *Machine) allowed(mi Member, x *indexed) bits {
	var b bits
	if _, live := m.lead.members[mi.Node]; !live { // what waits for it, whatever it may take, and nothing else
		b = newBits(len(x.names))
		for _, n := range m.lead.entries[mi.Node].value.Share {
			if j, ok := x.of[n]; ok && (x.ties[j] == "" || x.ties[j] == mi.Node) {
				b.set(j)
			}
		}
		return b
	}
	if m.cfg.Origin == OriginStatic {
		if list := m.staticOf(mi); !slices.Equal(list, x.sorted) {
			b = newBits(len(x.names))
			for _, n := range list {
				if j, ok := x.of[n]; ok {
					b.set(j)
				}
			}
		}
	}
	deny := func(j int32) {
		if b == nil {
			b = x.all()
		}
		b.clear(j)
	}
	for _, n := range mi.Declined {
		if j, ok := x.of[n]; ok {
			deny(j)
		}
	}
	for j, node := range x.ties { // into a set
		if node != mi.Node {
			deny(j)
		}
	}
	for _, r := range m.lead.labelled {
		if j, ok := x.of[r.Name]; ok && !hasLabels(mi.Labels, r.Require, true) {
			deny(j)
		}
	}
	return b
}

// may tells whether a live node may take a resource, whatever it is tied to.
func (m *Machine) may(mi Member, resource string) bool {
	if m.cfg.Origin == OriginStatic {
		if _, ok := slices.BinarySearch(m.staticOf(mi), resource); !ok {
			return false
		}
	}
	if slices.Contains(mi.Declined, resource) {
		return false
	}
	for _, r := range m.lead.labelled {
		if r.Name == resource {
			return hasLabels(mi.Labels, r.Require, true)
		}
	}
	return true
}

// mayAny tells whether a live node may take anything at all of what is to be claimed.
func (m *Machine) mayAny(mi Member) bool {
	names := m.lead.resources
	if m.cfg.Origin == OriginStatic {
		names = m.staticOf(mi)
	}
	return slices.ContainsFunc(names, func(r string) bool {
		paused, keep := m.lead.control.pause(r)
		return (!paused || keep) && m.may(mi, r)
	})
}

// prefers is the set of resources that should be on a node with its labels; nil for none.
func (m *Machine) prefers(mi Member, x *indexed) bits {
	var b bits
	for _, r := range m.lead.labelled {
		if j, ok := x.of[r.Name]; ok && len(r.Prefer) > 0 && hasLabels(mi.Labels, r.Prefer, false) {
			if b == nil {
				b = newBits(len(x.names))
			}
			b.set(j)
		}
	}
	return b
}

// hasLabels tells whether labels has all of the wanted "key=value" pairs, or any of them. Nothing wanted is had.
func hasLabels(labels map[string]string, wanted []string, all bool) bool {
	for _, w := range wanted {
		k, v, _ := strings.Cut(w, "=")
		got, ok := labels[k]
		if has := ok && got == v; has != all {
			return has
		}
	}
	return all || len(wanted) == 0
}

// loads are the weights of the resources; nil when they are all the same.
func (m *Machine) loads(x *indexed) []int32 {
	var l []int32
	for _, name := range sortedKeys(m.lead.weights) {
		j, ok := x.of[name]
		if !ok {
			continue
		}
		if l == nil {
			l = make([]int32, len(x.names))
			for i := range l {
				l[i] = 1
			}
		}
		l[j] = m.lead.weights[name]
	}
	return l
}

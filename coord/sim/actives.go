package sim

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/rebalancer-go/rebalancer/coord"
)

// actives tells which nodes are to be given something, or what is wrong with those that hold something. With MaxActive these are so many of the
// nodes that may take anything: first those that hold something, then those of the highest priority, or with FailBack the other way round,
// then in the order of their names.
func (w *World) actives(live []*proc, s *share) ([]bool, string) {
	keep, most := make([]bool, len(live)), w.setup.MaxActive
	var order []int
	for i, p := range live {
		keep[i] = !w.drained(p) && most == 0
		if !w.drained(p) && w.useful(p) {
			order = append(order, i)
		}
	}
	if most == 0 {
		return keep, ""
	}
	holds := func(i int) int {
		if slices.Contains(s.owner, i) {
			return 1
		}
		return 0
	}
	slices.SortFunc(order, func(a, b int) int {
		held, priority := cmp.Compare(holds(b), holds(a)), cmp.Compare(s.nodes[b].priority, s.nodes[a].priority)
		if w.setup.FailBack {
			held, priority = priority, held
		}
		return cmp.Or(held, priority, cmp.Compare(s.nodes[a].name, s.nodes[b].name))
	})
	for _, i := range order[:min(most, len(order))] {
		keep[i] = true
	}
	for i := range live {
		if holds(i) > 0 && !keep[i] {
			return nil, fmt.Sprintf("%s (priority %d) holds something, and is not one of the %d that may, of %v", s.nodes[i].name, s.nodes[i].priority, most, s.namesOf(order))
		}
	}
	for i := range s.nodes {
		s.nodes[i].priority = 0 // it decided who is active
	}
	return keep, ""
}

func (s *share) namesOf(nodes []int) (names []string) {
	for _, i := range nodes {
		names = append(names, s.nodes[i].name)
	}
	return names
}

// useful tells whether a node may take anything of what is to be claimed. What it declines now stands in its member entry.
func (w *World) useful(p *proc) bool {
	var m coord.Member
	if r := w.store.entry(w.now, coord.MemberKey(p.name)); r != nil {
		m, _ = coord.DecodeMember(r.value) // an empty one declines nothing
	}
	return slices.ContainsFunc(w.setup.Resources, func(r string) bool {
		paused, keep := w.paused(r)
		return (!paused || keep) && w.mayWork(p, r) && !slices.Contains(m.Declined, r)
	})
}

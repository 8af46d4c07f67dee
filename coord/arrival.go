package coord

import (
	"cmp"
	"slices"
)

// In a rolling restart without static names each node leaves, and a new one joins. No resource moves more than twice where all nodes may take
// everything, weigh the same and nothing else changes meanwhile: what a node had moves away and back, to its successor, and what does
// not go back stays where it will not move again, on a node that was restarted. So ties between plans are decided like this:
//
//   - What a node had that is gone is dealt the last first, which has moved before, and begins with the newest node that is to get most.
//   - A node that joins takes from each what came last. Who had one more than others before the last node left keeps it, then the newest.
//
// The coordinator may be another one each time. What it has to know stands in the assignments: the order of arrival in Share, Joined and Late.

// joinedAt is the generation by which a node was first planned for; 0: it joins now.
func (l *leadState) joinedAt(node string) int64 { return l.entries[node].value.Joined }

// newest are the indexes of nodes, which are sorted by name, the newest first. Those that join now come last: where another one leaves in the
// same plan, the odd resource is better with one that was restarted before, so that the newest has room when the next one leaves.
func (m *Machine) newest(nodes []Member) []int {
	order := make([]int, len(nodes))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(m.lead.joinedAt(nodes[b].Node), m.lead.joinedAt(nodes[a].Node))
	})
	return order
}

// late are, of each node's share, how many have come since a node was last planned for the first time: by entries that were written after that.
func (m *Machine) late(nodes []Member) map[string]int {
	l := &m.lead
	var joined int64
	for _, p := range l.entries { // the greatest
		joined = max(joined, p.value.Joined)
	}
	late := map[string]int{}
	for _, mi := range nodes {
		if v := l.entries[mi.Node].value; v.Generation > joined && v.Late > 0 {
			late[mi.Node] = min(v.Late, len(v.Share))
		}
	}
	return late
}

// stillLate is the same after a plan: nothing when a node joins.
func (m *Machine) stillLate(who []Member, was, owners []int32, late map[string]int) map[string]int {
	after := map[string]int{}
	stay := make([]int, len(who))
	for j, o := range owners {
		switch {
		case o < 0:
		case was[j] == o:
			stay[o]++
		default:
			after[who[o].Node]++
		}
	}
	for i, mi := range who {
		if m.lead.joinedAt(mi.Node) == 0 {
			return nil
		}
		// Its last go first, so those that are late are the last of what stays.
		if n := late[mi.Node] - (len(m.lead.entries[mi.Node].value.Share) - stay[i]); n > 0 {
			after[mi.Node] += n
		}
	}
	return after
}

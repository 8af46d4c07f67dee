package coord

import "github.com/rebalancer-go/rebalancer/coord/assign"

// takers are the nodes, of those planned for, that may be given resources: not those that are drained, and with MaxActive only so many.
// A node that becomes active is given nothing before those that are not any more have given everything back, so that
// never more than MaxActive nodes hold anything; waits tells that there is one. Nor before their entries were taken away, and all
// claims were read after that: who was gone may have come back meanwhile, and claimed by its old entry.
func (m *Machine) takers(nodes []Member) (take []bool, waits bool) {
	l := &m.lead
	take = make([]bool, len(nodes))
	pr := make([]assign.Node, 0, len(nodes))
	holds := make([]int32, 0, len(nodes))
	var who []int
	for i, mi := range nodes {
		if take[i] = !m.drained(mi); take[i] && (m.cfg.MaxActive == 0 || m.mayTake(mi)) {
			pr = append(pr, assign.Node{Priority: mi.Priority, Weight: mi.Weight, Max: mi.Max})
			holds = append(holds, int32(len(l.entries[mi.Node].value.Share)))
			who = append(who, i)
		}
	}
	most := m.cfg.MaxActive
	if most == 0 {
		return take, false
	}
	clear(take)
	active := assign.Active(pr, holds, most, m.cfg.FailBack)
	stay := map[string]bool{}
	for k, i := range who {
		take[i] = active[k]
		if active[k] && holds[k] > 0 {
			stay[nodes[i].Node] = true
		}
	}
	free := most - len(stay) - m.outgoing(stay)
	for k, i := range who {
		if active[k] && holds[k] == 0 {
			take[i] = free > 0 && l.claimsRead
			waits = waits || !take[i]
			free--
		}
	}
	return take, waits
}

// mayTake tells whether a node can be of use: who may take nothing is not one of those that are active.
func (m *Machine) mayTake(mi Member) bool {
	_, live := m.lead.members[mi.Node]
	return !live || m.mayAny(mi)
}

// outgoing counts the nodes that hold something, or may by their entry, and are not among those that stay active.
func (m *Machine) outgoing(stay map[string]bool) int {
	l := &m.lead
	who := map[string]bool{}
	for node, p := range l.entries { // into a set
		who[node] = who[node] || p.value.grants() > 0
	}
	for _, node := range l.holders { // into a set
		who[node] = true
	}
	n := 0
	for node, holds := range who { // counts
		if holds && !stay[node] {
			n++
		}
	}
	return n
}

// grants is how many resources an assignment gives.
func (a Assignment) grants() int {
	if a.ReservedUntil != 0 {
		return 0
	}
	return len(a.Share)
}

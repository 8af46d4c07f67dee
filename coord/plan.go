package coord

import (
	"slices"
	"sort"

	"github.com/rebalancer-go/rebalancer/coord/assign"
)

// plan is a whole new assignment.
type plan struct {
	shares   map[string][]string // by node, in the order of arrival; every node planned for has an entry
	next     map[string]string   // owner of each resource that is granted to one
	late     map[string]int      // how many of each share, its last, have come since a node joined
	paused   map[string]bool     // resources whose claim is kept while they are not worked
	drained  map[string]bool     // nodes that are given nothing because somebody asked for that
	reserved map[string]int64    // static nodes that have left: until when their share waits
	old      map[string]published
	pending  int  // moves that wait until others have ended
	waits    bool // a node that is to be active waits until others have given everything back
	all      bool // every entry is written, changed or not
	reason   string
	causes   []Cause
	sorted   []string        // the resources to plan
	takes    map[string]bool // nodes that may be given something
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
	p := &plan{shares: map[string][]string{}, next: map[string]string{}, paused: map[string]bool{}, drained: map[string]bool{},
		reserved: l.reserved, old: l.entries, all: l.rewrite}
	take, waits := m.takers(nodes)
	p.waits = waits
	x := m.index(nodes, take, p)
	if m.cfg.Measure || m.cfg.History {
		p.sorted, p.takes = x.sorted, map[string]bool{}
		for i, mi := range nodes {
			p.takes[mi.Node] = take[i]
		}
	}
	for _, mi := range nodes {
		p.shares[mi.Node] = nil
		p.drained[mi.Node] = m.drained(mi)
	}
	late := m.late(nodes)
	was, owners, who := m.place(nodes, take, x, p, late)
	p.late = m.stillLate(who, was, owners, late)
	for _, stays := range []bool{true, false} { // a share is in the order of arrival
		for j, o := range owners {
			if o >= 0 && (was[j] == o) == stays {
				p.shares[who[o].Node] = append(p.shares[who[o].Node], x.names[j])
			}
		}
	}
	l.unplaced = nil
	for j, o := range owners {
		switch {
		case o < 0:
			l.unplaced = append(l.unplaced, x.names[j])
		case p.reserved[who[o].Node] == 0:
			p.next[x.names[j]] = who[o].Node
		}
	}
	sort.Strings(l.unplaced)
	if waits {
		l.unplaced = l.reported // a node that may take the rest will be active soon
	}
	return p
}

// place runs the assignment over the nodes that may be given something, and returns them with it, and with the one before.
func (m *Machine) place(nodes []Member, take []bool, x *indexed, p *plan, late map[string]int) (was, owners []int32, who []Member) {
	l := &m.lead
	pr := assign.Problem{Resources: len(x.names), Owner: make([]int32, len(x.names)), Load: m.loads(x)}
	for i := range pr.Owner {
		pr.Owner[i] = -1
	}
	for _, i := range m.newest(nodes) {
		mi := nodes[i]
		if !take[i] {
			continue
		}
		for _, r := range l.entries[mi.Node].value.Share {
			if j, ok := x.of[r]; ok && pr.Owner[j] < 0 {
				pr.Owner[j] = int32(len(who))
			}
		}
		who = append(who, mi)
		priority := mi.Priority
		if m.cfg.MaxActive > 0 {
			priority = 0 // it decided who is active; those share evenly, or fewer than MaxActive would work
		}
		pr.Nodes = append(pr.Nodes, assign.Node{
			Priority: priority, Weight: mi.Weight, Late: late[mi.Node], Max: mi.Max, Allowed: m.allowed(mi, x), Prefer: m.prefers(mi, x),
		})
	}
	// What was given to nobody (it was paused, or no resource) is still with its node until the claim is gone.
	was, busy := slices.Clone(pr.Owner), m.busy(who, x)
	for j, o := range busy {
		if pr.Owner[j] < 0 {
			pr.Owner[j] = o
		}
	}
	target := assign.Plan(pr)
	most, each := m.cfg.MaxMoving, m.cfg.MaxMovingNode
	if m.cfg.Mode == GlobalBarrier || most == 0 && each == 0 {
		return was, target, who
	}
	limited := assign.Limit(pr, target, most, each, busy)
	for j := range target {
		if limited[j] != target[j] {
			p.pending++
		}
	}
	return was, limited, who
}

// busy tells for each resource which of the nodes still has to give it back, -1 for none.
func (m *Machine) busy(who []Member, x *indexed) []int32 {
	l := &m.lead
	busy := make([]int32, len(x.names))
	for j := range busy {
		busy[j] = -1
	}
	for i, mi := range who {
		for r := range l.entries[mi.Node].value.Leaving { // each by itself: one node holds it
			if j, ok := x.of[r]; ok && l.holders[r] == mi.Node {
				busy[j] = int32(i)
			}
		}
	}
	return busy
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

// differs tells whether what a node is granted, or what is kept for it, is another than before.
func (p *plan) differs(node string) bool {
	old := p.old[node].value
	return !slices.Equal(p.shares[node], old.Share) || (p.reserved[node] != 0) != (old.ReservedUntil != 0) ||
		p.drained[node] != old.Drained || !slices.Equal(p.pausedOf(node), old.Paused)
}

// pausedOf are those of a node's share that it claims, but does not work.
func (p *plan) pausedOf(node string) []string {
	var names []string
	if len(p.paused) > 0 && p.reserved[node] == 0 {
		for _, r := range p.shares[node] {
			if p.paused[r] {
				names = append(names, r)
			}
		}
	}
	return names
}

// moves tells whether any node's share changes.
func (p *plan) moves() bool {
	for node := range p.shares { // any
		if p.differs(node) {
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

package coord

import (
	"fmt"
	"slices"
	"strings"
)

// evaluate decides, from what was just read, whether a plan is due, and makes it.
func (m *Machine) evaluate() {
	l := &m.lead
	held := m.heldNodes()
	settled, joined := m.planners(held)
	if m.barrierCloses() {
		if m.allStopped() {
			m.publishPlan(slices.Concat(settled, joined), l.barrier.Generation)
		}
		return // else: each node that stops rewrites its member entry, and wakes the coordinator
	}
	now := m.makePlan(settled)
	due := len(settled) == 0 || l.rewrite || now.changes()
	if len(joined) == 0 {
		l.joinFirst, l.joinLast, l.joining = 0, 0, 0
	} else if !due {
		due = m.debounced(len(joined))
	}
	if !due {
		m.planLater(now)
		if len(joined) == 0 { // else a move to one that has just joined may wait for the next plan
			m.deleteMoves(now)
		}
		return
	}
	l.joinFirst, l.joinLast, l.joining = 0, 0, 0
	p := now
	if len(joined) > 0 {
		p = m.makePlan(sortedMembers(slices.Concat(settled, joined)))
	}
	p.reason, p.causes = m.reason(joined)
	switch {
	case m.cfg.Mode == ResourceBarrier:
		m.startPublish(p, l.gen+1)
	case p.moves(): // everybody stops first; the plan is made anew then
		l.causes = sortedCauses(slices.Concat(l.causes, p.causes))
		m.writeBarrier(Barrier{Generation: max(l.gen, l.barrier.Generation) + 1})
	default:
		m.startPublish(p, l.barrier.Generation)
	}
}

func (m *Machine) publishPlan(nodes []Member, gen int64) {
	p := m.makePlan(sortedMembers(nodes))
	p.reason, p.causes, m.lead.causes = "all nodes have stopped", m.lead.causes, nil
	if p.causes == nil && m.cfg.Measure {
		p.causes = []Cause{CauseCoordinator} // an earlier one stopped them
	}
	p.all = true
	m.startPublish(p, gen)
}

// debounced waits for further joins, but not for ever.
func (m *Machine) debounced(n int) bool {
	l := &m.lead
	if l.joinFirst == 0 {
		l.joinFirst = m.now
	}
	if n != l.joining {
		l.joining, l.joinLast = n, m.now
	}
	at := min(l.joinLast+Time(m.cfg.Debounce), l.joinFirst+Time(m.cfg.DebounceMax))
	if m.now >= at {
		return true
	}
	m.planBy(at)
	return false
}

func (m *Machine) planBy(at Time) {
	if l := &m.lead; l.planAt == 0 || at < l.planAt {
		l.planAt = at
	}
}

// heldNodes are nodes whose session ended, and whose shares wait for them: after an outage of the store many come back at once, and
// planning their shares away would move everything twice. A single loss acts at once.
func (m *Machine) heldNodes() map[string]bool {
	l := &m.lead
	fresh := 0
	for _, node := range sortedKeys(l.entries) {
		if _, live := l.members[node]; live || l.entries[node].value.grants() == 0 {
			delete(l.missing, node) // it is there, or left and has no share that could wait for it
			continue
		}
		if _, known := l.missing[node]; !known {
			l.missing[node] = m.now
		}
		if Duration(m.now-l.missing[node]) <= m.sess.renew {
			fresh++
		}
	}
	for node := range l.missing { // each by itself
		if _, known := l.entries[node]; !known {
			delete(l.missing, node)
		}
	}
	mass := fresh >= 2 && 2*fresh > len(l.members)+len(l.missing)
	held := map[string]bool{}
	for _, node := range sortedKeys(l.missing) {
		since := l.missing[node]
		if mass && Duration(m.now-since) <= m.sess.renew {
			l.waitFor[node] = since + Time(m.sess.ttl)
		}
		until := max(l.waitFor[node], l.reborn)
		if m.now < until {
			held[node] = true
			m.planBy(until)
		}
	}
	for node := range l.waitFor { // each by itself
		if _, gone := l.missing[node]; !gone {
			delete(l.waitFor, node)
		}
	}
	return held
}

// planners are the nodes to plan for: those that have an entry (live, or waited for), and those that joined.
func (m *Machine) planners(held map[string]bool) (settled, joined []Member) {
	l := &m.lead
	l.reserved = map[string]int64{}
	for _, node := range sortedKeys(l.members) {
		mi := l.members[node].Member
		l.last[node] = mi
		if mi.Leaving || node == m.cfg.Node && m.leave.asked {
			if mi.Static && m.reserve(node) {
				settled = append(settled, mi)
			}
			continue
		}
		if _, ok := l.entries[node]; ok {
			settled = append(settled, mi)
		} else {
			joined = append(joined, mi)
		}
	}
	for _, node := range sortedKeys(held) {
		settled = append(settled, m.known(node))
	}
	for _, node := range sortedKeys(l.entries) {
		if _, live := l.members[node]; !live && l.entries[node].value.ReservedUntil != 0 && m.reserve(node) {
			settled = append(settled, m.known(node))
		}
	}
	for node := range l.last { // each by itself
		if _, live := l.members[node]; !live && !held[node] && l.reserved[node] == 0 {
			delete(l.last, node)
		}
	}
	return sortedMembers(settled), joined
}

// known is a node that is waited for, as it was last seen.
func (m *Machine) known(node string) Member {
	mi, ok := m.lead.last[node]
	if !ok { // this coordinator never saw it: take it for a node that may hold what it was given
		mi = Member{Node: node, Weight: 1, List: m.lead.entries[node].value.Share}
	}
	return mi
}

// reserve keeps the share of a static node that leaves, for one ttl from when that was first written down. It only delays
// that others get it.
func (m *Machine) reserve(node string) bool {
	old := m.lead.entries[node].value
	until := old.ReservedUntil
	if until == 0 {
		until = m.storeTime() + int64(m.sess.ttl/microsecond)
	}
	left := Duration(until-m.storeTime()) * microsecond
	if len(old.Share) == 0 || left <= 0 {
		return false
	}
	m.lead.reserved[node] = until
	if m.has(GuardReservedEnds) {
		m.planBy(m.now + Time(left))
	}
	return true
}

// reason says for people why a plan was made, and in words that can be counted.
func (m *Machine) reason(joined []Member) (text string, causes []Cause) {
	l := &m.lead
	var why []string
	add := func(c Cause, text string) { why, causes = append(why, text), append(causes, c) }
	for _, mi := range joined {
		add(CauseJoin, "node "+mi.Node+" joined")
	}
	for _, node := range sortedKeys(l.missing) {
		if m.now >= max(l.waitFor[node], l.reborn) {
			add(CauseGone, "node "+node+" is gone")
		}
	}
	for _, node := range sortedKeys(l.members) {
		if l.members[node].Leaving && l.entries[node].value.grants() > 0 {
			add(CauseLeave, "node "+node+" leaves")
		}
	}
	for _, node := range sortedKeys(l.entries) {
		until := l.entries[node].value.ReservedUntil
		switch kept := l.reserved[node] != 0; {
		case kept && until == 0:
			add(CauseLeave, "node "+node+" leaves, and its share waits for it")
		case !kept && until != 0 && l.members[node].version == 0:
			add(CauseGone, "node "+node+" did not come back")
		case !kept && until != 0:
			add(CauseReturn, "node "+node+" is back")
		}
	}
	if l.rewrite {
		add(CauseCoordinator, "new coordinator")
	}
	if len(why) == 0 {
		add(CauseChange, "resources or what nodes may take changed")
	}
	if causes = sortedCauses(causes); !m.cfg.Measure {
		causes = nil
	}
	if len(why) > 4 {
		return fmt.Sprintf("%s; %s; and %d more", why[0], why[1], len(why)-2), causes
	}
	return strings.Join(why, "; "), causes
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

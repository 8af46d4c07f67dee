package coord

import (
	"cmp"
	"fmt"
	"slices"
)

// publication is a plan on its way into the store: one transaction per node whose entry changes, each valid alone.
type publication struct {
	gen    int64
	plan   *plan
	nodes  []string // still to be written, sorted
	values map[string]Assignment
	wrote  int
	moved  int
	record []byte // what the history is to say of it, until it stands there
	report *PlanReport
}

// startPublish works out whose entries change, and writes them.
func (m *Machine) startPublish(p *plan, gen int64) {
	l := &m.lead
	pub := &publication{gen: gen, plan: p, values: map[string]Assignment{}}
	if m.cfg.Measure {
		pub.report = m.movement(p, gen)
	}
	set := map[string]bool{}
	for node := range p.shares { // into a set
		set[node] = true
	}
	for node := range l.entries { // into a set
		set[node] = true
	}
	for _, node := range sortedKeys(set) {
		a, write := m.entryFor(node, p, gen)
		if write {
			pub.nodes = append(pub.nodes, node)
			pub.values[node] = a
		}
		for r, next := range a.Leaving { // counts
			if _, already := l.entries[node].value.Leaving[r]; !already && next != "" {
				pub.moved++
			}
		}
	}
	pub.record = m.record(pub)
	l.publish = pub
	if l.pending != p.pending || !slices.Equal(l.unplaced, l.reported) {
		m.status.dirty = true
	}
	l.pending = p.pending
	m.reportUnplaced()
	m.pumpPublish()
}

// entryFor is a node's new assignment, and whether it has to be written.
func (m *Machine) entryFor(node string, p *plan, gen int64) (Assignment, bool) {
	l := &m.lead
	old := l.entries[node]
	share, planned := p.shares[node]
	_, live := l.members[node]
	if !planned && !live {
		return Assignment{}, true // gone: its entry is deleted
	}
	a := Assignment{
		Epoch: l.epoch, Generation: gen, Share: share, Leaving: map[string]string{},
		Paused: p.pausedOf(node), Drained: p.drained[node], ReservedUntil: p.reserved[node], Late: p.late[node], Why: causesText(p.causes),
	}
	if planned {
		a.Joined = cmp.Or(old.value.Joined, gen)
	}
	if !planned && old.version == 0 {
		return a, false // it leaves, and never had one
	}
	write := p.all || old.version == 0 || p.differs(node)
	for _, r := range old.value.Share {
		if p.next[r] != node && old.value.ReservedUntil == 0 {
			a.Leaving[r] = p.next[r]
		}
	}
	for r, was := range old.value.Leaving { // into a map
		if p.next[r] == node || l.holders[r] != node {
			continue // given back, or ours again
		}
		a.Leaving[r] = p.next[r]
		if was != p.next[r] && m.has(GuardNextRewrite) {
			write = true // the node that still holds it is told who comes next now
		}
	}
	return a, write
}

// pumpPublish writes the next batch of entries.
func (m *Machine) pumpPublish() {
	l := &m.lead
	pub := l.publish
	if m.now < l.retryAt || m.waitsFor(callPublish) {
		return
	}
	if len(pub.nodes) == 0 {
		m.publishedAll()
		return
	}
	c := call{kind: callPublish}
	var txns []Txn
	for _, node := range pub.nodes[:min(len(pub.nodes), maxBatch)] {
		c.names = append(c.names, node)
		txns = append(txns, m.entryTxn(node, pub.values[node]))
	}
	txns[0].Puts = append(txns[0].Puts, pub.recordPut()...)
	m.commit(c, txns...)
}

func (m *Machine) entryTxn(node string, a Assignment) Txn {
	head := AssignmentKey(node)
	old := m.lead.entries[node]
	t := Txn{Checks: append(m.leadCheck(), Check{Key: head, Version: old.version}), Wake: []string{NodeAddress(node)}}
	written := 0
	if a.Epoch == 0 { // the node is gone
		t.Deletes = append(t.Deletes, head)
	} else {
		t.Puts = assignmentPuts(node, a)
		written = len(t.Puts) - 1
	}
	for i := written + 1; i <= old.value.Parts; i++ {
		t.Deletes = append(t.Deletes, part(head, i))
	}
	return t
}

func (m *Machine) published(c call, ev Committed) {
	l := &m.lead
	pub := l.publish
	if !m.ofTerm(c) || pub == nil {
		return
	}
	for i, node := range c.names {
		r := outcome(ev, i)
		if m.deposed(r) {
			return
		}
		switch r.Code {
		case OK:
			m.entryWritten(node, r.Versions[AssignmentKey(node)])
			pub.wrote++
			if i == 0 {
				pub.record = nil
			}
		case Conflict, Unknown: // another write of ours came through: read everything again
			// One whose outcome is unknown may still arrive: every entry is written anew, so that it then finds another version.
			l.rewrite = l.rewrite || r.Code == Unknown
			l.publish = nil
			l.cold, l.dirty, l.retryAt = true, true, m.now+Time(20*millisecond)
			return
		default:
			l.retryAt = m.now + Time(100*millisecond)
		}
	}
	m.pumpPublish()
}

func (m *Machine) entryWritten(node string, version int64) {
	l := &m.lead
	pub := l.publish
	a := pub.values[node]
	l.claimsRead = false
	if a.Epoch == 0 {
		delete(l.entries, node)
		delete(l.missing, node)
		delete(l.last, node)
		l.sweep = true
	} else {
		a.Parts = len(a.parts()) - 1
		l.entries[node] = published{version: version, value: a}
	}
	if i, ok := slices.BinarySearch(pub.nodes, node); ok {
		pub.nodes = slices.Delete(pub.nodes, i, i+1)
	}
	if node == m.cfg.Node {
		m.follow.dirty = true // no hint is needed for the own entry
	}
}

func (m *Machine) publishedAll() {
	l := &m.lead
	pub := l.publish
	l.publish = nil
	l.gen = max(l.gen, pub.gen)
	l.rewrite = false
	m.deleteMoves(pub.plan)
	m.planLater(pub.plan)
	if pub.wrote > 0 {
		if pub.report != nil {
			pub.report.Took = Duration(m.now - pub.report.began)
		}
		m.notify(Notify{Kind: KindRebalanced, Plan: pub.report, Reason: fmt.Sprintf("%s: %s to move%s, %d entries written (epoch %d, generation %d)",
			pub.plan.reason, plural(pub.moved, "resource"), later(l.pending), pub.wrote, l.epoch, pub.gen)})
	}
	if m.cfg.Mode == GlobalBarrier && !l.barrier.Open {
		m.writeBarrier(Barrier{Generation: pub.gen, Open: true})
	}
}

// planLater looks again after moves that others wait for: hints that tell of the end of a hand-over may be lost.
func (m *Machine) planLater(p *plan) {
	switch {
	case p.waits && !m.lead.claimsRead:
		m.lead.dirty = true
	case p.waits || p.pending > 0:
		m.planBy(m.now + Time(m.sess.renew))
	}
}

func later(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(", %d more later", n)
}

// reportUnplaced tells of resources that no live node may take any more; of each once, until a node may take it.
func (m *Machine) reportUnplaced() {
	l := &m.lead
	if slices.Equal(l.unplaced, l.reported) {
		return
	}
	told := 0
	for _, name := range l.unplaced {
		if _, known := slices.BinarySearch(l.reported, name); known {
			continue
		}
		if told++; told <= 10 {
			m.notify(Notify{Kind: KindResources, Resource: name, Reason: "no live node may take it"})
		}
	}
	if told > 10 {
		m.notify(Notify{Kind: KindResources, Reason: fmt.Sprintf("and %d more that no live node may take", told-10)})
	}
	l.reported = slices.Clone(l.unplaced)
}

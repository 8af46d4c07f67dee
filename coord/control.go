package coord

import "strings"

// controls are what operators ask for, as the coordinator last read it.
type controls struct {
	drained map[string]bool   // nodes that are given nothing
	pins    map[string]string // node by resource
	moves   map[string]string // the same, once
	paused  map[string]bool   // resources; true: the claim is kept
	group   *Control          // the whole group is paused
	asked   map[string]Check  // entries of moves by resource, to be deleted when they were planned
}

func (c *controls) read(e Entry) error {
	v, err := DecodeControl(e.Value)
	if err != nil {
		return err
	}
	switch {
	case strings.HasPrefix(e.Key, drainPrefix):
		c.drained[v.Node] = true
	case strings.HasPrefix(e.Key, pinPrefix):
		c.pins[v.Resource] = v.Node
	case strings.HasPrefix(e.Key, movePrefix):
		c.moves[v.Resource] = v.Node
		c.asked[v.Resource] = Check{Key: e.Key, Version: e.Version}
	case strings.HasPrefix(e.Key, pausePrefix):
		c.paused[v.Resource] = v.Keep
	case e.Key == PauseGroupKey:
		c.group = &v
	}
	return nil
}

func newControls() controls {
	return controls{drained: map[string]bool{}, pins: map[string]string{}, moves: map[string]string{}, paused: map[string]bool{}, asked: map[string]Check{}}
}

// pause tells whether a resource is paused, and whether its claim is kept meanwhile.
func (c *controls) pause(resource string) (paused, keep bool) {
	keep, paused = c.paused[resource]
	if c.group != nil && !paused {
		return true, c.group.Keep
	}
	return paused, keep
}

// drained tells whether a node is to be given nothing.
func (m *Machine) drained(mi Member) bool { return mi.Draining || m.lead.control.drained[mi.Node] }

// deleteMoves takes back the moves that a plan, which stands in the store now, has carried out, or never will: they name a node
// that is not there, or may not take the resource. Those that wait until others have moved stay.
func (m *Machine) deleteMoves(p *plan) {
	l := &m.lead
	if m.waitsFor(callMoved) {
		return // what is asked for is read again after it
	}
	c := call{kind: callMoved}
	var txns []Txn
	for _, r := range sortedKeys(l.control.asked) {
		if node := l.control.moves[r]; p.pending > 0 && p.next[r] != node && l.members[node].version != 0 {
			continue
		}
		e := l.control.asked[r]
		delete(l.control.asked, r)
		c.names = append(c.names, e.Key)
		txns = append(txns, Txn{Checks: append(m.leadCheck(), e), Deletes: []string{e.Key}})
	}
	if len(txns) > 0 {
		m.commit(c, txns...)
	}
}

func (m *Machine) movesDeleted(c call, ev Committed) {
	if !m.ofTerm(c) {
		return
	}
	for i := range c.names {
		r := outcome(ev, i)
		if m.deposed(r) {
			return
		}
		if r.Code != OK && r.Code != Conflict {
			m.lead.retryAt = m.now + Time(100*millisecond)
		}
	}
	m.lead.dirty = true // what stands there now is read again; a move whose deletion failed is planned again, which changes nothing
}

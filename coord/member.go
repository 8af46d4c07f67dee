package coord

import "sort"

// memberState is this node's own entry.
type memberState struct {
	version  int64 // of the entry as this session wrote it; 0: not written
	dirty    bool  // it is to be written again
	listed   bool  // the parts of a long static list were written
	unknown  bool  // a write's outcome is to be resolved by reading
	retryAt  Time
	declined map[string]decline
	draining bool  // the node asks to be given nothing
	joined   bool  // this process was a member once
	born     int64 // Member.Born
	wroteAt  Time  // when the last write was answered
	// declineEnd is when the first of them ends; 0: none is to end.
	declineEnd Time
}

// decline is a resource that this node could not open.
type decline struct {
	times int
	until Time // the node does not ask for it before; 0: over
}

const (
	firstDecline = 30 * second
	lastDecline  = 10 * minute
)

// reset forgets what was of the session; what the node declined stays.
func (s *memberState) reset() {
	*s = memberState{declined: s.declined, declineEnd: s.declineEnd, draining: s.draining, joined: s.joined, born: s.born}
}

// ownSeen looks at the entry under the node's own name, as it was read while settling.
func (m *Machine) ownSeen(e Entry) {
	foreign := e.Version != 0 && !m.ownInstance(e)
	switch {
	case e.Version != 0 && e.Session == m.sess.id:
		m.member.version = e.Version // ours, perhaps from a write whose answer was lost
		m.member.unknown = false
		m.member.listed = true
		if m.phase != phaseActive {
			m.member.dirty = true // what it says may be old
			m.activate()
		}
	case foreign && !m.cfg.StaticID:
		m.occupied(e)
	case foreign && m.member.joined && m.bornBefore(e):
		m.superseded() // two that took turns would never end
	case foreign:
		m.takeOver(e)
	default:
		m.member.version, m.member.unknown = e.Version, false
		m.phase = phaseJoining
		m.set.elders = m.set.elders || m.cfg.StaticID && e.Version == 0 // one may be left whose newer one has gone with their entry
	}
}

func (m *Machine) ownInstance(e Entry) bool {
	v, err := DecodeMember(e.Value)
	return err == nil && v.Instance == m.cfg.Instance
}

// occupied waits for another process of this name: a killed predecessor's session ends by itself, a live one stays.
func (m *Machine) occupied(e Entry) {
	if m.set.foreign == 0 {
		m.set.foreign = m.now
		m.notify(Notify{Kind: KindWaiting, Reason: "another process is a member under this node's name: waiting for the end of its session"})
	}
	// Renewals that a dead process had sent may arrive late; only a live one goes on and on.
	if Duration(m.now-m.set.foreign) > 4*m.sess.ttl {
		m.fail(mismatch("another live process is a member of group %q under the name %q: give each process a name of its own", m.cfg.Group, m.cfg.Node))
		return
	}
	m.phase = phaseSettling
	wait := m.sess.renew
	if e.Left >= 0 {
		wait = min(wait, e.Left+millisecond)
	}
	m.set.known, m.set.retryAt = false, m.now+Time(wait)
}

// mayWriteMember tells whether the entry is to be written, and nothing but time keeps it from that.
func (m *Machine) mayWriteMember() bool {
	s := &m.member
	due := m.phase == phaseJoining || m.phase == phaseActive && s.dirty
	return due && !m.leave.superseded && !s.unknown && !m.sess.noticing && m.set.known && !m.waitsFor(callMember) && !m.waitsFor(callLists)
}

func (m *Machine) pumpMember() {
	s := &m.member
	m.endDeclines()
	if !m.mayWriteMember() || m.now < s.retryAt {
		return
	}
	v := m.memberValue()
	if v.ListParts > 0 && !s.listed {
		var txns []Txn
		for _, p := range listPuts(ListPrefix+m.cfg.Node+"/", m.cfg.Static, true) {
			txns = append(txns, Txn{Puts: []Put{p}})
		}
		m.commit(call{kind: callLists, names: make([]string, len(txns))}, txns...)
		return
	}
	s.dirty = false
	key := MemberKey(m.cfg.Node)
	m.commit(call{kind: callMember, names: []string{m.cfg.Node}}, Txn{
		Checks: []Check{{Key: SettingsKey, Version: m.set.version}, {Key: key, Version: s.version}},
		Puts:   []Put{{Key: key, Value: encode(v), Bound: true}},
		Wake:   []string{CoordinatorAddress},
	})
}

func (m *Machine) memberValue() Member {
	c := &m.cfg
	v := Member{
		Node: c.Node, Instance: c.Instance, FormatMin: c.FormatMin, FormatMax: c.FormatMax, Version: c.Version,
		Priority: c.Priority, Weight: c.Weight, Max: c.MaxResources, Labels: c.Labels,
		Leaving: m.leave.asked, Stopped: m.bar.acked, Static: c.StaticID, Draining: m.member.draining,
	}
	if c.StaticID {
		v.Born = m.member.born
	}
	for name, d := range m.member.declined {
		if d.until != 0 {
			v.Declined = append(v.Declined, name)
		}
	}
	sort.Strings(v.Declined)
	if parts := split(v.Declined); len(parts) > 1 {
		v.Declined = parts[0] // no entry grows with the group: when so many fail, it is not for this node's sake
	}
	if c.Origin == OriginStatic {
		if parts := split(c.Static); len(parts) > 1 {
			v.ListParts, v.ListHash = len(parts), listHash(c.Static)
		} else {
			v.List = c.Static
		}
	}
	return v
}

func (m *Machine) listsWritten(ev Committed) {
	for i := range ev.Results {
		if outcome(ev, i).Code != OK {
			ev.Code = Failed
		}
	}
	if m.member.listed = ev.Code == OK; !m.member.listed {
		m.member.retryAt = m.now + Time(100*millisecond)
	}
}

func (m *Machine) memberWritten(ev Committed) {
	s := &m.member
	r := outcome(ev, 0)
	s.wroteAt = m.now
	switch r.Code {
	case OK:
		s.version = r.Versions[MemberKey(m.cfg.Node)]
		if m.phase == phaseJoining {
			m.activate()
		}
	case Conflict, Unknown:
		s.unknown, s.dirty = true, true
		m.set.known = false // reads the own entry again, too
	default:
		s.dirty = true
		s.retryAt = m.now + Time(100*millisecond)
	}
}

// activate is the end of joining: the node is a member.
func (m *Machine) activate() {
	m.phase = phaseActive
	m.member.joined = true
	m.follow.dirty = true
	m.notify(Notify{Kind: KindJoined, Node: m.cfg.Node})
	m.touchAll()
}

func (m *Machine) onCannotOpen(ev CannotOpen) {
	r := m.workerEnded(ev.Resource, ev.Fence)
	if r == nil {
		return
	}
	d := m.member.declined[ev.Resource]
	pause := min(firstDecline<<min(d.times, 10), lastDecline)
	d.times++
	// Rounded up, so that many that fail one after the other end together.
	d.until = (m.now + Time(pause) + Time(second) - 1) / Time(second) * Time(second)
	m.member.declined[ev.Resource] = d
	m.member.endBy(d.until)
	m.member.dirty = true
	m.notify(Notify{Kind: KindDeclined, Resource: ev.Resource, Fence: ev.Fence, Err: ev.Err,
		Reason: "its source could not be opened here: left to other nodes for a while"})
}

// declines tells whether the node does not want a resource for now. A decline that is over is taken back.
func (m *Machine) declines(name string) bool {
	d, ok := m.member.declined[name]
	if !ok || d.until == 0 {
		return false
	}
	if m.now < d.until {
		return true
	}
	d.until = 0
	m.member.declined[name] = d
	m.member.dirty = true
	return false
}

// endBy notes that a decline ends at t.
func (s *memberState) endBy(t Time) {
	if s.declineEnd == 0 || t < s.declineEnd {
		s.declineEnd = t
	}
}

// endDeclines takes back every decline that is over. It looks at them only when one is: when a source is away, they are many.
func (m *Machine) endDeclines() {
	s := &m.member
	if s.declineEnd == 0 || m.now < s.declineEnd {
		return
	}
	s.declineEnd = 0
	for _, name := range sortedKeys(s.declined) {
		switch d := s.declined[name]; {
		case d.until == 0:
		case m.now >= d.until:
			m.declines(name)
			m.touch(name)
		default:
			s.endBy(d.until)
		}
	}
}

func (m *Machine) wakeMember(w *wake) {
	w.by(m.member.declineEnd)
	if m.maySupersede() {
		w.by(max(m.set.elderAt, m.now))
	}
	if m.mayWriteMember() {
		w.by(max(m.member.retryAt, m.now))
	}
}

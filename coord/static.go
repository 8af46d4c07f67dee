package coord

// takeOver overwrites the member entry of an older process under this node's static name, and supersedes it then: it can no longer renew or
// claim. In this order the node is a member all the time, also where the store ends the session of a process that is
// proved to be dead. What the older one holds stays its own until it releases it, or until the end of its session at the
// store; this process claims under its own session when that is so, never because a claim carries its name.
func (m *Machine) takeOver(e Entry) {
	if v, err := DecodeMember(e.Value); err == nil {
		m.member.born = max(m.member.born, v.Born+1) // whoever joins last is the newer one
	}
	m.member.version, m.member.unknown = e.Version, false
	m.phase = phaseJoining
	m.set.took, m.set.owed, m.set.elders = true, m.has(GuardSupersede), true
}

// maySupersede tells whether an older process is to be superseded, or looked for, and nothing but time keeps this one from that.
func (m *Machine) maySupersede() bool {
	return m.phase == phaseActive && !m.sess.noticing && !m.leave.superseded && !m.waitsFor(callSupersede) &&
		(m.set.owed || m.set.elders && m.has(GuardElders) && m.stopsHere())
}

func (m *Machine) pumpSupersede() {
	if m.maySupersede() && m.now >= m.set.elderAt {
		m.do(Supersede{Req: m.ask(call{kind: callSupersede}), Session: m.sess.id, Node: m.cfg.Node, Timeout: m.timeout()})
	}
}

// bornBefore tells whether this process is older than the one behind a member entry of its static name.
func (m *Machine) bornBefore(e Entry) bool {
	v, err := DecodeMember(e.Value)
	return err == nil && m.member.born < v.Born
}

// ownEntrySeen takes what a renewal tells of the own member entry: a process that opened its session before this one, and joined after
// it, has overwritten it.
func (m *Machine) ownEntrySeen(sent Time, keys map[string]KeyState) {
	s := &m.member
	if m.cfg.StaticID && m.has(GuardOwnEntry) && sent > s.wroteAt && !m.waitsFor(callMember) && keys[MemberKey(m.cfg.Node)].Version != s.version {
		m.set.known = false
	}
}

func (m *Machine) onSuperseded(ev Superseded) {
	c, ok := m.answered(ev.Req)
	if !ok {
		return
	}
	switch ev.Code {
	case OK:
		m.noteStamp(c.sent, ev.Stamp)
		m.foreign(ev.Stamp)
		m.set.elders, m.set.elderAt = ev.Older > 0, m.now+Time(m.fastPoll())
		if !m.set.owed {
			return
		}
		m.set.owed = false
		m.follow.dirty, m.follow.unseen = true, len(m.follow.blocked) // what it held may be free
		m.notify(Notify{Kind: KindWaiting, Reason: "an older process of this node's static name was told to stop: what it holds comes when it releases it, or when its session ends"})
	case SessionLost:
		m.sessionLost("the store says that the session has ended")
	case Taken:
		m.superseded()
	default:
		m.storeFailed("take-over of the static name", ev.Err)
		m.set.elderAt = m.now + Time(100*millisecond)
	}
}

// eldersStopped tells whether no older process of this node's static name works any more: this one speaks for them when all are to stop.
func (m *Machine) eldersStopped() bool { return !m.set.elders || !m.has(GuardElders) }

// superseded: a newer process took this node's static name. What runs here is drained and released, which hands it over at once; the node
// does not come back.
func (m *Machine) superseded() {
	if m.leave.superseded {
		return
	}
	if !m.has(GuardSupersededEnds) {
		m.sessionLost("a newer process took the name")
		return
	}
	m.notify(Notify{Kind: KindWaiting, Reason: ErrSuperseded.Error() + ": draining"})
	if m.leading() {
		m.stepDown()
	}
	m.stepDownHere("it was superseded")
	m.leave = leaveState{asked: true, at: m.now, evicting: true, superseded: true}
	m.touchAll()
}

// end is what a machine that left finishes with.
func (l *leaveState) end() error {
	if l.superseded {
		return ErrSuperseded
	}
	return nil
}

func (m *Machine) onDrain(ev Drain) {
	if m.member.draining != ev.On {
		m.member.draining = ev.On
		m.member.dirty = true
	}
}

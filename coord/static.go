package coord

// takeOver ends the older process under this node's static name, which a member entry shows: it can then no longer renew or claim. What
// it holds stays its own until it releases it, or until the end of its session at the store; this process claims
// under its own session when that is so, never because a claim carries its name.
func (m *Machine) takeOver() {
	m.phase = phaseSettling
	m.set.known = false
	m.do(Supersede{Req: m.ask(call{kind: callSupersede}), Session: m.sess.id, Node: m.cfg.Node, Timeout: m.timeout()})
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
		m.set.took = true // the entry that is read now may be overwritten
		m.notify(Notify{Kind: KindWaiting, Reason: "an older process of this node's static name was told to stop: what it holds comes when it releases it, or when its session ends"})
	case SessionLost:
		m.sessionLost("the store says that the session has ended")
	case Taken:
		m.superseded()
	default:
		m.storeFailed("take-over of the static name", ev.Err)
		m.set.retryAt = m.now + Time(100*millisecond)
	}
}

// superseded: a newer process took this node's static name. What runs here is drained and released, which hands it over at once; the node
// does not come back.
func (m *Machine) superseded() {
	if m.leave.superseded {
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

package coord

// leaveState is the end of a node's life in the group.
type leaveState struct {
	asked    bool
	at       Time
	evicting bool // no coordinator planned without this node: it gives everything back by itself
	closing  bool
	// superseded: a newer process took the name. Nothing is renewed or written any more, but releases.
	superseded bool
}

func (m *Machine) onLeave() {
	if m.leave.asked {
		return
	}
	m.leave = leaveState{asked: true, at: m.now}
	m.member.dirty = true
	m.lead.dirty = true
	m.touchAll()
}

// evictAt is when the node stops waiting for a plan without it.
func (m *Machine) evictAt() Time {
	return m.leave.at + Time(min(m.sess.renew, 5*second)+500*millisecond)
}

func (m *Machine) pumpLeave() {
	if !m.leave.asked || m.leave.closing || m.phase == phaseOpening {
		return
	}
	if m.sess.id != "" && m.phase == phaseActive {
		m.pumpHandOver()
		if !m.leave.evicting && m.now >= m.evictAt() {
			m.leave.evicting = true
			m.touchAll()
			m.pumpResources()
			m.pumpReleases()
		}
	}
	holds, stuck := m.holding()
	switch {
	case holds || m.sess.id != "" && (m.waitsFor(callClaims) || m.waitsFor(callReleases)):
		// The ordinary revoke path is under way.
	case m.sess.id != "" && (m.waitsFor(callMember) || m.waitsFor(callStepDown)): // nothing is closed under a write of its own
	case stuck:
		m.finish(ErrStuck) // their claims are left to expire
	case m.sess.id == "":
		m.finish(m.leave.end())
	case m.leading() && !m.handedOver():
	default:
		m.leave.closing = true
		m.do(CloseSession{Req: m.ask(call{kind: callClose}), Session: m.sess.id})
	}
}

// holding tells whether anything is still to end or to be given back, and else whether handlers are stuck. It stops at the first that
// is: a node that leaves asks after each worker that ended.
func (m *Machine) holding() (holds, stuck bool) {
	for _, r := range m.res { // any
		switch {
		case r.worker != 0 && !r.stuck, r.worker == 0 && (r.fence != 0 || r.ghost != 0) && m.sess.id != "":
			return true, false
		case r.worker != 0:
			stuck = true
		}
	}
	return false, stuck
}

// handedOver tells whether a leaving coordinator has published a plan without itself, or has waited long enough.
func (m *Machine) handedOver() bool {
	own, ok := m.lead.entries[m.cfg.Node]
	l := &m.lead
	return m.leave.evicting || l.publish == nil && !l.cold && (!ok || own.value.grants() == 0)
}

// pumpHandOver steps down once the plan without this node stands. Under a global barrier the successor makes that plan.
func (m *Machine) pumpHandOver() {
	if !m.leading() || m.waitsFor(callStepDown) || m.waitsFor(callPublish) || m.waitsFor(callBarrier) || m.now < m.lead.retryAt {
		return
	}
	if m.cfg.Mode == GlobalBarrier && len(m.lead.members) > 1 || m.handedOver() {
		m.stepDown()
	}
}

func (m *Machine) wakeLeave(w *wake) {
	if !m.leave.asked || m.leave.closing {
		return
	}
	if m.phase == phaseActive && !m.leave.evicting {
		w.by(m.evictAt())
	}
}

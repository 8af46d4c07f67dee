package coord

import "strings"

// foreign starts the acceptance of another incarnation, and tells whether the stamp is of one. It is true as well while one is
// being accepted.
func (m *Machine) foreign(s Stamp) bool {
	if s.Incarnation == "" || m.sess.id == "" {
		return false
	}
	if s.Incarnation != m.sess.incarnation && !m.sess.noticing {
		m.sess.noticing = true
		m.notify(Notify{Kind: KindStore, Reason: "the store's data is of another incarnation: writes may have been lost"})
	}
	return s.Incarnation != m.sess.incarnation
}

// pumpNotice reads the claims, in the new incarnation: all of them, since the store may have gone back to a moment at which this
// session held what it has given up since.
func (m *Machine) pumpNotice() {
	if !m.sess.noticing || m.waitsFor(callNotice) || m.now < m.follow.retryAt {
		return
	}
	// The settings, so that there is something to read, and an answer that carries the incarnation.
	m.read(call{kind: callNotice}, []string{ClaimPrefix}, []string{SettingsKey})
}

// noticed keeps exactly the claims that stand there with the same session and version, and accepts the incarnation.
func (m *Machine) noticed(ev ReadDone) {
	if ev.Code != OK {
		m.follow.retryAt = m.now + Time(100*millisecond)
		return
	}
	found := map[string]Entry{}
	for _, e := range ev.Entries {
		found[e.Key] = e
	}
	if m.has(GuardReread) {
		for _, name := range sortedKeys(m.res) { // also those claimed since the read was sent
			r := m.res[name]
			e := found[ClaimKey(name)]
			same := e.Session == m.sess.id && (e.Version == r.fence || !m.has(GuardSameVersion))
			if r.fence != 0 && !same {
				m.loseResource(name)
			}
		}
	}
	for _, e := range ev.Entries {
		if v, err := DecodeClaim(e.Value); err == nil && e.Session == m.sess.id && strings.HasPrefix(e.Key, ClaimPrefix) {
			m.ghost(v.Resource, e.Version) // unless it is held
		}
	}
	m.sess.incarnation = ev.Stamp.Incarnation
	m.sess.noticing = false
	m.sess.renewAt = m.now // the session is to be renewed in it at once
	if m.has(GuardLeadReset) {
		m.stepDownHere("the store lost data")
	}
	m.follow.forget()
	// Generations of another incarnation do not compare: who kept to the newest that it had stopped for would wait for ever
	// where the store went back to an earlier one that is open.
	m.bar = barrierState{}
	m.set.known = false
	m.set.reborn = true
	m.set.owed = m.set.took && m.has(GuardSupersede) // it may be undone
	m.member.version = 0
	m.phase = phaseSettling
	m.touchAll()
}

package coord

// maxWatched is how many claims that are waited for one renewal names; more take turns.
const maxWatched = 64

func (m *Machine) pumpRenew() {
	if m.sess.id == "" || m.leave.superseded || m.sess.noticing || m.now < m.sess.renewAt || m.waitsFor(callRenew) {
		return
	}
	c := call{kind: callRenew}
	if m.phase == phaseActive && m.has(GuardRenewWaiting) {
		c.names = m.watched(maxWatched)
	}
	r := Renew{
		Req:         m.ask(c),
		Session:     m.sess.id,
		Incarnation: m.sess.incarnation,
		Keys:        []string{SettingsKey, LeaderKey},
		Timeout:     m.sess.renew / 2,
	}
	if !m.has(GuardRenewIncarnation) {
		r.Incarnation = "" // a model of a store takes it for "any"
	}
	if m.phase == phaseActive {
		if m.has(GuardRenewAssignment) {
			r.Keys = append(r.Keys, AssignmentKey(m.cfg.Node))
		}
		if m.cfg.StaticID {
			r.Keys = append(r.Keys, MemberKey(m.cfg.Node))
		}
		if m.cfg.Mode == GlobalBarrier {
			r.Keys = append(r.Keys, BarrierKey)
		}
		r.Keys = append(r.Keys, claimKeys(c.names)...)
	}
	if m.leading() {
		r.Digests = m.leadDigests()
		r.Sweep, m.lead.sweep = m.lead.sweep, false
	}
	m.sess.renewAt = m.now + Time(m.sess.renew)
	m.do(r)
}

func (m *Machine) onRenewed(ev Renewed) {
	c, ok := m.answered(ev.Req)
	if !ok {
		return
	}
	switch ev.Code {
	case OK:
		m.renewed(c, ev)
	case Taken:
		m.superseded()
	case SessionLost:
		m.sessionLost("the store says that the session has ended")
	case Reincarnated:
		m.noteStamp(c.sent, ev.Stamp)
		m.foreign(ev.Stamp)
	default:
		m.sess.failures++
		m.storeFailed("renewal", ev.Err)
		wait := min(m.sess.renew/8, 250*millisecond)
		m.sess.renewAt = m.now + Time(wait/2+m.jitter(wait))
	}
}

func (m *Machine) renewed(c call, ev Renewed) {
	m.sess.failures = 0
	m.noteStamp(c.sent, ev.Stamp)
	m.trustFrom(c.sent)
	m.sess.renewAt = c.sent + Time(m.sess.renew)
	if m.foreign(ev.Stamp) {
		return
	}
	if m.set.known && ev.Keys[SettingsKey].Version != m.set.version {
		m.set.known = false
	}
	m.leaderSeen(c.sent, ev.Keys[LeaderKey])
	if m.phase == phaseActive {
		m.ownEntrySeen(c.sent, ev.Keys)
		m.watchedSeen(c, ev.Keys)
	}
	m.digestsSeen(ev.Digests)
}

// clockState watches the store's clock for steps.
type clockState struct {
	store      int64 // its time, in µs, in the last reply
	sent, seen Time  // the node's time between which that was
	holdUntil  Time  // no source that was not held is opened before
}

// noteStamp compares how far the store's clock advanced since the last reply with the longest that this node's clock can
// have: more than that is a step, by which sessions may have ended while their nodes trust them for up to a ttl more.
func (m *Machine) noteStamp(sent Time, s Stamp) {
	if s.Time == 0 {
		return
	}
	k := &m.clock
	if k.store != 0 {
		advanced := Duration(s.Time-k.store) * microsecond
		longest := Duration(m.now - k.sent)
		if tolerance := max(m.cfg.Margin/4, second); advanced > longest+tolerance && m.has(GuardStoreStep) {
			k.holdUntil = m.now + Time(max(m.cfg.TTL, m.sess.ttl))
			m.notify(Notify{Kind: KindStore, Reason: "the store's clock was stepped forward: nothing new is opened for one ttl"})
			m.touchAll()
		}
	}
	k.store, k.sent, k.seen = s.Time, sent, m.now
}

// held tells whether sources wait because the store's clock was stepped.
func (m *Machine) held() bool { return m.clock.holdUntil != 0 }

// holdEnds is when the hold ends, as far as is known. What was claimed before it is old news by then: while renewals fail, nobody
// knows whether the session lasts, because the clock may have been stepped again.
func (m *Machine) holdEnds() Time {
	if m.sess.failures > 0 {
		return never
	}
	return m.clock.holdUntil
}

// storeTime is the store's time in µs, as far as the node knows it.
func (m *Machine) storeTime() int64 {
	return m.clock.store + int64(Duration(m.now-m.clock.seen)/microsecond)
}

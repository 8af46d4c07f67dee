package coord

const firstBackoff = 100 * millisecond

// session is the node's life in the store.
type session struct {
	id          string // "" when there is none
	ttl, renew  Duration
	margin      Duration
	incarnation string // that the node has accepted
	trusted     Time   // until then, what this session claimed is ours
	renewAt     Time   // when to renew next
	noticing    bool   // the store's incarnation is another one: the own claims are to be read again
	failures    int    // renewals in a row
}

func (m *Machine) resetSession() {
	m.phase = phaseWaiting
	m.sess = session{}
	m.calls = map[uint64]call{}
	m.set = settingsState{}
	m.member.reset()
	m.follow.reset()
	m.queue.reset()
	m.lead = leadState{}
	m.bar = barrierState{}
	m.status.written = false
	m.leave.closing = false
}

func (m *Machine) pumpSession() {
	if m.phase != phaseWaiting || m.now < m.openAt || m.leave.asked {
		return
	}
	m.phase = phaseOpening
	m.do(OpenSession{Req: m.ask(call{kind: callOpen}), TTL: m.cfg.TTL})
}

func (m *Machine) onOpened(ev Opened) {
	c, ok := m.answered(ev.Req)
	if !ok {
		return
	}
	switch ev.Code {
	case OK:
		m.opened(c, ev)
	case Fatal:
		m.finish(ev.Err)
	default:
		m.storeFailed("session could not be opened: the attempt", ev.Err)
		m.phase = phaseWaiting
		m.openAt = m.now + Time(m.backoff/2+m.jitter(m.backoff))
		m.backoff = min(2*m.backoff, m.cfg.Renew)
	}
}

func (m *Machine) opened(c call, ev Opened) {
	m.phase = phaseSettling
	m.backoff = firstBackoff
	s := &m.sess
	s.id, s.ttl, s.incarnation = ev.Session, ev.TTL, ev.Stamp.Incarnation
	// A server may grant another ttl than was asked for; the ratios stay.
	s.renew = scale(m.cfg.Renew, ev.TTL, m.cfg.TTL)
	s.margin = scale(m.cfg.Margin, ev.TTL, m.cfg.TTL)
	s.renewAt = c.sent + Time(s.renew)
	if m.member.born == 0 {
		m.member.born = ev.Stamp.Time
	}
	m.trustFrom(c.sent)
	m.noteStamp(c.sent, ev.Stamp)
	m.do(Listen{Session: s.id, Address: NodeAddress(m.cfg.Node)})
}

func scale(d, num, den Duration) Duration {
	if num == den || den == 0 {
		return d
	}
	return Duration(float64(d) * float64(num) / float64(den))
}

// trustFrom extends the trust after a successful renewal. sent is the moment just before it was sent: the session
// cannot end earlier than ttl after that.
func (m *Machine) trustFrom(sent Time) {
	from, margin := sent, m.sess.margin
	if !m.has(GuardSent) {
		from = m.now
	}
	if !m.has(GuardMargin) {
		margin = 0
	}
	m.sess.trusted = max(m.sess.trusted, from+Time(m.sess.ttl-margin))
}

// TrustedUntil is the moment up to which work under this machine's claims is ours. It is in the past when there is none.
func (m *Machine) TrustedUntil() Time {
	if m.sess.id == "" || m.finished {
		return 0
	}
	if !m.has(GuardTrust) {
		return never
	}
	return m.sess.trusted
}

// guardTrust runs before every event: a machine that was frozen learns here that its time is over.
func (m *Machine) guardTrust() {
	if m.sess.id != "" && m.has(GuardTrust) && m.now >= m.sess.trusted {
		m.fence("no renewal succeeded in time: what this node held may be another's by now")
	}
}

// sessionLost: the store says that the session has ended. That is no news of one that this node is closing: a call that was
// under way then may be answered so.
func (m *Machine) sessionLost(reason string) {
	if !m.leave.closing {
		m.fence(reason)
	}
}

// fence gives up all that the session held, and the session. It is left to expire unless all its work has ended: it
// must not free a claim under a handler that still runs.
func (m *Machine) fence(reason string) {
	if m.sess.id == "" {
		return
	}
	m.notify(Notify{Kind: KindFenced, Reason: reason})
	m.stepDownHere("its session ended")
	for _, name := range sortedKeys(m.res) {
		if m.has(GuardFenceRejoin) {
			m.loseResource(name)
		}
	}
	m.old = append(m.old, m.sess.id)
	m.resetSession()
	m.openAt = m.now + Time(m.jitter(m.cfg.Renew))
	m.closeOld()
}

// closeOld closes sessions that were given up, once nothing runs that was started under them.
func (m *Machine) closeOld() {
	var busy []string
	for _, id := range m.old {
		if m.runs[id] > 0 {
			busy = append(busy, id)
			continue
		}
		m.do(CloseSession{Session: id})
	}
	m.old = busy
}

func (m *Machine) onClosed(ev Closed) {
	if c, ok := m.answered(ev.Req); ok && c.kind == callClose {
		m.finish(m.leave.end())
	}
}

func (m *Machine) wakeSession(w *wake) {
	if m.sess.id != "" {
		if m.has(GuardTrust) {
			w.by(m.sess.trusted)
		}
		switch {
		case m.sess.noticing:
			if !m.waitsFor(callNotice) {
				w.by(m.follow.retryAt)
			}
		case !m.waitsFor(callRenew) && !m.leave.superseded:
			w.by(m.sess.renewAt)
		}
		if !m.set.known && m.maySettle() {
			w.by(m.set.retryAt)
		}
		return
	}
	if m.phase == phaseWaiting && !m.leave.asked {
		w.by(max(m.openAt, m.now))
	}
}

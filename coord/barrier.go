package coord

// barrierState is what a node knows of the global barrier. In ResourceBarrier mode it is unused.
type barrierState struct {
	version    int64
	value      Barrier
	stoppedFor int64 // the newest generation for which this node began to stop
	acked      int64 // the newest for which its member entry says that it has stopped
}

func barrierOf(e Entry) Barrier {
	b, err := DecodeBarrier(e.Value)
	if err != nil {
		return Barrier{}
	}
	return b
}

// barrierSeen takes a newly read barrier: a closed one stops everything here.
func (m *Machine) barrierSeen(e Entry) {
	b := &m.bar
	if e.Version == b.version {
		return
	}
	b.version, b.value = e.Version, barrierOf(e)
	if l := &m.lead; m.leading() && e.Version != l.barrierV && !m.waitsFor(callBarrier) {
		l.cold, l.dirty = true, true // an own write whose outcome was unknown has arrived
	}
	if !b.value.Open {
		b.stoppedFor = max(b.stoppedFor, b.value.Generation)
	}
	m.touchAll()
}

// barrierLets tells whether work is allowed: always in ResourceBarrier mode; else when the barrier is open for the very
// generation that was assigned, and not older than the one that this node stopped for.
func (m *Machine) barrierLets() bool {
	if m.cfg.Mode == ResourceBarrier {
		return true
	}
	b := &m.bar
	open := b.value.Open || !m.has(GuardBarrierLatch) && b.value.Generation > 0
	return open && b.value.Generation == m.follow.gen && (b.value.Generation >= b.stoppedFor || !m.has(GuardBarrierLatch))
}

// barrierOpenAwaited tells whether the node has stopped and waits for the barrier to open.
func (m *Machine) barrierOpenAwaited() bool {
	return m.cfg.Mode == GlobalBarrier && !m.barrierLets()
}

// stopsHere tells whether the barrier is closed, and what runs here has stopped, but this node has not said so yet. What is stuck does
// not hold the others up.
func (m *Machine) stopsHere() bool {
	b := &m.bar
	if m.cfg.Mode != GlobalBarrier || m.phase != phaseActive || b.version == 0 || b.value.Open || b.acked >= b.value.Generation {
		return false
	}
	if m.waitsFor(callClaims) {
		return false
	}
	for _, r := range m.res { // any
		if (r.fence != 0 || r.worker != 0 || r.ghost != 0) && !r.stuck {
			return false
		}
	}
	return true
}

// pumpBarrier says so, once this node has stopped for the closed barrier.
func (m *Machine) pumpBarrier() {
	if m.stopsHere() && m.eldersStopped() {
		m.bar.acked = m.bar.value.Generation
		m.member.dirty = true
	}
}

// barrierCloses tells the coordinator whether it waits for nodes to stop.
func (m *Machine) barrierCloses() bool {
	l := &m.lead
	return m.cfg.Mode == GlobalBarrier && l.barrierV != 0 && !l.barrier.Open
}

// allStopped tells the coordinator whether every live member has stopped for the closed barrier, and every process that another one of
// its static name has made a stranger: when that one has gone again, nobody speaks for it, and its claims alone show it. Nor does one that joined
// last but opened its session first: Supersede does not tell it of the other.
func (m *Machine) allStopped() bool {
	l := &m.lead
	if !m.has(GuardBarrierAcks) {
		return true
	}
	for _, mi := range l.members { // any
		if mi.Stopped < l.barrier.Generation {
			return false
		}
	}
	strangers := l.namesakes
	for _, node := range l.holders { // any
		_, member := l.members[node]
		strangers = strangers || !member
	}
	if strangers && m.has(GuardElders) {
		m.planBy(m.now + Time(m.sess.renew)) // no hint tells of the end of its session
		return false
	}
	return true
}

// writeBarrier closes or opens it, and wakes everybody.
func (m *Machine) writeBarrier(b Barrier) {
	l := &m.lead
	l.nextBarrier = b
	t := Txn{
		Checks: append(m.leadCheck(), Check{Key: BarrierKey, Version: l.barrierV}),
		Puts:   []Put{{Key: BarrierKey, Value: encode(b)}},
	}
	for _, node := range sortedKeys(l.members) {
		t.Wake = append(t.Wake, NodeAddress(node))
	}
	m.commit(call{kind: callBarrier, names: []string{BarrierKey}}, t)
}

func (m *Machine) barrierWritten(c call, ev Committed) {
	l := &m.lead
	if !m.ofTerm(c) {
		return
	}
	r := outcome(ev, 0)
	if m.deposed(r) {
		return
	}
	l.dirty = true
	if r.Code != OK {
		l.cold, l.retryAt = true, m.now+Time(50*millisecond)
		return
	}
	l.barrierV, l.barrier = r.Versions[BarrierKey], l.nextBarrier
	m.follow.dirty = true
}

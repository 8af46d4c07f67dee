package coord

// maxBatch is how many transactions one commit has at most: a store must not be blocked by a large group.
const maxBatch = 128

// claimState has the queues of claims and releases: sets of names.
type claimState struct {
	wanted    nameQueue       // to be claimed
	inFlight  map[string]bool // claims that are unanswered
	free      map[string]Time // since when what is wanted is free, as far as is known
	unsure    map[string]bool // claims of an unknown outcome, which may still be applied
	toRelease nameQueue

	stale bool // the store refused: the assignment is another one. Nothing is asked again before it was read

	graceUntil         Time // no claim before: the store's data is too young
	claimAt, releaseAt Time // no claim, no release before: the last one failed
}

func (q *claimState) reset() {
	*q = claimState{inFlight: map[string]bool{}, unsure: map[string]bool{}, free: map[string]Time{}}
}

// wantClaim queues a claim of a resource that is assigned to this node.
func (m *Machine) wantClaim(name string) {
	if _, blocked := m.follow.blocked[name]; blocked || m.claiming(name) || m.leave.asked {
		return
	}
	if _, known := m.queue.free[name]; !known && m.cfg.Measure {
		m.queue.free[name] = m.now
	}
	m.queue.wanted.add(name)
}

// claiming tells whether a claim of the resource is unanswered.
func (m *Machine) claiming(name string) bool {
	return m.queue.inFlight[name]
}

// mayClaim tells whether nothing but time keeps claims from being sent.
func (m *Machine) mayClaim() bool {
	return m.phase == phaseActive && !m.leave.asked && !m.queue.stale && !m.sess.noticing && m.set.known && m.member.version != 0 &&
		!m.set.owed && !m.waitsFor(callClaims) && !m.waitsFor(callMember)
}

func (m *Machine) pumpClaims() {
	q := &m.queue
	if q.wanted.len() == 0 || !m.mayClaim() || m.now < max(q.graceUntil, q.claimAt) {
		return
	}
	c := call{kind: callClaims}
	var txns []Txn
	for len(txns) < maxBatch {
		name, ok := q.wanted.take()
		if !ok {
			break
		}
		if r := m.res[name]; !m.desired(name) || r != nil && (r.fence != 0 || r.worker != 0 || r.ghost != 0) {
			delete(q.free, name)
			continue
		}
		c.names = append(c.names, name)
		txns = append(txns, m.claimTxn(name))
		q.inFlight[name] = true
	}
	if len(txns) > 0 {
		m.commit(c, txns...)
	}
}

func (m *Machine) claimTxn(name string) Txn {
	key := ClaimKey(name)
	t := Txn{
		// The member entry: a claim that was sent before this node declined the resource must not arrive after it.
		Checks: []Check{{Key: MemberKey(m.cfg.Node), Version: m.member.version}},
		Puts:   []Put{{Key: key, Value: encode(Claim{Resource: name, Node: m.cfg.Node, Since: m.storeTime()}), Bound: true}},
		Grace:  m.grace(),
	}
	if m.has(GuardClaimFree) {
		t.Checks = append(t.Checks, Check{Key: key})
	}
	if m.has(GuardClaimAssignment) {
		t.Checks = append(t.Checks, Check{Key: AssignmentKey(m.cfg.Node), Version: m.follow.seen})
	}
	if m.cfg.Mode == GlobalBarrier && m.has(GuardBarrierLatch) {
		t.Checks = append(t.Checks, Check{Key: BarrierKey, Version: m.bar.version})
	}
	return t
}

func (m *Machine) claimed(c call, ev Committed) {
	f, q := &m.follow, &m.queue
	young := false
	for i, name := range c.names {
		delete(q.inFlight, name)
		r := outcome(ev, i)
		m.touch(name)
		switch r.Code {
		case OK:
			delete(q.unsure, name)
			m.obtained(name, r.Versions[ClaimKey(name)])
		case TooYoung:
			young = true
			q.wanted.add(name)
		case Conflict: // what refused this one refuses those before it
			delete(q.unsure, name)
			m.claimRefused(name, r.Versions)
		case Unknown:
			q.unsure[name] = true
			f.blocked[name] = m.now // a read tells what became of it
			f.dirty = true
		default:
			q.claimAt = m.now + Time(50*millisecond+m.jitter(100*millisecond))
			q.wanted.add(name)
		}
	}
	if young {
		m.waitGrace(ev.Stamp)
	}
}

// obtained: the own commit was applied, so the claim may be worked.
func (m *Machine) obtained(name string, fence int64) {
	r := m.res[name]
	if r == nil {
		r = &resource{}
		m.res[name] = r
	}
	r.fence, r.phase, r.since, r.ghost, r.doubted = fence, resourceClaimed, m.now, 0, false
	waited := Duration(0)
	if since, known := m.queue.free[name]; known {
		waited = Duration(m.now - since)
		delete(m.queue.free, name)
	}
	m.notify(Notify{Kind: KindClaimed, Resource: name, Fence: fence, Waited: waited})
}

func (m *Machine) claimRefused(name string, current map[string]int64) {
	f, q := &m.follow, &m.queue
	if v, ok := current[AssignmentKey(m.cfg.Node)]; ok && v != f.seen {
		f.dirty, q.stale = true, true
		q.wanted.add(name) // unless the assignment says otherwise, when it was read
		q.claimAt = m.now + Time(10*millisecond)
	}
	if v, ok := current[MemberKey(m.cfg.Node)]; ok && v != m.member.version && !m.waitsFor(callMember) {
		m.set.known = false // read the own entry again
		q.wanted.add(name)
		q.claimAt = m.now + Time(10*millisecond)
	}
	if v, ok := current[BarrierKey]; ok && v != m.bar.version {
		f.dirty = true
	}
	if current[ClaimKey(name)] != 0 {
		q.wanted.remove(name)
		delete(q.free, name)
		if _, waits := f.blocked[name]; !waits {
			f.blocked[name] = m.now // read whose it is, and how long it can last
			f.dirty = true
		}
	}
}

// waitGrace puts claims off until the store's data is old enough, and says why.
func (m *Machine) waitGrace(s Stamp) {
	left := Duration(s.Since-s.Time)*microsecond + m.grace()
	m.queue.graceUntil = m.now + Time(max(left, 0)+millisecond)
	m.notify(Notify{Kind: KindWaiting, Reason: "the store's data is new: nodes that worked under data that was lost may still do so"})
}

// ghost is a claim of this session that was read, but not obtained by an own commit whose answer arrived: it is never worked, but
// deleted and claimed again.
func (m *Machine) ghost(name string, version int64) {
	r := m.res[name]
	if r == nil {
		r = &resource{}
		m.res[name] = r
	}
	if r.fence != 0 || m.claiming(name) || m.releasing(name) {
		return
	}
	if !m.has(GuardOwnCommit) {
		m.obtained(name, version)
		m.touch(name)
		return
	}
	r.ghost = version
	m.touch(name)
}

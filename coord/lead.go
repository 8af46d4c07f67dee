package coord

// leadState is the coordinator's side of a machine.
type leadState struct {
	epoch int64 // version of the own leader entry; 0: this node does not coordinate
	since Time  // when the term began
	cold  bool  // everything is to be read: the term has just begun, or a write's outcome is not known
	dirty bool  // members or resources may have changed: read them
	sweep bool  // the next renewal removes what ended sessions left behind

	retryAt Time // no read before
	checkAt Time // when the next session of a member can end; 0: no reason to look
	planAt  Time // when joins have been waited for; 0: nothing waits

	members map[string]memberInfo // live, as last read
	entries map[string]published  // assignments as they stand in the store
	digests map[string]uint64     // of the very lists that the last plan was made of
	lists   map[string]namedList  // long static lists, by node

	gen        int64
	resources  []string         // sorted; for OriginStatic made from the lists
	labelled   []Registration   // those of them that ask for labels
	weights    map[string]int32 // of those whose weight is not 1
	control    controls
	reserved   map[string]int64  // static nodes that have left, and until when their share waits (store's time, µs)
	holders    map[string]string // who holds what is to be given back, as last read
	claimsRead bool              // holders is of all claims, and no entry was written since
	namesakes  bool              // something is held under a static name by another process than its member entry's, as last read

	last    map[string]Member // live members and those waited for, as last read
	missing map[string]Time   // nodes with an assignment and no member entry: since when
	waitFor map[string]Time   // those of them whose share waits for them: until when
	reborn  Time              // the term began in a new incarnation of the store: all of them are waited for until then

	joinFirst, joinLast Time // of the joins that wait for a plan
	joining             int  // how many

	rewrite  bool    // a new coordinator writes every entry
	pending  int     // moves that wait for others to end
	causes   []Cause // of the plan for which the barrier was closed
	unplaced []string
	reported []string
	publish  *publication
	disc     discovery

	barrierV    int64 // GlobalBarrier
	barrier     Barrier
	nextBarrier Barrier // being written
}

// memberInfo is one live member.
type memberInfo struct {
	Member
	version int64
	session string
	left    Duration
}

type namedList struct {
	hash  string
	names []string
}

func (m *Machine) leading() bool { return m.lead.epoch != 0 }

// elected begins a term. A new coordinator reads everything.
func (m *Machine) elected(epoch int64) {
	m.lead = leadState{
		epoch: epoch, since: m.now, cold: true, dirty: true, rewrite: true,
		control: newControls(),
		lists:   map[string]namedList{}, last: map[string]Member{}, missing: map[string]Time{}, waitFor: map[string]Time{},
	}
	m.follow.leader, m.follow.leaderV, m.follow.electAt = m.cfg.Node, epoch, 0
	if m.set.reborn {
		m.lead.reborn = m.now + Time(m.sess.ttl)
	}
	m.do(Listen{Session: m.sess.id, Address: CoordinatorAddress})
	m.notify(Notify{Kind: KindElected, Node: m.cfg.Node})
}

// ofTerm tells whether an answer belongs to this term: one of an earlier term says nothing of what is being done now.
func (m *Machine) ofTerm(c call) bool { return m.leading() && c.sent >= m.lead.since }

// stepDownHere ends the term on this side; the entry in the store is another's, or ends with the session.
func (m *Machine) stepDownHere(reason string) {
	if !m.leading() {
		return
	}
	m.status.dirty = m.status.dirty || m.lead.pending > 0 || len(m.lead.reported) > 0
	m.lead = leadState{}
	m.follow.ledUntil = m.now
	m.notify(Notify{Kind: KindDeposed, Node: m.cfg.Node, Reason: reason})
}

func (m *Machine) mayCampaign() bool {
	return !m.leading() && !m.leave.asked && m.member.version != 0 && !m.waitsFor(callCampaign)
}

// campaign takes the leader entry if it is free.
func (m *Machine) campaign() {
	f := &m.follow
	if f.electAt == 0 || m.now < f.electAt || !m.mayCampaign() {
		return
	}
	f.electAt = 0
	m.commit(call{kind: callCampaign, names: []string{m.cfg.Node}}, Txn{
		Checks: []Check{{Key: LeaderKey}, {Key: MemberKey(m.cfg.Node), Version: m.member.version}},
		Puts:   []Put{{Key: LeaderKey, Value: encode(Leader{Node: m.cfg.Node}), Bound: true}},
	})
}

func (m *Machine) campaigned(ev Committed) {
	r := outcome(ev, 0)
	switch r.Code {
	case OK:
		m.elected(r.Versions[LeaderKey])
	case Conflict, Unknown:
		m.follow.dirty = true // read who holds it
	default:
		m.follow.electAt = m.now + Time(50*millisecond+m.jitter(100*millisecond))
	}
}

// leadCheck guards every write of a coordinator: one that was deposed changes nothing.
func (m *Machine) leadCheck() []Check {
	if !m.has(GuardEpoch) {
		return nil
	}
	return []Check{{Key: LeaderKey, Version: m.lead.epoch}}
}

// deposed looks at a refused write for the leader entry, and ends the term if that was the reason.
func (m *Machine) deposed(r Result) bool {
	v, ok := r.Versions[LeaderKey]
	if r.Code != Conflict || !ok || v == m.lead.epoch {
		return false
	}
	m.stepDownHere("another node holds the leader entry")
	m.follow.dirty = true
	return true
}

func (m *Machine) pumpLead() {
	if m.phase != phaseActive || m.sess.noticing {
		return
	}
	if !m.leading() {
		m.campaign()
		return
	}
	l := &m.lead
	m.pumpDiscovery()
	if l.checkAt != 0 && m.now >= l.checkAt {
		l.dirty, l.checkAt = true, 0
	}
	if l.planAt != 0 && m.now >= l.planAt {
		l.dirty, l.planAt = true, 0
	}
	if l.publish != nil {
		m.pumpPublish()
	}
	if l.publish == nil && l.dirty && m.now >= l.retryAt && m.mayGather() {
		m.gather()
	}
}

// mayGather tells whether nothing is unanswered that a plan must not be made beside: a barrier that is being written, above all.
func (m *Machine) mayGather() bool {
	return !m.waitsFor(callGather) && !m.waitsFor(callLeadLists) && !m.waitsFor(callStepDown) && !m.waitsFor(callBarrier)
}

// leadDigests are the prefixes whose digests a coordinator's renewal asks for.
func (m *Machine) leadDigests() []string {
	d := []string{MemberPrefix, ControlPrefix}
	if m.cfg.Origin == OriginRegistered {
		d = append(d, ResourcePrefix)
	}
	return d
}

// digestsSeen compares what a renewal tells with the lists that the last plan was made of.
func (m *Machine) digestsSeen(digests map[string]Digest) {
	l := &m.lead
	if !m.leading() {
		return
	}
	for _, prefix := range m.leadDigests() {
		d, ok := digests[prefix]
		if !ok {
			continue // the renewal was sent before the election
		}
		if !m.has(GuardDigest) {
			// Without the guard: the first digest seen after a plan is taken for that of the plan.
			if _, known := l.digests[prefix]; !known && !l.cold {
				l.digests[prefix] = d.Sum
				continue
			}
		}
		if l.digests[prefix] != d.Sum {
			l.dirty = true
		}
		if prefix == MemberPrefix {
			m.checkBy(d.Left)
		}
	}
}

// checkBy looks again when the first session of a member can end.
func (m *Machine) checkBy(left Duration) {
	if left >= 0 {
		m.lead.checkAt = m.now + Time(left+millisecond)
	}
}

func (m *Machine) wakeLead(w *wake) {
	if !m.leading() || m.sess.noticing {
		return
	}
	l := &m.lead
	w.by(l.checkAt)
	w.by(l.planAt)
	m.wakeDiscovery(w)
	if l.publish != nil {
		if !m.waitsFor(callPublish) {
			w.by(max(l.retryAt, m.now))
		}
		return
	}
	if l.dirty && m.mayGather() {
		w.by(max(l.retryAt, m.now))
	}
}

// stepDown gives the leader entry up, and wakes two successors: one of them may be leaving as well.
func (m *Machine) stepDown() {
	wake := []string{}
	for _, name := range sortedKeys(m.lead.members) {
		if mi := m.lead.members[name]; name != m.cfg.Node && !mi.Leaving {
			if wake = append(wake, NodeAddress(name)); len(wake) == 2 {
				break
			}
		}
	}
	m.commit(call{kind: callStepDown, names: []string{m.cfg.Node}}, Txn{
		Checks:  []Check{{Key: LeaderKey, Version: m.lead.epoch}},
		Deletes: []string{LeaderKey},
		Wake:    wake,
	})
}

func (m *Machine) steppedDown(ev Committed) {
	switch outcome(ev, 0).Code {
	case OK, Conflict:
		m.stepDownHere("it leaves")
	default:
		m.lead.retryAt = m.now + Time(50*millisecond)
	}
}

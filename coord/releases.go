package coord

// queueRelease asks for the release of a claim whose worker has ended, or of a ghost.
func (m *Machine) queueRelease(name string) { m.queue.toRelease.add(name) }

// releasing tells whether a release of the resource is unanswered.
func (m *Machine) releasing(name string) bool {
	r := m.res[name]
	return r != nil && r.phase == resourceReleasing
}

// mayRelease tells whether no release is unanswered, and none was refused for an assignment that is yet to be read.
func (m *Machine) mayRelease() bool {
	return !m.waitsFor(callReleases) && (!m.queue.stale || m.leave.evicting)
}

func (m *Machine) pumpReleases() {
	q := &m.queue
	if !m.mayRelease() || q.toRelease.len() == 0 || m.sess.id == "" || m.sess.noticing || m.now < q.releaseAt {
		return
	}
	c := call{kind: callReleases}
	var txns []Txn
	for len(txns) < maxBatch {
		name, ok := q.toRelease.take()
		if !ok {
			break
		}
		r := m.res[name]
		if r == nil || !m.releasable(name, r) {
			continue
		}
		version := r.fence
		if version == 0 {
			version = r.ghost
		}
		c.names = append(c.names, name)
		c.versions = append(c.versions, version)
		txns = append(txns, m.releaseTxn(name, version))
		if m.has(GuardReleaseAnswered) {
			r.phase = resourceReleasing
		}
	}
	if len(txns) > 0 {
		m.commit(c, txns...)
	}
}

// releasable looks once more, since things may have changed while the release was queued.
func (m *Machine) releasable(name string, r *resource) bool {
	if r.phase == resourceNone {
		return r.ghost != 0
	}
	if !m.has(GuardStopFirst) {
		return r.phase == resourceStopped || r.phase == resourceDraining
	}
	if r.phase != resourceStopped {
		return false
	}
	if m.desired(name) && !r.unsure {
		m.reconcile(name) // it came back: the claim was kept, go on under it
		return false
	}
	return true
}

func (m *Machine) releaseTxn(name string, version int64) Txn {
	key := ClaimKey(name)
	t := Txn{Deletes: []string{key}}
	if m.barrierLets() { // else the member entry tells, once for all
		t.Wake = []string{CoordinatorAddress}
	}
	next, ok := m.follow.leaving[name]
	switch {
	case m.leave.superseded:
		t.Wake = []string{NodeAddress(m.cfg.Node)} // the newer process has the same address
		if m.cfg.Mode == GlobalBarrier {
			t.Wake = append(t.Wake, CoordinatorAddress) // the newer one may have gone again
		}
	case ok && next != "":
		t.Wake = []string{NodeAddress(next)}
		if s := &m.set.value; s.MaxMoving > 0 || s.MaxMovingNode > 0 || s.MaxActive > 0 {
			t.Wake = append(t.Wake, CoordinatorAddress) // others may move now
		}
	}
	if m.has(GuardReleaseVersion) {
		t.Checks = append(t.Checks, Check{Key: key, Version: version})
	}
	// What the assignment took away is given to whom the assignment names, if it is still that one. What this node gives up by
	// itself needs no assignment.
	if m.has(GuardReleaseAssignment) && m.follow.applied && !m.follow.share[name] && m.barrierLets() && !m.leave.evicting {
		t.Checks = append(t.Checks, Check{Key: AssignmentKey(m.cfg.Node), Version: m.follow.seen})
	}
	return t
}

func (m *Machine) released(c call, ev Committed) {
	f, q := &m.follow, &m.queue
	for i, name := range c.names {
		r := m.res[name]
		if r == nil || r.fence != c.versions[i] && r.ghost != c.versions[i] {
			continue // it was lost meanwhile
		}
		m.touch(name)
		if r.phase == resourceReleasing {
			r.phase = resourceStopped
			if r.fence == 0 {
				r.phase = resourceNone
			}
		}
		res := outcome(ev, i)
		now, named := res.Versions[ClaimKey(name)]
		switch {
		case res.Code == OK, res.Code == Conflict && named && now != c.versions[i]:
			m.freed(name, r)
		case res.Code == Conflict: // the assignment is another one: it is read, and then looked at again
			f.dirty, q.stale = true, true
			q.toRelease.add(name)
			q.releaseAt = m.now + Time(5*millisecond)
		default: // unknown: it is sent again until it is known
			r.unsure = r.unsure || res.Code == Unknown && m.has(GuardReleaseAnswered)
			q.toRelease.add(name)
			q.releaseAt = m.now + Time(50*millisecond+m.jitter(50*millisecond))
		}
	}
}

// freed: the claim is not ours any more.
func (m *Machine) freed(name string, r *resource) {
	if r.fence != 0 {
		m.notify(Notify{Kind: KindReleased, Resource: name, Fence: r.fence, Node: m.follow.leaving[name]})
	}
	r.fence, r.ghost, r.phase, r.unsure = 0, 0, resourceNone, false
}

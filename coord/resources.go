package coord

// resource is what this node has to do with one resource.
type resource struct {
	fence   int64 // version of the claim obtained by an own commit; 0: none
	phase   resourcePhase
	worker  int64 // fence under which a worker runs, also one whose claim is lost; 0: none
	since   Time
	stuck   bool
	unsure  bool   // an earlier release may still arrive: it is sent again until its outcome is known
	ghost   int64  // version of a claim of this session that was read, but not obtained
	under   string // the session that the worker was started under
	doubted bool   // the claim is being read
}

type resourcePhase uint8

const (
	resourceNone      resourcePhase = iota
	resourceClaimed                 // not started yet
	resourceWorking                 // StartWork was given
	resourceDraining                // Revoke was given
	resourceStopped                 // the worker has ended
	resourceReleasing               // the release is unanswered
)

var resourcePhases = [...]string{"lost", "claimed", "working", "draining", "stopped", "releasing"}

func (m *Machine) touch(name string) { m.todo[name] = true }

// touchAll looks at everything this node holds or should hold.
func (m *Machine) touchAll() {
	for name := range m.res { // into a set
		m.todo[name] = true
	}
	for name := range m.follow.share { // into a set
		m.todo[name] = true
	}
}

// working tells whether a worker runs, also a lost one.
func (m *Machine) working() bool {
	for _, r := range m.res { // any
		if r.worker != 0 {
			return true
		}
	}
	return false
}

// desired tells whether this node should work a resource now.
func (m *Machine) desired(name string) bool {
	return m.follow.share[name] && !m.leave.evicting && m.barrierLets() && !m.declines(name)
}

// pumpResources brings every resource that something happened to towards what is desired of it.
func (m *Machine) pumpResources() {
	if m.phase != phaseActive && len(m.res) == 0 {
		return
	}
	if m.held() && m.now >= m.holdEnds() {
		m.clock.holdUntil = 0
		m.touchAll()
	}
	if len(m.todo) == 0 {
		return
	}
	todo := m.todo
	m.todo = map[string]bool{}
	for _, name := range sortedKeys(todo) {
		m.reconcile(name)
	}
}

func (m *Machine) reconcile(name string) {
	r := m.res[name]
	if r == nil {
		if m.phase == phaseActive && m.desired(name) {
			m.wantClaim(name)
		}
		return
	}
	desired, paused := m.desired(name), m.follow.paused[name]
	switch r.phase {
	case resourceNone:
		switch {
		case r.ghost != 0:
			m.queueRelease(name)
		case r.worker != 0: // a lost worker still runs: nothing of this resource is claimed beside it
		case desired:
			m.wantClaim(name)
		default:
			delete(m.res, name)
		}
	case resourceClaimed, resourceStopped:
		switch {
		case desired && paused && !r.unsure: // the claim is kept, so that it resumes at once
		case desired && !r.unsure:
			m.start(name, r)
		default:
			r.phase = resourceStopped
			m.queueRelease(name)
		}
	case resourceWorking:
		if !desired || paused {
			m.revoke(name, r)
		}
	}
}

func (m *Machine) start(name string, r *resource) {
	if m.held() || m.sess.noticing || r.worker != 0 {
		return // looked at again when that is over
	}
	r.phase, r.worker, r.under, r.stuck = resourceWorking, r.fence, m.sess.id, false
	m.runs[r.under]++
	m.do(StartWork{Resource: name, Fence: r.fence})
}

func (m *Machine) revoke(name string, r *resource) {
	r.phase = resourceDraining
	m.notify(Notify{Kind: KindRevoked, Resource: name, Fence: r.fence, Node: m.follow.leaving[name]})
	m.do(Revoke{Resource: name, Fence: r.fence, Stopping: m.leave.asked})
	if !m.has(GuardStopFirst) {
		m.queueRelease(name)
	}
}

// loseResource gives up a claim that is no longer ours. Its worker is told; until it ends, nothing of the resource is claimed.
func (m *Machine) loseResource(name string) {
	r := m.res[name]
	if r == nil {
		return
	}
	fence := r.fence
	r.fence, r.phase, r.ghost, r.unsure = 0, resourceNone, 0, false
	m.touch(name)
	if fence == 0 {
		return
	}
	m.notify(Notify{Kind: KindLost, Resource: name, Fence: fence})
	if r.worker != 0 {
		m.do(Lose{Resource: name, Fence: r.worker})
	}
}

// workerEnded notes the end of a worker, and returns its resource if the claim is still held.
func (m *Machine) workerEnded(name string, fence int64) *resource {
	r := m.res[name]
	if r == nil || r.worker != fence {
		return nil
	}
	r.worker, r.stuck = 0, false
	if m.runs[r.under]--; m.runs[r.under] == 0 {
		delete(m.runs, r.under)
	}
	m.touch(name)
	m.closeOld()
	if r.fence != fence {
		return nil
	}
	if r.phase == resourceWorking || r.phase == resourceDraining {
		r.phase = resourceStopped
	}
	return r
}

func (m *Machine) onStopped(ev Stopped) {
	if d, ok := m.member.declined[ev.Resource]; ok && d.until == 0 {
		delete(m.member.declined, ev.Resource) // it could be opened: begin to count anew
	}
	m.workerEnded(ev.Resource, ev.Fence)
}

func (m *Machine) onStuck(ev Stuck) {
	if r := m.res[ev.Resource]; r != nil && r.worker == ev.Fence {
		r.stuck = true
		m.notify(Notify{Kind: KindStuck, Resource: ev.Resource, Fence: ev.Fence,
			Reason: "handlers outlived drain and grace; the claim stays until they return"})
	}
}

func (m *Machine) onDoubt(ev Doubt) {
	if r := m.res[ev.Resource]; r != nil && r.fence == ev.Fence && !r.doubted && m.sess.id != "" {
		r.doubted = true
		m.read(call{kind: callDoubt, names: []string{ev.Resource}, versions: []int64{ev.Fence}}, nil, []string{ClaimKey(ev.Resource)})
	}
}

// doubted compares the claim that stands there with the one that was doubted.
func (m *Machine) doubted(c call, ev ReadDone) {
	r := m.res[c.names[0]]
	if r != nil && r.fence == c.versions[0] {
		r.doubted = false
	}
	if ev.Code != OK || r == nil || r.fence != c.versions[0] || r.phase == resourceReleasing {
		return
	}
	if len(ev.Entries) == 0 || ev.Entries[0].Version != r.fence {
		m.loseResource(c.names[0])
	}
}

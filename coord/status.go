package coord

import "maps"

// statusState is what this node tells operators of itself.
type statusState struct {
	troubles map[string]string
	last     map[string]LastError
	dirty    bool
	written  bool // something stands there
	at       Time // no write before
}

func (m *Machine) onTroubles(ev Troubles) {
	if s := &m.status; !maps.Equal(s.troubles, ev.Reasons) || !maps.Equal(s.last, ev.Last) {
		s.troubles, s.last = maps.Clone(ev.Reasons), maps.Clone(ev.Last)
		s.dirty = true
	}
}

// pumpStatus writes the node's troubles, at most once per renewal: an idle group writes none.
func (m *Machine) pumpStatus() {
	s := &m.status
	if !s.dirty && (s.written || len(s.troubles) == 0) || m.phase != phaseActive || m.sess.noticing || m.now < s.at || m.waitsFor(callStatus) {
		return
	}
	s.dirty, s.written = false, true
	s.at = m.now + Time(m.sess.renew)
	m.commit(call{kind: callStatus, names: []string{m.cfg.Node}}, Txn{
		Puts: []Put{{Key: StatusKey(m.cfg.Node), Value: encode(m.statusValue()), Bound: true}},
	})
}

// statusValue is what stands there; a coordinator adds what it knows of the whole group.
func (m *Machine) statusValue() NodeStatus {
	v := NodeStatus{Troubles: maps.Clone(m.status.troubles), Last: m.status.last, Pending: m.lead.pending}
	if v.Troubles == nil {
		v.Troubles = map[string]string{}
	}
	for i, name := range m.lead.reported {
		if i == maxReported {
			break
		}
		v.Troubles[name] = "no live node may take it"
	}
	return v
}

// maxReported bounds how many resources that nobody may take a coordinator's status names.
const maxReported = 100

func (m *Machine) statusWritten(ev Committed) {
	if outcome(ev, 0).Code != OK {
		m.status.dirty = true
	}
}

func (m *Machine) wakeStatus(w *wake) {
	if s := &m.status; (s.dirty || !s.written && len(s.troubles) > 0) && !m.waitsFor(callStatus) && !m.sess.noticing {
		w.by(s.at)
	}
}

// Status is a snapshot of a machine, for people.
type Status struct {
	State             string // joining, active, draining, left
	Coordinator       string // its name, "" when unknown
	Leading           bool
	Epoch, Generation int64  // of the assignment that was applied
	Applied           bool   // one was applied in this session
	Waiting           string // why the node does not get on, "" when it does
	Held              []Held // sorted by name
	WaitingFor        int    // how many claims it waits for
	Members           int    // of a coordinator: live members as last read
	Unplaced          int    // of a coordinator: resources that no live node may take
	Pending           int    // of a coordinator: moves that wait for others to end
}

// Held is one resource that the machine holds, or still has a worker for.
type Held struct {
	Resource string
	Fence    int64
	Since    Time
	Paused   bool   // claimed, but not to be worked
	Phase    string // claimed (not started yet), working, draining, stopped, releasing, lost
	Stuck    bool
}

// Status returns a snapshot that shares nothing with the machine.
func (m *Machine) Status() Status {
	f := &m.follow
	s := Status{
		State: "joining", Coordinator: f.leader, Leading: m.leading(), Epoch: f.epoch, Generation: f.gen,
		Applied: f.applied, WaitingFor: len(f.blocked) + m.queue.wanted.len(),
		Members: len(m.lead.members), Unplaced: len(m.lead.unplaced), Pending: m.lead.pending,
	}
	switch {
	case m.finished:
		s.State = "left"
	case m.leave.asked, m.follow.drained && m.phase == phaseActive:
		s.State = "draining"
	case m.phase == phaseActive:
		s.State = "active"
	}
	switch {
	case m.sess.id == "" && !m.finished:
		s.Waiting = "no session in the store"
	case m.set.foreign != 0 && m.phase == phaseSettling:
		s.Waiting = "another process is a member under this node's name"
	case m.now < m.queue.graceUntil:
		s.Waiting = "the store's data is new: nodes may still work under data that was lost"
	case m.held():
		s.Waiting = "the store's clock was stepped forward"
	}
	for _, name := range sortedKeys(m.res) {
		r := m.res[name]
		if r.fence == 0 && r.worker == 0 {
			continue
		}
		h := Held{Resource: name, Fence: r.fence, Since: r.since, Phase: resourcePhases[r.phase], Stuck: r.stuck, Paused: f.paused[name]}
		if h.Fence == 0 {
			h.Fence = r.worker
		}
		s.Held = append(s.Held, h)
	}
	return s
}

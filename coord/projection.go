package coord

// Projection is what the specification's variables say about one node: what its machine believes, without what it does about it.
type Projection struct {
	// Phase is "waiting", "opening", "settling", "joining" or "active".
	Phase string `json:"phase"`
	// Session is that of the machine; "" when it has none. Incarnation is the one that it accepted; Noticing: it has seen another one.
	Session     string `json:"session,omitempty"`
	Incarnation string `json:"incarnation,omitempty"`
	Noticing    bool   `json:"noticing,omitempty"`
	// Epoch is that of the node's own term; 0: it does not coordinate.
	Epoch int64 `json:"epoch,omitempty"`
	// Seen is the version of the assignment that was applied, Generation that of its plan, Share what it gives, sorted.
	Seen       int64    `json:"seen,omitempty"`
	Generation int64    `json:"gen,omitempty"`
	Share      []string `json:"share,omitempty"`
	// Barrier is the version of the barrier as last read; Acked the newest generation for which the node has stopped.
	Barrier int64 `json:"barrier,omitempty"`
	Acked   int64 `json:"acked,omitempty"`
	// Leaving: the node leaves. Evicting: it gives everything back without a plan. Superseded: because a newer process took its name.
	Leaving    bool `json:"leaving,omitempty"`
	Evicting   bool `json:"evicting,omitempty"`
	Superseded bool `json:"superseded,omitempty"`
	// Declined are the resources that the node does not want for a while, sorted.
	Declined []string `json:"declined,omitempty"`
	// Resources are those that the node has anything to do with.
	Resources map[string]ResourceProjection `json:"resources,omitempty"`
}

// ResourceProjection is what a node believes of one resource.
type ResourceProjection struct {
	// Fence is the version of the claim that an own commit obtained; 0: none.
	Fence int64 `json:"fence,omitempty"`
	// Phase is "lost" (or never held), "claimed", "working", "draining", "stopped" or "releasing".
	Phase string `json:"phase"`
	// Worker is the fence under which a worker runs, also one whose claim is lost; 0: none.
	Worker int64 `json:"worker,omitempty"`
	// Ghost is the version of a claim that was read under the own session, but not obtained.
	Ghost int64 `json:"ghost,omitempty"`
}

var phases = [...]string{"waiting", "opening", "settling", "joining", "active"}

// Projection is what the machine believes now. It is made anew by each call.
func (m *Machine) Projection() Projection {
	p := Projection{
		Phase: phases[m.phase], Session: m.sess.id, Incarnation: m.sess.incarnation, Noticing: m.sess.noticing, Epoch: m.lead.epoch,
		Seen: m.follow.seen, Generation: m.follow.gen, Share: sortedKeys(m.follow.share),
		Barrier: m.bar.version, Acked: m.bar.acked, Leaving: m.leave.asked, Evicting: m.leave.evicting, Superseded: m.leave.superseded,
	}
	for _, name := range sortedKeys(m.member.declined) {
		if m.member.declined[name].until != 0 {
			p.Declined = append(p.Declined, name)
		}
	}
	for name, r := range m.res {
		if r.fence == 0 && r.worker == 0 && r.ghost == 0 {
			continue
		}
		if p.Resources == nil {
			p.Resources = make(map[string]ResourceProjection, len(m.res))
		}
		p.Resources[name] = ResourceProjection{Fence: r.fence, Phase: resourcePhases[r.phase], Worker: r.worker, Ghost: r.ghost}
	}
	return p
}

// Trace is one step of a machine.
type Trace struct {
	Now     Time
	Node    string
	Event   Event
	Actions []Action
	// Machine is the machine after the step, to be looked at during the call only.
	Machine *Machine
}

// Instance is the identity of the machine's process, as configured.
func (m *Machine) Instance() string { return m.cfg.Instance }

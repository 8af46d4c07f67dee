package sim

import "github.com/rebalancer-go/rebalancer/coord"

// What package admin does that ends something, and that is not in the schedules of all worlds: it came later, and with it every seed would be another
// world.

// ends are those acts.
var ends = []weighted{{ActEvict, 8}, {ActStepDown, 8}}

// evict supersedes the sessions of a process, as a newer one of its name would, and is gone.
func (w *World) evict(f Fault) {
	p := w.target(f)
	if p == nil || p.dead || w.store.entry(w.now, coord.MemberKey(p.name)) == nil {
		return
	}
	s := w.store.open(w.now, p.name, coord.OpenSession{TTL: coord.Duration(w.setup.TTL)})
	w.store.supersede(w.now, coord.Supersede{Session: s.Session, Node: p.name}, func(string) bool { return false })
	w.store.end(w.now, s.Session)
	for _, o := range w.running() {
		if o.name == p.name {
			w.evicted[o] = true
		}
	}
	f.Arg = 2 + f.Arg%2 // its place does not stay empty: where the store forgets the eviction it works on
	w.again(f, p == w.procs[f.Node])
}

// depose takes the leader entry away, and wakes two nodes.
func (w *World) depose() {
	if w.store.entry(w.now, coord.LeaderKey) == nil {
		return
	}
	w.store.remove(coord.LeaderKey)
	for i, name := range w.names {
		if i < 2 {
			w.wake(coord.NodeAddress(name))
		}
	}
}

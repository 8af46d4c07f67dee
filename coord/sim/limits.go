package sim

import (
	"slices"
	"strings"

	"github.com/rebalancer-go/rebalancer/coord"
)

// checkActive: no more nodes work than may be active.
func (w *World) checkActive() {
	most := w.setup.MaxActive
	if most == 0 || w.touched() {
		return
	}
	names := map[string]bool{}
	for _, list := range w.working {
		for _, k := range list {
			if k.counts() {
				names[k.p.name] = true
			}
		}
	}
	if len(names) > most {
		w.fail("active nodes", "%d nodes work, %d may", len(names), most)
	}
}

// checkMoving: a plan lets no more resources be in hand-over at a time than were asked for. What its node may not keep, or gives back anyway because
// it leaves, does not count, and where nodes are full a ring of them moves at once.
func (w *World) checkMoving(put coord.Put) {
	s := &w.setup
	if s.MaxMoving+s.MaxMovingNode == 0 || s.Mode == coord.GlobalBarrier || s.MaxActive > 0 || w.store.losses > 0 || w.stepped != 0 ||
		slices.ContainsFunc(s.Nodes, func(n NodeSetup) bool { return n.MaxResources > 0 }) {
		return
	}
	total := 0
	for _, p := range w.procs {
		if p == nil || p.machine.Status().State != "active" { // a coordinator that leaves plans without itself before its entry says so
			continue
		}
		n := w.moving(p.name, put)
		if total += n; s.MaxMovingNode > 0 && n > s.MaxMovingNode {
			w.fail("moves at a time", "%d resources of %s are in hand-over, %d may be", n, p.name, s.MaxMovingNode)
		}
	}
	if s.MaxMoving > 0 && total > s.MaxMoving {
		w.fail("moves at a time", "%d resources are in hand-over, %d may be", total, s.MaxMoving)
	}
}

// moving counts what a node still holds and is to give to others, when a plan's entry is written.
func (w *World) moving(node string, put coord.Put) int {
	value := put.Value
	if put.Key != coord.AssignmentKey(node) {
		r := w.store.entry(w.now, coord.AssignmentKey(node))
		if r == nil {
			return 0
		}
		value = r.value
	}
	member := w.store.entry(w.now, coord.MemberKey(node))
	a, err := coord.DecodeAssignment([]coord.Entry{{Key: coord.AssignmentKey(node), Value: value}})
	if err != nil || member == nil || w.everDrained[node] {
		return 0
	}
	m, err := coord.DecodeMember(member.value)
	if err != nil || m.Leaving || m.Draining {
		return 0
	}
	n := 0
	for r, next := range a.Leaving { // counts
		claim := w.store.entry(w.now, coord.ClaimKey(r))
		kept := !slices.Contains(m.Declined, r) && !w.everTied[r] && (m.List == nil || slices.Contains(m.List, r))
		if next != "" && kept && claim != nil && claim.session == member.session {
			n++
		}
	}
	return n
}

// noteAct remembers what operators ever asked for, by which a node may not keep what it has.
func (w *World) noteAct(f Fault) {
	switch f.Kind {
	case ActPin, ActMove:
		w.everTied[w.setup.Resources[f.Arg]] = true
	case ActDrain, ActDrainSelf:
		w.everDrained[w.names[f.Node]] = true
	}
}

// headOf tells whether a key is the first part of an assignment.
func headOf(key string) bool {
	return strings.HasPrefix(key, coord.AssignmentPrefix) && strings.HasSuffix(key, "/")
}

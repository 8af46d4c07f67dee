package admin

import (
	"maps"
	"slices"
	"time"

	"github.com/rebalancer-go/rebalancer/coord"
)

// describe puts what was read together.
func (v *view) describe(d *Description) {
	assigned := map[string]int{}
	for _, name := range sortedNames(v.assignments) {
		assigned[name] = v.share(name, d)
	}
	holds := map[string]int{}
	for _, c := range v.holders { // counts
		holds[c.Node]++
	}
	if v.control.group != nil {
		d.Paused = pausedAs(v.control.group.Keep)
	}
	d.Pending = v.status[d.Coordinator].Pending
	d.Drained = sortedNames(v.control.drained)
	active := 0
	for _, name := range sortedNames(v.members) {
		m := v.members[name]
		d.Nodes = append(d.Nodes, Node{
			Name: name, Version: m.Version, Priority: m.Priority, Weight: m.Weight, Max: m.Max, Labels: m.Labels,
			Static: m.Static, Leaving: m.Leaving, Draining: m.Draining, Drained: v.control.drained[name],
			Left: v.left[name], Assigned: assigned[name], Holds: holds[name],
		})
		if assigned[name] > 0 {
			active++
		}
	}
	for i := range d.Nodes {
		n := &d.Nodes[i]
		n.Standby = d.MaxActive > 0 && active >= d.MaxActive && n.Assigned+n.Holds == 0 && !n.Leaving && !n.Draining && !n.Drained
	}
	v.there = v.known()
	for _, name := range v.names() {
		r := v.resource(name, d)
		d.Resources = append(d.Resources, r)
		v.all[name] = r
	}
}

// share takes over what a node should hold, as far as it can be read: nothing while it is being written. It returns how many that are.
func (v *view) share(node string, d *Description) int {
	a, err := coord.DecodeAssignment(v.assignments[node])
	if err != nil {
		return 0
	}
	d.Generation = max(d.Generation, a.Generation)
	if a.ReservedUntil != 0 {
		kept := Reservation{Node: node, Until: time.UnixMicro(a.ReservedUntil).UTC(), Resources: slices.Sorted(slices.Values(a.Share))}
		if len(kept.Resources) > 0 {
			d.Reserved = append(d.Reserved, kept)
		}
		for _, r := range kept.Resources {
			v.reserved[r] = kept
		}
		return 0
	}
	if _, live := v.members[node]; !live {
		return 0 // nobody holds anything by it
	}
	for _, r := range a.Share {
		v.next[r] = node
	}
	for _, r := range a.Paused {
		v.paused[r] = true
	}
	return len(a.Share)
}

// names are those of all resources that anything is known of, sorted.
func (v *view) names() []string {
	all := maps.Clone(v.there)
	for _, asked := range []map[string]string{v.control.pins, v.control.moves} {
		for r := range asked { // into a set
			all[r] = true
		}
	}
	for r := range v.control.paused { // into a set
		all[r] = true
	}
	return sortedNames(all)
}

// known are the resources that the group has.
func (v *view) known() map[string]bool {
	all := maps.Clone(v.listed)
	for r := range v.registered { // into a set
		all[r] = true
	}
	for _, list := range v.lists { // into a set
		for _, r := range list {
			all[r] = true
		}
	}
	for r := range v.holders { // into a set
		all[r] = true
	}
	for r := range v.next { // into a set
		all[r] = true
	}
	for r := range v.reserved { // into a set
		all[r] = true
	}
	return all
}

func (v *view) resource(name string, d *Description) Resource {
	reg := v.registered[name]
	r := Resource{
		Name: name, Paused: v.control.pause(name), Pinned: v.control.pins[name], Move: v.control.moves[name],
		Weight: max(reg.Weight, 1), Require: reg.Require, Prefer: reg.Prefer,
	}
	if e, ok := v.claims[name]; ok {
		c := v.holders[name]
		r.Owner, r.Fence, r.Since = c.Node, e.Version, time.UnixMicro(c.Since).UTC()
	}
	next := v.next[name]
	_, kept := v.reserved[name]
	switch {
	case r.Owner != "" && r.Owner == next:
		r.State = StateHeld
	case r.Owner != "":
		r.State, r.Next = StateMoving, next
	case next != "":
		r.State, r.Next = StateWaiting, next
	case !v.there[name]:
		r.State = StateAbsent
	case r.Paused == PausedReleased:
		r.State = StatePaused
	case kept:
		r.State = StateReserved
	default:
		r.State = StateUnshared
	}
	r.Reason = v.reason(r, d)
	if e, ok := v.status[r.Owner].Last[name]; ok {
		r.LastError, r.LastErrorAt = e.Error, time.UnixMicro(e.At).UTC()
	}
	return r
}

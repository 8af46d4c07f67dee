package admin

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rebalancer-go/rebalancer/coord"
)

// describe puts what was read together.
func (v *view) describe(d *Description) {
	assigned := map[string]int{}
	all := map[string]bool{}
	for _, name := range sortedNames(v.members) {
		for _, r := range v.share(name, d) {
			v.next[r] = name
			assigned[name]++
			all[r] = true
		}
		for _, r := range v.members[name].List {
			all[r] = true
		}
	}
	holds := map[string]int{}
	for r, c := range v.holders {
		holds[c.Node]++
		all[r] = true
	}
	for r := range v.registered {
		all[r] = true
	}
	for _, name := range sortedNames(v.members) {
		m := v.members[name]
		d.Nodes = append(d.Nodes, Node{
			Name: name, Version: m.Version, Priority: m.Priority, Weight: m.Weight, Max: m.Max, Labels: m.Labels,
			Leaving: m.Leaving, Left: v.left[name], Assigned: assigned[name], Holds: holds[name],
		})
	}
	for _, name := range sortedNames(all) {
		d.Resources = append(d.Resources, v.resource(name, d))
	}
}

// share is what a node should hold, as far as it can be read: nothing while it is being written.
func (v *view) share(node string, d *Description) []string {
	var mine []coord.Entry
	for _, e := range v.assignments {
		if strings.HasPrefix(e.Key, coord.AssignmentKey(node)) {
			mine = append(mine, coord.Entry{Key: e.Key, Value: e.Value, Version: e.Version})
		}
	}
	a, err := coord.DecodeAssignment(mine)
	if err != nil {
		return nil
	}
	d.Generation = max(d.Generation, a.Generation)
	return a.Share
}

func (v *view) resource(name string, d *Description) Resource {
	r := Resource{Name: name}
	if e, ok := v.claims[name]; ok {
		c := v.holders[name]
		r.Owner, r.Fence, r.Since = c.Node, e.Version, time.UnixMicro(c.Since).UTC()
	}
	next := v.next[name]
	switch {
	case r.Owner != "" && r.Owner == next:
		r.State = StateHeld
	case r.Owner != "":
		r.State, r.Next = StateMoving, next
	case next != "":
		r.State, r.Next = StateWaiting, next
	default:
		r.State = StateUnshared
	}
	r.Reason = v.reason(r, d)
	return r
}

// reason is why a resource does not get on: what its node reports, or what can be seen from outside.
func (v *view) reason(r Resource, d *Description) string {
	for _, node := range []string{r.Owner, r.Next} {
		if t := v.troubles[node][r.Name]; t != "" {
			return fmt.Sprintf("%s: %s", node, t)
		}
	}
	switch r.State {
	case StateMoving:
		return v.moving(r)
	case StateWaiting:
		if d.Barrier == "closed" {
			return "the barrier is closed until all nodes have stopped"
		}
		return r.Next + " has not claimed it yet"
	case StateUnshared:
		return v.unshared(r.Name, d)
	}
	return ""
}

func (v *view) moving(r Resource) string {
	owner, alive := v.members[r.Owner]
	switch {
	case !alive:
		return r.Owner + " is no member any more; its claim ends with its session"
	case owner.Leaving:
		return r.Owner + " is leaving and has not given it back yet"
	case r.Next == "":
		return r.Owner + " is to give it back; nobody is to take it"
	}
	return r.Owner + " has not given it back yet"
}

// unshared says why nobody is to hold a resource.
func (v *view) unshared(name string, d *Description) string {
	if len(v.members) == 0 {
		return "no node is there"
	}
	if d.Coordinator == "" {
		return "no coordinator yet"
	}
	var declined []string
	for _, node := range sortedNames(v.members) {
		if slices.Contains(v.members[node].Declined, name) {
			declined = append(declined, node)
		}
	}
	switch {
	case len(declined) == len(v.members):
		return "every node declined it: " + strings.Join(declined, ", ")
	case len(declined) > 0:
		return "declined by " + strings.Join(declined, ", ") + "; the other nodes may not take it"
	}
	return "not planned yet, or no node may take it (see the nodes' limits and lists)"
}

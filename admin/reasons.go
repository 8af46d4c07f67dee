package admin

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rebalancer-go/rebalancer/coord"
)

// maxReasons bounds how many nodes a reason names.
const maxReasons = 4

// reason is why a resource does not get on: what its node reports, or what can be seen from outside.
func (v *view) reason(r Resource, d *Description) string {
	if r.State == StateHeld && r.Paused == PausedKept && v.paused[r.Name] {
		return "it is paused; its claim is kept"
	}
	for _, node := range []string{r.Owner, r.Next} {
		if t := v.status[node].Troubles[r.Name]; t != "" {
			return fmt.Sprintf("%s: %s", node, t)
		}
	}
	switch r.State {
	case StateHeld:
		if r.Paused != "" {
			return "it is to be paused; that is not planned yet"
		}
	case StateMoving:
		return v.moving(r)
	case StateWaiting:
		if d.Barrier == "closed" {
			return "the barrier is closed until all nodes have stopped"
		}
		return r.Next + " has not claimed it yet"
	case StateReserved:
		kept := v.reserved[r.Name]
		return fmt.Sprintf("kept for %s, which has left, until %s", kept.Node, kept.Until.Format(time.RFC3339))
	case StatePaused:
		return "it is paused; nobody holds it"
	case StateAbsent:
		return "the group has no such resource; what was asked of it waits"
	case StateUnshared:
		return v.unshared(r, d)
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
	case r.Paused == PausedReleased:
		return r.Owner + " is to give it back: it is paused"
	case r.Next == "":
		return r.Owner + " is to give it back; nobody is to take it"
	}
	return r.Owner + " has not given it back yet"
}

// unshared says why nobody is to hold a resource.
func (v *view) unshared(r Resource, d *Description) string {
	if len(d.Nodes) == 0 {
		return "no node is there"
	}
	if d.Coordinator == "" {
		return "no coordinator yet"
	}
	var whys []string
	for _, n := range d.Nodes {
		why := v.cannot(d, n, r.Name)
		if why == "" {
			continue
		}
		whys = append(whys, n.Name+" "+why)
	}
	if len(whys) < len(d.Nodes) {
		return "not planned yet"
	}
	if more := len(whys) - maxReasons; more > 0 {
		whys = append(whys[:maxReasons], fmt.Sprintf("and so on for %d more", more))
	}
	return "no node may take it: " + strings.Join(whys, "; ")
}

// cannot says why a node is not given a resource, "" when it may be.
func (v *view) cannot(d *Description, n Node, resource string) string {
	if why := v.unfit(d, v.members[n.Name], resource); why != "" {
		return why
	}
	if why := idle(n); why != "" {
		return why
	}
	if n.Max > 0 && n.Assigned >= n.Max {
		return fmt.Sprintf("has as many as it takes (%d)", n.Max)
	}
	return ""
}

// idle says why a node is given nothing at all, "" when it is not so.
func idle(n Node) string {
	switch {
	case n.Leaving:
		return "is leaving"
	case n.Draining, n.Drained:
		return "is drained"
	case n.Standby:
		return "is on standby"
	}
	return ""
}

// unfit says why a node may not take this very resource, "" when it may.
func (v *view) unfit(d *Description, m coord.Member, resource string) string {
	if slices.Contains(m.Declined, resource) {
		return "declined it"
	}
	if _, listed := slices.BinarySearch(v.lists[m.Node], resource); d.Origin == string(coord.OriginStatic) && !listed {
		return "does not list it"
	}
	var lacks []string
	for _, label := range v.registered[resource].Require {
		key, value, _ := strings.Cut(label, "=")
		if got, ok := m.Labels[key]; !ok || got != value {
			lacks = append(lacks, label)
		}
	}
	if len(lacks) > 0 {
		return "lacks " + strings.Join(lacks, ", ")
	}
	return ""
}

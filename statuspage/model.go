package statuspage

import (
	"slices"
	"strings"
	"time"

	"github.com/rebalancer-go/rebalancer/admin"
)

// head is what the page is told of a group as a whole. Times are in milliseconds.
type head struct {
	Group       string `json:"group"`
	Origin      string `json:"origin"`
	TTL         int64  `json:"ttl"`
	Barrier     string `json:"barrier,omitempty"`
	Coordinator string `json:"coordinator,omitempty"`
	Generation  int64  `json:"generation,omitempty,string"`
	Paused      string `json:"paused,omitempty"`
	Pending     int    `json:"pending,omitempty"`
	MaxActive   int    `json:"maxActive,omitempty"`
	Lag         bool   `json:"lag,omitempty"` // it is known of some
}

// node is what it is told of a node: a member, one that has left and that a share is kept for (Until), or one that is only drained.
type node struct {
	Name     string            `json:"name"`
	Here     bool              `json:"here,omitempty"`
	Version  string            `json:"version,omitempty"`
	Priority int               `json:"priority,omitempty"`
	Weight   int               `json:"weight,omitempty"`
	Max      int               `json:"max,omitempty"`
	Labels   map[string]string `json:"labels,omitempty"`
	Static   bool              `json:"static,omitempty"`
	Leaving  bool              `json:"leaving,omitempty"`
	Draining bool              `json:"draining,omitempty"`
	Drained  bool              `json:"drained,omitempty"`
	Standby  bool              `json:"standby,omitempty"`
	Late     bool              `json:"late,omitempty"` // it has not renewed its session for half of the ttl
	Until    int64             `json:"until,omitempty"`
	Assigned int               `json:"assigned,omitempty"`
	Holds    int               `json:"holds,omitempty"`
}

// resource is what it is told of a resource.
type resource struct {
	Name    string   `json:"name"`
	State   string   `json:"state"`
	Owner   string   `json:"owner,omitempty"`
	Next    string   `json:"next,omitempty"`
	Fence   int64    `json:"fence,omitempty,string"`
	Since   int64    `json:"since,omitempty"` // of the claim; else, when it was first seen so
	Paused  string   `json:"paused,omitempty"`
	Pinned  string   `json:"pinned,omitempty"`
	Move    string   `json:"move,omitempty"`
	Weight  int      `json:"weight,omitempty"`
	Require []string `json:"require,omitempty"`
	Prefer  []string `json:"prefer,omitempty"`
	Reason  string   `json:"reason,omitempty"`
	Trouble bool     `json:"trouble,omitempty"` // somebody should look at it
	Lag     *int64   `json:"lag,omitempty"`
	Last    string   `json:"last,omitempty"` // error
	LastAt  int64    `json:"lastAt,omitempty"`
}

func headOf(d *admin.Description) head {
	return head{
		Group: d.Group, Origin: d.Origin, TTL: d.TTL.Milliseconds(), Barrier: d.Barrier, Coordinator: d.Coordinator,
		Generation: d.Generation, Paused: d.Paused, Pending: d.Pending, MaxActive: d.MaxActive,
	}
}

// nodesOf are the members, those that have left and that something is kept for, and those that are drained and away; sorted.
func nodesOf(d *admin.Description) []node {
	var all []node
	seen := map[string]bool{}
	for _, n := range d.Nodes {
		seen[n.Name] = true
		v := node{
			Name: n.Name, Here: true, Version: n.Version, Priority: n.Priority, Max: n.Max, Labels: n.Labels, Static: n.Static,
			Leaving: n.Leaving, Draining: n.Draining, Drained: n.Drained, Standby: n.Standby, Assigned: n.Assigned, Holds: n.Holds,
			Late: n.Left >= 0 && n.Left < d.TTL/2,
		}
		if n.Weight > 1 {
			v.Weight = n.Weight
		}
		all = append(all, v)
	}
	for _, r := range d.Reserved {
		if !seen[r.Node] {
			seen[r.Node] = true
			all = append(all, node{Name: r.Node, Until: r.Until.UnixMilli(), Assigned: len(r.Resources), Drained: slices.Contains(d.Drained, r.Node)})
		}
	}
	for _, name := range d.Drained {
		if !seen[name] {
			all = append(all, node{Name: name, Drained: true})
		}
	}
	slices.SortFunc(all, func(a, b node) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// sighting is since when a resource has been seen in a state without a claim, or on its way.
type sighting struct {
	state, owner, next string
	at                 time.Time
}

// resourcesOf are the resources, and what is remembered of them for the next time.
func resourcesOf(d *admin.Description, before map[string]sighting, now time.Time, redact func(string) string) ([]resource, map[string]sighting) {
	all, after := make([]resource, 0, len(d.Resources)), map[string]sighting{}
	for _, r := range d.Resources {
		v := resource{
			Name: r.Name, State: r.State, Owner: r.Owner, Next: r.Next, Fence: r.Fence, Paused: r.Paused, Pinned: r.Pinned, Move: r.Move,
			Require: r.Require, Prefer: r.Prefer, Reason: redact(r.Reason), Last: redact(r.LastError),
		}
		if r.LastError != "" {
			v.LastAt = r.LastErrorAt.UnixMilli()
		}
		if r.Weight > 1 {
			v.Weight = r.Weight
		}
		var seen sighting
		if r.State != admin.StateHeld {
			seen = before[r.Name]
			if seen.state != r.State || seen.owner != r.Owner || seen.next != r.Next {
				seen = sighting{r.State, r.Owner, r.Next, now}
			}
			after[r.Name] = seen
			v.Since = seen.at.UnixMilli()
		}
		if r.Owner != "" {
			v.Since = r.Since.UnixMilli()
		}
		v.Trouble = troubled(r, now.Sub(seen.at) > d.TTL)
		all = append(all, v)
	}
	return all, after
}

// troubled tells what needs somebody's eyes from what passes by itself or was asked for. long: its state has lasted longer than a
// node that crashed would hold it up.
func troubled(r admin.Resource, long bool) bool {
	for _, n := range []string{r.Owner, r.Next} {
		if n != "" && strings.HasPrefix(r.Reason, n+": ") { // the node says so itself
			return true
		}
	}
	switch r.State {
	case admin.StateMoving, admin.StateWaiting, admin.StateUnshared:
		return long || strings.HasPrefix(r.Reason, "no node may take it")
	case admin.StateAbsent:
		return true
	}
	return false
}

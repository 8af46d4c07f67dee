package main

import (
	"encoding/json"
	"io"
	"time"

	"github.com/rebalancer-go/rebalancer/admin"
)

// The JSON of describe: its names are part of the command line's contract.
type (
	jsonGroup struct {
		Group            string         `json:"group"`
		At               time.Time      `json:"at,omitzero"`
		Origin           string         `json:"origin"`
		TTL              float64        `json:"ttl"`
		BarrierMode      string         `json:"barrier_mode"`
		Barrier          string         `json:"barrier,omitempty"`
		Coordinator      string         `json:"coordinator"`
		Epoch            int64          `json:"epoch"`
		Generation       int64          `json:"generation"`
		MaxActive        int            `json:"max_active,omitempty"`
		FailBack         bool           `json:"fail_back,omitempty"`
		MaxMoving        int            `json:"max_moving,omitempty"`
		MaxMovingPerNode int            `json:"max_moving_per_node,omitempty"`
		Paused           string         `json:"paused,omitempty"`
		Pending          int            `json:"pending,omitempty"`
		Drained          []string       `json:"drained,omitempty"`
		Reserved         []jsonReserved `json:"reserved,omitempty"`
		Nodes            []jsonNode     `json:"nodes"`
		Resources        []jsonResource `json:"resources"`
	}
	jsonNode struct {
		Name     string            `json:"name"`
		Holds    int               `json:"holds"`
		Assigned int               `json:"assigned"`
		Max      int               `json:"max,omitempty"`
		Priority int               `json:"priority"`
		Weight   int               `json:"weight"`
		Left     *float64          `json:"session_left,omitempty"`
		Version  string            `json:"version,omitempty"`
		Labels   map[string]string `json:"labels,omitempty"`
		Leaving  bool              `json:"leaving,omitempty"`
		Static   bool              `json:"static,omitempty"`
		Draining bool              `json:"draining,omitempty"`
		Drained  bool              `json:"drained,omitempty"`
		Standby  bool              `json:"standby,omitempty"`
	}
	jsonReserved struct {
		Node      string    `json:"node"`
		Until     time.Time `json:"until"`
		Resources []string  `json:"resources"`
	}
	jsonResource struct {
		Name    string     `json:"name"`
		State   string     `json:"state"`
		Owner   string     `json:"owner,omitempty"`
		Next    string     `json:"next,omitempty"`
		Fence   int64      `json:"fence,omitempty"`
		Since   *time.Time `json:"since,omitempty"`
		Age     *float64   `json:"age,omitempty"`
		Paused  string     `json:"paused,omitempty"`
		Pinned  string     `json:"pinned,omitempty"`
		Move    string     `json:"move,omitempty"`
		Weight  int        `json:"weight,omitempty"`
		Require []string   `json:"require,omitempty"`
		Prefer  []string   `json:"prefer,omitempty"`
		Reason  string     `json:"reason,omitempty"`
		Lag     *int64     `json:"lag,omitempty"`
		Error   string     `json:"last_error,omitempty"`
		ErrorAt *time.Time `json:"last_error_at,omitempty"`
	}
)

func describeJSON(w io.Writer, d admin.Description) error {
	g := jsonGroup{
		Group: d.Group, At: d.At, Origin: d.Origin, TTL: d.TTL.Seconds(), BarrierMode: d.Settings.Barrier, Barrier: d.Barrier,
		Coordinator: d.Coordinator, Epoch: d.Epoch, Generation: d.Generation, Nodes: []jsonNode{}, Resources: []jsonResource{},
		MaxActive: d.MaxActive, FailBack: d.FailBack, MaxMoving: d.MaxMoving, MaxMovingPerNode: d.MaxMovingPerNode,
		Paused: d.Paused, Pending: d.Pending, Drained: d.Drained,
	}
	for _, r := range d.Reserved {
		g.Reserved = append(g.Reserved, jsonReserved{Node: r.Node, Until: r.Until.UTC(), Resources: r.Resources})
	}
	for _, n := range d.Nodes {
		j := jsonNode{Name: n.Name, Holds: n.Holds, Assigned: n.Assigned, Max: n.Max, Priority: n.Priority, Weight: n.Weight,
			Version: n.Version, Labels: n.Labels, Leaving: n.Leaving,
			Static: n.Static, Draining: n.Draining, Drained: n.Drained, Standby: n.Standby}
		if n.Left >= 0 {
			s := n.Left.Seconds()
			j.Left = &s
		}
		g.Nodes = append(g.Nodes, j)
	}
	for _, r := range d.Resources {
		j := jsonResource{Name: r.Name, State: r.State, Owner: r.Owner, Next: r.Next, Fence: r.Fence, Reason: r.Reason,
			Paused: r.Paused, Pinned: r.Pinned, Move: r.Move, Weight: r.Weight, Require: r.Require, Prefer: r.Prefer, Lag: r.Lag, Error: r.LastError}
		if r.LastError != "" {
			j.ErrorAt = &r.LastErrorAt
		}
		if r.Owner != "" {
			j.Since = &r.Since
			if age := d.At.Sub(r.Since).Seconds(); !d.At.IsZero() {
				age = max(0, age) // its node knew the store's time only about
				j.Age = &age
			}
		}
		g.Resources = append(g.Resources, j)
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(g)
}

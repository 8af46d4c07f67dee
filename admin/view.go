package admin

import (
	"slices"
	"strings"
	"time"

	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/coord"
)

// view is what was read, by name.
type view struct {
	members     map[string]coord.Member
	left        map[string]time.Duration
	status      map[string]coord.NodeStatus
	claims      map[string]backends.Entry // resource
	holders     map[string]coord.Claim
	lists       map[string][]string // static ones, by node; sorted once all are read
	registered  map[string]coord.Registration
	listed      map[string]bool // discovered
	assignments map[string][]coord.Entry
	control     controls
	// What was worked out of it, by resource.
	next     map[string]string      // node that should hold it
	paused   map[string]bool        // its node knows that it is paused
	reserved map[string]Reservation // that it belongs to
	there    map[string]bool        // the group has it
	all      map[string]Resource    // that anything is known of
}

// controls are what operators ask for.
type controls struct {
	drained     map[string]bool   // nodes
	pins, moves map[string]string // node by resource
	paused      map[string]bool   // resources; true: the claim is kept
	group       *coord.Control
}

func newView() *view {
	return &view{
		members: map[string]coord.Member{}, left: map[string]time.Duration{}, status: map[string]coord.NodeStatus{},
		claims: map[string]backends.Entry{}, holders: map[string]coord.Claim{}, lists: map[string][]string{},
		registered: map[string]coord.Registration{}, listed: map[string]bool{}, assignments: map[string][]coord.Entry{},
		control: controls{drained: map[string]bool{}, pins: map[string]string{}, moves: map[string]string{}, paused: map[string]bool{}},
		next:    map[string]string{}, paused: map[string]bool{}, reserved: map[string]Reservation{}, all: map[string]Resource{},
	}
}

// take sorts the entries by what they are.
func (v *view) take(entries []backends.Entry, d *Description) error {
	for _, e := range entries {
		if err := v.takeOne(e, d); err != nil {
			return err
		}
	}
	for node, m := range v.members { // each by itself
		if len(m.List) > 0 {
			v.lists[node] = slices.Clone(m.List)
		}
		slices.Sort(v.lists[node])
	}
	return nil
}

func (v *view) takeOne(e backends.Entry, d *Description) (err error) {
	switch key := e.Key; {
	case key == coord.LeaderKey:
		var l coord.Leader
		l, err = coord.DecodeLeader(e.Value)
		d.Coordinator, d.Epoch = l.Node, e.Version
	case key == coord.BarrierKey:
		var b coord.Barrier
		b, err = coord.DecodeBarrier(e.Value)
		d.Barrier = "closed"
		if b.Open {
			d.Barrier = "open"
		}
	case strings.HasPrefix(key, coord.MemberPrefix):
		var m coord.Member
		m, err = coord.DecodeMember(e.Value)
		v.members[m.Node], v.left[m.Node] = m, e.Left
	case strings.HasPrefix(key, coord.StatusPrefix):
		v.status[strings.TrimPrefix(key, coord.StatusPrefix)], err = coord.DecodeStatus(e.Value)
	case strings.HasPrefix(key, coord.AssignmentPrefix):
		node := nodeOf(key, coord.AssignmentPrefix)
		v.assignments[node] = append(v.assignments[node], coord.Entry{Key: e.Key, Value: e.Value, Version: e.Version})
	case strings.HasPrefix(key, coord.ClaimPrefix):
		var c coord.Claim
		c, err = coord.DecodeClaim(e.Value)
		v.claims[c.Resource], v.holders[c.Resource] = e, c
	case strings.HasPrefix(key, coord.ListPrefix):
		var list []string
		list, err = coord.DecodeNames(e.Value)
		node := nodeOf(key, coord.ListPrefix)
		v.lists[node] = append(v.lists[node], list...)
	case strings.HasPrefix(key, coord.DiscoveredPrefix):
		var list []string
		list, err = coord.DecodeNames(e.Value)
		for _, n := range list {
			v.listed[n] = true
		}
	case strings.HasPrefix(key, coord.ResourcePrefix):
		var r coord.Registration
		r, err = coord.DecodeRegistration(e.Value)
		v.registered[r.Name] = r
	case strings.HasPrefix(key, coord.ControlPrefix):
		err = v.control.take(e)
	}
	return err
}

// nodeOf is the name of the node in a key that has "/" after it.
func nodeOf(key, prefix string) string {
	node, _, _ := strings.Cut(strings.TrimPrefix(key, prefix), "/")
	return node
}

func (c *controls) take(e backends.Entry) error {
	v, err := coord.DecodeControl(e.Value)
	if err != nil {
		return err
	}
	switch e.Key {
	case coord.PauseGroupKey:
		c.group = &v
	case coord.DrainKey(v.Node):
		c.drained[v.Node] = true
	case coord.PinKey(v.Resource):
		c.pins[v.Resource] = v.Node
	case coord.MoveKey(v.Resource):
		c.moves[v.Resource] = v.Node
	case coord.PauseKey(v.Resource):
		c.paused[v.Resource] = v.Keep
	}
	return nil
}

// pause is how a resource is paused; what is asked for it alone goes before what is asked for the group.
func (c *controls) pause(resource string) string {
	keep, paused := c.paused[resource]
	switch {
	case paused:
		return pausedAs(keep)
	case c.group != nil:
		return pausedAs(c.group.Keep)
	}
	return ""
}

func pausedAs(keep bool) string {
	if keep {
		return PausedKept
	}
	return PausedReleased
}

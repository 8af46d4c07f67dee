package admin

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/coord"
)

// Description is a group as its store shows it.
type Description struct {
	Group string
	Settings
	// Coordinator is its node's name, "" when there is none at the moment. Epoch is its term.
	Coordinator string
	Epoch       int64
	// Generation is that of the newest assignment.
	Generation int64
	// Barrier is, for a group with a global barrier, "open" or "closed".
	Barrier   string
	Nodes     []Node     // sorted by name
	Resources []Resource // sorted by name
}

// Node is a member of a group.
type Node struct {
	Name     string
	Version  string            // of its library
	Priority int               //
	Weight   int               //
	Max      int               // resources at most; 0: no limit
	Labels   map[string]string //
	Leaving  bool              // it gives everything back
	Left     time.Duration     // of its session, unless it is renewed; negative when the store cannot say
	Assigned int               // resources that it should hold
	Holds    int               // resources that it holds
}

// The states of a resource.
const (
	StateHeld     = "held"     // by the node that should hold it
	StateMoving   = "moving"   // held by another node than the one that should hold it
	StateWaiting  = "waiting"  // a node should hold it and has not claimed it yet
	StateUnshared = "unshared" // nobody should hold it
)

// Resource is one resource of a group.
type Resource struct {
	Name  string
	State string
	// Owner holds it, under the fence Fence since Since (zero when it is not held).
	Owner string
	Fence int64
	Since time.Time
	// Next should hold it, if that is not Owner.
	Next string
	// Reason says why it does not get on, "" when it does.
	Reason string
}

// Describe reads how a group stands. It fails with ErrNotFound when there is no such group.
func Describe(ctx context.Context, store backends.Store, group string) (Description, error) {
	d := Description{Group: group}
	err := with(ctx, store, group, func(s backends.Session) error {
		set, version, _, err := settings(ctx, s)
		if err != nil {
			return err
		}
		if version == 0 {
			return ErrNotFound
		}
		r, err := s.Read(ctx, backends.ReadRequest{
			Keys: []string{coord.LeaderKey, coord.BarrierKey},
			Prefixes: []string{
				coord.MemberPrefix, coord.StatusPrefix, coord.AssignmentPrefix, coord.ClaimPrefix, coord.ResourcePrefix,
				coord.ListPrefix, coord.DiscoveredPrefix,
			},
		})
		if err != nil {
			return fmt.Errorf("read its entries: %w", err)
		}
		d.Settings = fromCoord(set)
		v := newView()
		if err := v.take(r.Entries, &d); err != nil {
			return err
		}
		v.describe(&d)
		return nil
	})
	if err != nil {
		return Description{}, fmt.Errorf("describe: %w", err)
	}
	return d, nil
}

// view is what was read, by name.
type view struct {
	members     map[string]coord.Member
	left        map[string]time.Duration
	troubles    map[string]map[string]string // node, resource
	claims      map[string]backends.Entry    // resource
	holders     map[string]coord.Claim
	registered  map[string]bool // or listed
	assignments []backends.Entry
	next        map[string]string // resource → node that should hold it
}

func newView() *view {
	return &view{
		members: map[string]coord.Member{}, left: map[string]time.Duration{}, troubles: map[string]map[string]string{},
		claims: map[string]backends.Entry{}, holders: map[string]coord.Claim{}, registered: map[string]bool{}, next: map[string]string{},
	}
}

// take sorts the entries by what they are.
func (v *view) take(entries []backends.Entry, d *Description) error {
	for _, e := range entries {
		var err error
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
			var s coord.NodeStatus
			s, err = coord.DecodeStatus(e.Value)
			v.troubles[strings.TrimPrefix(key, coord.StatusPrefix)] = s.Troubles
		case strings.HasPrefix(key, coord.AssignmentPrefix):
			v.assignments = append(v.assignments, e)
		case strings.HasPrefix(key, coord.ClaimPrefix):
			var c coord.Claim
			c, err = coord.DecodeClaim(e.Value)
			v.claims[c.Resource], v.holders[c.Resource] = e, c
		case strings.HasPrefix(key, coord.ListPrefix), strings.HasPrefix(key, coord.DiscoveredPrefix):
			var names []string
			names, err = coord.DecodeNames(e.Value)
			for _, n := range names {
				v.registered[n] = true
			}
		case strings.HasPrefix(key, coord.ResourcePrefix):
			var r coord.Registration
			r, err = coord.DecodeRegistration(e.Value)
			v.registered[r.Name] = true
		}
		if err != nil {
			return err
		}
	}
	return nil
}

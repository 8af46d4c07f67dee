package admin

import (
	"context"
	"fmt"
	"time"

	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/coord"
)

// Description is a group as its store shows it.
type Description struct {
	Group string
	// At is when it was read, by the store's clock: that of all times in it.
	At time.Time
	Settings
	// Coordinator is its node's name, "" when there is none at the moment. Epoch is its term.
	Coordinator string
	Epoch       int64
	// Generation is that of the newest assignment.
	Generation int64
	// Barrier is, for a group with a global barrier, "open" or "closed".
	Barrier string
	// Paused is how the whole group is paused: PausedKept, PausedReleased, or "" when it is not.
	Paused string
	// Pending is how many resources are to move, and wait until others have moved (MaxMoving, MaxMovingPerNode).
	Pending   int
	Drained   []string      // nodes that an operator drained, there or not; sorted
	Reserved  []Reservation // sorted by node
	Nodes     []Node        // sorted by name
	Resources []Resource    // sorted by name
}

// Reservation is the share of a node with a static name that has left: it is kept for it until Until, by the store's time.
type Reservation struct {
	Node      string
	Until     time.Time
	Resources []string // sorted
}

// Node is a member of a group.
type Node struct {
	Name     string
	Version  string            // of its library
	Priority int               //
	Weight   int               //
	Max      int               // resources at most; 0: no limit
	Labels   map[string]string //
	Static   bool              // its name outlives its process
	Leaving  bool              // it gives everything back
	Draining bool              // it asked to be given nothing
	Drained  bool              // an operator asked that it be given nothing
	Standby  bool              // as many others as may be active (MaxActive) are
	Left     time.Duration     // of its session, unless it is renewed; negative when the store cannot say
	Assigned int               // resources that it should hold
	Holds    int               // resources that it holds
}

// The states of a resource.
const (
	StateHeld     = "held"     // by the node that should hold it
	StateMoving   = "moving"   // held by another node than the one that should hold it
	StateWaiting  = "waiting"  // a node should hold it and has not claimed it yet
	StateReserved = "reserved" // kept for a node that has left, see Reservation
	StatePaused   = "paused"   // nobody should hold it, since it is paused
	StateUnshared = "unshared" // nobody should hold it
	StateAbsent   = "absent"   // it is in no list; only an operator asked something of it
)

// How a resource or group is paused.
const (
	PausedKept     = "kept"     // its node keeps the claim
	PausedReleased = "released" // its node gives the claim up
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
	// Paused is how it is paused, by itself or with its group: PausedKept, PausedReleased, or "" when it is not.
	Paused string
	// Pinned is the node that it is pinned to, "" for none. Move is the node that an operator asked it to be moved to, until that was
	// planned.
	Pinned, Move string
	// Weight, Require and Prefer are those of its registration; Weight is 1 without.
	Weight          int
	Require, Prefer []string
	// Reason says why it does not get on, "" when it does.
	Reason string
	// LastError is what went wrong with it last under its owner's claim, at LastErrorAt by the owner's clock, also when it gets on again; "" and zero
	// for nothing. A node tells of 100 resources at most.
	LastError   string
	LastErrorAt time.Time
	// Lag is how many messages wait in it. Describe does not ask sources: it is nil unless the caller fills it in, for example from
	// sources.Lags.
	Lag *int64
}

// Describe reads how a group stands. It fails with ErrNotFound when there is no such group.
func Describe(ctx context.Context, store backends.Store, group string) (Description, error) {
	var d Description
	err := with(ctx, store, group, func(s backends.Session) error {
		seen, _, err := look(ctx, s)
		if err == nil {
			d = *seen
		}
		return err
	})
	if err != nil {
		return Description{}, fmt.Errorf("describe: %w", err)
	}
	d.Group = group
	return d, nil
}

// look reads all that a description needs, and puts it together.
func look(ctx context.Context, s backends.Session) (*Description, *view, error) {
	set, version, _, err := settings(ctx, s)
	if err != nil {
		return nil, nil, err
	}
	if version == 0 {
		return nil, nil, ErrNotFound
	}
	r, err := s.Read(ctx, backends.ReadRequest{
		Keys: []string{coord.LeaderKey, coord.BarrierKey},
		Prefixes: []string{
			coord.MemberPrefix, coord.StatusPrefix, coord.AssignmentPrefix, coord.ClaimPrefix, coord.ResourcePrefix,
			coord.ListPrefix, coord.DiscoveredPrefix, coord.ControlPrefix,
		},
	})
	if err != nil {
		return nil, nil, fmt.Errorf("read its entries: %w", err)
	}
	d, v := &Description{Settings: fromCoord(set), At: r.Time.UTC()}, newView()
	if err := v.take(r.Entries, d); err != nil {
		return nil, nil, err
	}
	v.describe(d)
	return d, v, nil
}

package group

import "time"

// The states of a node.
const (
	StateIdle     = "idle"     // neither Consume nor Run is running, or has been
	StateJoining  = "joining"  // no session, or not a member yet
	StateActive   = "active"   // a member
	StateDraining = "draining" // leaving, or drained: gives back what it holds
	StateLeft     = "left"     // Consume or Run returned
)

// Status is a snapshot of a node.
type Status struct {
	// State is one of StateIdle, StateJoining, StateActive, StateDraining, StateLeft.
	State string
	// Group and Node are the names of the configuration.
	Group, Node string
	// Coordinator is the name of the group's coordinator, "" when unknown; Leading says that it is this node.
	Coordinator string
	Leading     bool
	// Epoch and Generation are those of the assignment that the node applied; Applied says that it did so since it joined.
	Epoch, Generation int64
	Applied           bool
	// TrustedUntil is the moment up to which the node trusts its claims unless it renews; zero when it does not.
	TrustedUntil time.Time
	// Waiting says why the node does not get on, "" when it does; Awaited is how many claims it waits for.
	Waiting string
	Awaited int
	// Members is how many nodes the group has, Unplaced how many resources no live node may take, and Pending how many moves wait until others
	// have ended (MaxMoving, MaxMovingPerNode), as far as the coordinator has seen; 0 on other nodes.
	Members, Unplaced, Pending int
	// Warnings are what the store says about its set-up that makes the promises weaker, as of the last session's beginning.
	Warnings []string
	// Resources held here, sorted by name.
	Resources []ResourceStatus
}

// ResourceStatus is one resource that the node holds, or still has a worker for.
type ResourceStatus struct {
	Name  string
	Fence int64
	Since time.Time // of the claim
	// Phase is claimed (not started yet), working, draining, stopped or lost.
	Phase string
	// InFlight is the number of handlers running.
	InFlight int
	// Draining: it is to be given back. Stuck: its handlers outlived Drain + Grace.
	Draining, Stuck bool
	// Paused: an operator paused it; it is claimed, but not worked.
	Paused bool
	// Err is why it does not get on: it cannot be opened, a message keeps failing, it stands still. nil when it does.
	Err error
}

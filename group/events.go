package group

import (
	"time"

	"github.com/rebalancer-go/rebalancer/coord"
)

// Event is one observed change.
type Event struct {
	Kind EventKind
	// Resource that it concerns, and the fence of its claim; "" and 0 when it concerns the node.
	Resource string
	Fence    int64
	// Node is another node that it concerns, "" when there is none.
	Node string
	// Message and Attempt are the ID of the message that it concerns and the attempt that failed.
	Message string
	Attempt int
	// Reason says why, in words, where there is more to say than Kind and Err do.
	Reason string
	Err    error
	Time   time.Time
	// Plan is what the coordinator planned (KindRebalanced), Share what changed for this node (KindAssigned); nil for other kinds. They
	// are not to be changed.
	Plan  *Plan
	Share *Share
	// Waited is, of KindClaimed, how long the resource had been free, as far as this node knows: since it saw that nobody holds it any more, or since it was
	// given it if that was later.
	Waited time.Duration
}

// EventKind names a change.
type EventKind string

// The kinds of events.
const (
	KindJoined     = EventKind(coord.KindJoined)     // the node is a member
	KindFenced     = EventKind(coord.KindFenced)     // the node's trust ended: what it held is lost
	KindElected    = EventKind(coord.KindElected)    // the node coordinates the group
	KindDeposed    = EventKind(coord.KindDeposed)    // it does not any more
	KindRebalanced = EventKind(coord.KindRebalanced) // this coordinator published a plan
	KindAssigned   = EventKind(coord.KindAssigned)   // the node applied what it was assigned
	KindClaimed    = EventKind(coord.KindClaimed)    // the node holds the resource
	KindWaiting    = EventKind(coord.KindWaiting)    // the node must wait; Reason says for what
	KindRevoked    = EventKind(coord.KindRevoked)    // the resource is to be given back
	KindReleased   = EventKind(coord.KindReleased)   // it was given back
	KindLost       = EventKind(coord.KindLost)       // the claim is not ours any more
	KindStuck      = EventKind(coord.KindStuck)      // handlers outlived Drain + Grace
	KindDeclined   = EventKind(coord.KindDeclined)   // the node cannot open the resource and leaves it to others for a while
	KindStore      = EventKind(coord.KindStore)      // the store failed a request, lost its data, or warns about its set-up
	KindResources  = EventKind(coord.KindResources)  // the list of resources changed, is held back, or could not be read
	KindLeft       = EventKind(coord.KindLeft)       // the node left the group

	KindStarted   EventKind = "started"   // the resource's source is open; messages follow
	KindFailed    EventKind = "failed"    // a handler (or OnClaim, or Run's function) failed; it is tried again
	KindRejected  EventKind = "rejected"  // a message was given up and is in the dead-letter place
	KindKept      EventKind = "kept"      // a message was given up but there is no dead-letter place: it is retried at Retry.Max
	KindSkipped   EventKind = "skipped"   // a message was given up and settled (Exhausted Skip)
	KindHalted    EventKind = "halted"    // a message was given up and the resource stands still (Exhausted Stop)
	KindSource    EventKind = "source"    // the source failed to open, fetch, settle or close; it is tried again
	KindRecovered EventKind = "recovered" // what the source failed at works again
	KindDropped   EventKind = "dropped"   // OnEvent was too slow; Reason says how many events were left out before this one
)

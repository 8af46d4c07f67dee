package coord

// Action is what the owner of a machine has to do, in the order in which Step returned them.
type Action interface{ action() }

// OpenSession opens a session of the group; answered by Opened. A session of this machine that was opened before is not
// used any more.
type OpenSession struct {
	Req uint64
	TTL Duration
}

// CloseSession ends a session at once; answered by Closed, also when it failed.
type CloseSession struct {
	Req     uint64
	Session string
}

// Renew extends the session; answered by Renewed within Timeout. A retry goes over a fresh connection where it can.
type Renew struct {
	Req         uint64
	Session     string
	Incarnation string
	Keys        []string
	Digests     []string
	Sweep       bool
	Timeout     Duration
}

// Read reads entries; answered by ReadDone.
type Read struct {
	Req      uint64
	Session  string
	Prefixes []string
	Keys     []string
	Timeout  Duration
}

// Commit carries out transactions, each on its own; answered by Committed.
type Commit struct {
	Req         uint64
	Session     string
	Incarnation string
	Txns        []Txn
	Timeout     Duration
}

// Listen asks for a Hinted event (or NoHints) whenever the address is woken, as long as the session lives.
type Listen struct {
	Session string
	Address string
}

// List asks for the discovered resources; answered by Listed.
type List struct{ Req uint64 }

// Supersede ends the older sessions of this node's name for all but releases; answered by Superseded.
type Supersede struct {
	Req     uint64
	Session string
	Node    string
	Timeout Duration
}

func (Supersede) action() {}

// StartWork opens the resource's source and works it under this fence, until Revoke, Lose, or the end of trust.
type StartWork struct {
	Resource string
	Fence    int64
}

// Revoke asks the worker to drain: fetch no more, let handlers finish, settle, close the source. Answered by Stopped, and
// before it by Stuck if handlers outlive drain and grace. Stopping: the node leaves.
type Revoke struct {
	Resource string
	Fence    int64
	Stopping bool
}

// Lose tells the worker that the claim is no longer ours: cancel handlers at once, settle nothing, close the source. Answered by
// Stopped. It may follow a Revoke.
type Lose struct {
	Resource string
	Fence    int64
}

// Notify is an observed change, for people: logs, metrics, events.
type Notify struct {
	Kind     Kind
	Resource string
	Fence    int64
	Node     string // whom it concerns, where that is another one
	Reason   string
	Err      error
	Plan     *PlanReport  // of KindRebalanced
	Share    *ShareReport // of KindAssigned
	Waited   Duration     // of KindClaimed: since the node found the resource free, or was given it if that was later
}

// Finish is the last action: the machine is done. Err is nil after a clean leave.
type Finish struct{ Err error }

// Kind names an observed change.
type Kind string

// What a machine notifies of.
const (
	KindJoined     Kind = "joined"     // the node is a member
	KindFenced     Kind = "fenced"     // the node's trust ended: everything it held is lost
	KindElected    Kind = "elected"    // this node coordinates
	KindDeposed    Kind = "deposed"    // it does not any more
	KindRebalanced Kind = "rebalanced" // this coordinator published a plan; Reason says why
	KindAssigned   Kind = "assigned"   // this node applied an assignment
	KindClaimed    Kind = "claimed"
	KindWaiting    Kind = "waiting" // a claim must wait; Reason says for what
	KindRevoked    Kind = "revoked"
	KindReleased   Kind = "released"
	KindLost       Kind = "lost"
	KindStuck      Kind = "stuck"
	KindDeclined   Kind = "declined"
	KindStore      Kind = "store"     // the store failed a request, or lost its data; Err or Reason says more
	KindResources  Kind = "resources" // the list of resources changed, is held back, or could not be read
	KindLeft       Kind = "left"
)

func (OpenSession) action()  {}
func (CloseSession) action() {}
func (Renew) action()        {}
func (Read) action()         {}
func (Commit) action()       {}
func (Listen) action()       {}
func (List) action()         {}
func (StartWork) action()    {}
func (Revoke) action()       {}
func (Lose) action()         {}
func (Notify) action()       {}
func (Finish) action()       {}

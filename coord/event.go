package coord

// Event is what happened, as told to Step.
type Event interface{ event() }

// Start begins the machine's life. It is the first event.
type Start struct{}

// Tick tells only that time has passed.
type Tick struct{}

// Leave asks the machine to drain, release, leave and Finish.
type Leave struct{}

// Opened answers OpenSession.
type Opened struct {
	Req  uint64
	Code Code // OK, Failed, Fatal
	// Session, TTL (as granted) and Stamp are set when Code is OK, Err when it is not.
	Session string
	TTL     Duration
	Stamp   Stamp
	Err     error
}

// Closed answers CloseSession.
type Closed struct {
	Req uint64
}

// Renewed answers Renew. Stamp is the zero Stamp when no reply came.
type Renewed struct {
	Req     uint64
	Code    Code // OK, Failed, Unknown, SessionLost, Reincarnated, Fatal
	Stamp   Stamp
	Keys    map[string]KeyState
	Digests map[string]Digest
	Err     error
}

// ReadDone answers Read.
type ReadDone struct {
	Req     uint64
	Code    Code // OK, Failed, Fatal
	Stamp   Stamp
	Entries []Entry // sorted by key
	Digests map[string]Digest
	Err     error
}

// Committed answers Commit. When Code is OK there is one result for each transaction; else nothing was applied, except that
// Unknown says so of nothing.
type Committed struct {
	Req     uint64
	Code    Code // OK, Failed, Unknown, SessionLost, Reincarnated, Fatal
	Stamp   Stamp
	Results []Result
	Err     error
}

// Hinted tells that an address was woken. NoHints says once that the store has none, so that the machine polls.
type Hinted struct{ Address string }

// NoHints tells that the session's store gives no hints.
type NoHints struct{}

// Listed answers List: the discovered resources, or why they could not be listed.
type Listed struct {
	Req   uint64
	Names []string
	Err   error
}

// Stopped tells that the worker of a resource has ended for good: its source is closed and no handler of it runs.
type Stopped struct {
	Resource string
	Fence    int64
}

// Stuck tells that the handlers of a resource outlived drain and grace. Stopped may still follow.
type Stuck struct {
	Resource string
	Fence    int64
}

// CannotOpen tells that the worker gave up to open the resource's source, and has ended (no Stopped follows).
type CannotOpen struct {
	Resource string
	Fence    int64
	Err      error
}

// Doubt tells that somebody downstream refused the fence of a resource: its claim is read at once.
type Doubt struct {
	Resource string
	Fence    int64
}

// Superseded answers Supersede.
type Superseded struct {
	Req   uint64
	Code  Code // OK, Failed, Unknown, SessionLost, Taken
	Older int  // superseded sessions that still live
	Stamp Stamp
	Err   error
}

// Drain asks that the node be given nothing (On), or no longer so. The node stays a member.
type Drain struct{ On bool }

func (Superseded) event() {}
func (Drain) event()      {}

// Troubles tells what keeps resources from getting on, by resource, for operators; it replaces what was told before.
type Troubles struct {
	Reasons map[string]string
	// Last are the last errors of resources, those that are over too.
	Last map[string]LastError
}

func (Troubles) event()   {}
func (Start) event()      {}
func (Tick) event()       {}
func (Leave) event()      {}
func (Opened) event()     {}
func (Closed) event()     {}
func (Renewed) event()    {}
func (ReadDone) event()   {}
func (Committed) event()  {}
func (Hinted) event()     {}
func (NoHints) event()    {}
func (Listed) event()     {}
func (Stopped) event()    {}
func (Stuck) event()      {}
func (CannotOpen) event() {}
func (Doubt) event()      {}

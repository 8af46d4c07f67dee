package coord

// Machine is one node's side of the protocol.
type Machine struct{ m struct{} }

// New returns a machine that waits for Start. cfg must be valid (see package group, which validates it).
func New(cfg Config) *Machine { panic("being written") }

// Step tells the machine what happened at now and returns what to do.
func (m *Machine) Step(now Time, ev Event) []Action { panic("being written") }

// Wake is when the machine wants a Tick at the latest.
func (m *Machine) Wake() Time { panic("being written") }

// TrustedUntil is the moment up to which work under this machine's claims is ours; in the past when there is no trust.
func (m *Machine) TrustedUntil() Time { panic("being written") }

// Status is a snapshot for people. It shares nothing with the machine.
func (m *Machine) Status() Status { panic("being written") }

// Status of a machine.
type Status struct {
	State             string // joining, active, draining, left
	Coordinator       string // name of the coordinator, "" when unknown
	Leading           bool
	Epoch, Generation int64  // of the assignment applied
	Applied           bool   // an assignment was applied in this session
	Waiting           string // why the node does not get on: the grace, another process of its name, …
	Held              []Held // sorted by name
	WaitingFor        int    // claims waited for
}

// Held is one resource that the machine holds or still has a worker for.
type Held struct {
	Resource string
	Fence    int64
	Since    Time
	Phase    string // claimed (not yet started), working, draining, stopped, lost
	Stuck    bool
}

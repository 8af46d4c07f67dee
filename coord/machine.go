package coord

// Machine is one node's side of the protocol. It is not safe for concurrent use.
type Machine struct {
	cfg Config
	now Time
	out []Action
	req uint64
	rng uint64

	phase    phase
	openAt   Time     // when to open a session, in phaseWaiting
	backoff  Duration // of opening
	finished bool
	started  bool

	sess  session
	calls map[uint64]call // requests of this session that were not answered
	old   []string        // sessions to close once nothing runs that was started under them
	runs  map[string]int  // workers by the session that they were started under

	set    settingsState
	member memberState
	follow followState
	queue  claimState
	res    map[string]*resource
	todo   map[string]bool // resources to look at
	lead   leadState
	leave  leaveState
	bar    barrierState
	clock  clockState
	status statusState
}

type phase uint8

const (
	phaseWaiting  phase = iota // until openAt
	phaseOpening               // a session is being opened
	phaseSettling              // the group's settings are read or written
	phaseJoining               // the member entry is being written
	phaseActive
)

// New returns a machine that waits for Start. cfg must be valid: package group validates it.
func New(cfg Config) *Machine {
	cfg = cfg.WithDefaults()
	m := &Machine{cfg: cfg, rng: cfg.Seed, backoff: firstBackoff}
	m.res = map[string]*resource{}
	m.todo, m.runs = map[string]bool{}, map[string]int{}
	m.member.declined = map[string]decline{}
	m.resetSession()
	return m
}

// Step tells the machine what happened at now, and returns what to do.
func (m *Machine) Step(now Time, ev Event) []Action {
	m.now = max(m.now, now)
	m.out = nil
	if !m.finished {
		m.guardTrust()
		m.handle(ev)
		m.pump()
	}
	out := m.out
	m.out = nil
	if m.cfg.Observe != nil {
		m.cfg.Observe(Trace{Now: m.now, Node: m.cfg.Node, Event: ev, Actions: out, Machine: m})
	}
	return out
}

func (m *Machine) handle(ev Event) {
	switch ev := ev.(type) {
	case Start:
		m.started = true
	case Leave:
		m.onLeave()
	case Opened:
		m.onOpened(ev)
	case Closed:
		m.onClosed(ev)
	case Renewed:
		m.onRenewed(ev)
	case ReadDone:
		m.onRead(ev)
	case Committed:
		m.onCommitted(ev)
	case Hinted:
		m.onHint(ev)
	case NoHints:
		m.follow.polling = true
	case Listed:
		m.onListed(ev)
	case Stopped:
		m.onStopped(ev)
	case Stuck:
		m.onStuck(ev)
	case CannotOpen:
		m.onCannotOpen(ev)
	case Doubt:
		m.onDoubt(ev)
	case Superseded:
		m.onSuperseded(ev)
	case Drain:
		m.onDrain(ev)
	case Troubles:
		m.onTroubles(ev)
	}
}

// pump does all that is due: each part looks at the state and asks for what it lacks, so that no event need know who waits for it.
func (m *Machine) pump() {
	if m.finished || !m.started {
		return
	}
	m.pumpSession()
	m.pumpRenew()
	m.pumpNotice()
	m.pumpSettle()
	m.pumpSupersede()
	m.pumpBarrier() // before pumpMember, which tells the coordinator of it
	m.pumpMember()
	m.pumpFollow()
	m.pumpLead()
	m.pumpResources()
	m.pumpClaims()
	m.pumpReleases()
	m.pumpStatus()
	m.pumpLeave()
}

// Wake is when the machine wants a Tick at the latest.
func (m *Machine) Wake() Time {
	if m.finished || !m.started {
		return never
	}
	w := wake{never}
	m.wakeSession(&w)
	m.wakeMember(&w)
	if m.phase == phaseActive {
		m.wakeFollow(&w)
		m.wakeLead(&w)
		m.wakeStatus(&w)
	}
	m.wakeLeave(&w)
	return w.at
}

type wake struct{ at Time }

// by asks for a wake at t; 0 means that there is no such moment.
func (w *wake) by(t Time) {
	if t != 0 && t < w.at {
		w.at = t
	}
}

func (m *Machine) has(g Guards) bool { return m.cfg.Without&g == 0 }

func (m *Machine) do(a Action) { m.out = append(m.out, a) }

func (m *Machine) notify(n Notify) { m.do(n) }

// jitter is a random length below d.
func (m *Machine) jitter(d Duration) Duration {
	m.rng += 0x9e3779b97f4a7c15
	z := m.rng
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	z ^= z >> 31
	if d <= 0 {
		return 0
	}
	return Duration(z % uint64(d))
}

// fail ends the machine for a reason that no retry heals: what it holds is lost, and the claims are freed unless work
// still runs under them.
func (m *Machine) fail(err error) {
	for _, name := range sortedKeys(m.res) {
		m.loseResource(name)
	}
	if !m.working() && m.sess.id != "" {
		m.do(CloseSession{Session: m.sess.id})
	}
	m.finish(err)
}

func (m *Machine) finish(err error) {
	m.finished = true
	if err == nil {
		m.notify(Notify{Kind: KindLeft})
	}
	m.do(Finish{Err: err})
}

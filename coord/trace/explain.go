package trace

import (
	"slices"
	"sort"

	"github.com/rebalancer-go/rebalancer/coord"
)

// Explain puts what the store did between the lines of a trace. Where the trace does not say, each request is carried out as late as its
// answer, and what others did, allow; a session ends when something relies on that. The outcome is a proposal: it need not be right.
// An error means that the lines do not even belong together: an answer without a request, or a line of nobody.
func Explain(lines []Line) (*History, error) {
	var found []hindsight
	for {
		all, exact, err := requests(lines)
		if err != nil {
			return nil, err
		}
		lastRenewals(lines, all)
		for _, f := range found {
			t := all[f.key].txns[f.index]
			t.ok, t.late, t.versions = true, true, f.versions
		}
		x := &explainer{all: all, exact: exact, store: newModel(), procs: map[string]*process{}}
		x.explain(lines)
		if x.found == nil || len(found) > len(lines) {
			return &x.h, nil
		}
		found = append(found, *x.found)
	}
}

// hindsight is a transaction of which nobody was told that it was applied, and what came later shows that it was, earlier than the place
// at which that is seen.
type hindsight struct {
	key      reqKey
	index    int
	versions map[string]int64
}

func (x *explainer) explain(lines []Line) {
	x.h.Lines = len(lines)
	for _, r := range x.all {
		for _, t := range r.txns {
			x.h.Global = x.h.Global || t.do == DoBarrier
		}
	}
	for i := range lines {
		x.line = i + 1
		x.lapses(lines[i].At)
		switch l := &lines[i]; l.By {
		case ByMachine:
			x.machine(l)
		case ByStore:
			x.carriedOut(l)
		default:
			x.world(l)
		}
	}
}

// process is one process of a node, as far as it was explained.
type process struct {
	name, node string
	state      coord.Projection
	trusted    int64 // as its last line says; 0: not at all, or it has lapsed
	over       bool
	unsure     map[string]bool // claims of unknown outcome
	retry      map[string]bool // releases of unknown outcome, which are sent again until it is known
}

type explainer struct {
	h     History
	all   map[reqKey]*request
	exact bool
	line  int
	store *model
	procs map[string]*process
	open  []*txn // sent, not put into the history, and not known to have failed
	asked []*request
	found *hindsight // the first, of which the others may be consequences
}

func (x *explainer) emit(s Step) {
	s.Line = x.line
	x.h.Steps = append(x.h.Steps, s)
}

func (x *explainer) process(l *Line) *process {
	p := x.procs[l.Proc]
	if p == nil {
		p = &process{name: l.Proc, node: l.Node, unsure: map[string]bool{}, retry: map[string]bool{}}
		x.procs[l.Proc] = p
	}
	return p
}

// lapses lets the trust of processes end that ended before a moment.
func (x *explainer) lapses(at int64) {
	var over []*process
	for _, p := range x.procs {
		if p.trusted != 0 && p.trusted <= at {
			over = append(over, p)
		}
	}
	sort.Slice(over, func(i, j int) bool {
		return over[i].trusted < over[j].trusted || over[i].trusted == over[j].trusted && over[i].name < over[j].name
	})
	for _, p := range over {
		p.trusted = 0
		x.emit(Step{Do: DoLapse, Proc: p.name, Node: p.node, Session: p.state.Session})
	}
}

// world is a line of the world.
func (x *explainer) world(l *Line) {
	switch l.Event.Name {
	case Crashed:
		if p := x.procs[l.Proc]; p != nil {
			p.trusted, p.state, p.over = 0, coord.Projection{}, true
			x.emit(Step{Do: DoCrash, Proc: p.name, Node: p.node})
		}
	case Snapshot:
		x.store.snapshot()
		x.emit(Step{Do: DoSnapshot})
	case Rollback, Wiped:
		x.h.Forgets = true
		x.store.back(l.Event.Name == Wiped)
		x.emit(Step{Do: Do(l.Event.Name), Incarnation: l.Event.Incarnation})
	default:
		x.emit(Step{Do: Do(l.Event.Name)}) // nobody knows it
	}
}

// machine explains a step of a machine: what its event and its actions are, and how what it believes changed.
func (x *explainer) machine(l *Line) {
	p := x.process(l)
	e := &l.Event
	if r := x.all[reqKey{l.Proc, e.Req}]; r != nil && e.Req != 0 {
		x.answer(r, e)
	}
	next := p.state
	if l.State != nil {
		next = *l.State
	}
	step := func(s Step) { s.Proc, s.Node, s.Session = p.name, p.node, next.Session; x.emit(s) }
	x.session(p, e, &next, step)
	x.commits(p, l, step)
	x.believes(p, e, &next, step)
	p.state = next
	for _, a := range l.Actions {
		x.action(p, a, step)
	}
	if p.trusted = l.Trusted; p.over {
		p.trusted, p.state = 0, coord.Projection{}
	}
	if l.State != nil && !p.over {
		step(Step{Do: DoState, State: l.State})
	}
}

// session explains what becomes of the session, and what the event itself says.
func (x *explainer) session(p *process, e *Act, next *coord.Projection, step func(Step)) {
	if e.Name == "Start" {
		for _, o := range x.procs {
			x.h.Static = x.h.Static || o != p && o.node == p.node && !o.over
		}
		step(Step{Do: DoStart})
	}
	if was := p.state.Session; was != "" && was != next.Session {
		if p.trusted != 0 { // it gives its trust up before the time is over, as it may
			x.emit(Step{Do: DoLapse, Proc: p.name, Node: p.node, Session: was})
		}
		x.emit(Step{Do: DoFence, Proc: p.name, Node: p.node, Session: was})
		clear(p.unsure)
		clear(p.retry)
		p.state = coord.Projection{Resources: lost(p.state.Resources), Leaving: p.state.Leaving, Declined: p.state.Declined}
	}
	if do := (map[string]Do{"Stopped": DoStopped, "CannotOpen": DoCannotOpen})[e.Name]; do != "" {
		step(Step{Do: do, Resource: keyForm(e.Resource), Version: e.Fence})
	}
	if e.Name == "Opened" && e.Code == codeOK && next.Session == e.Session {
		step(Step{Do: DoOpened, Incarnation: e.Incarnation})
		p.state.Incarnation = e.Incarnation
	}
	if p.state.Incarnation != next.Incarnation {
		step(Step{Do: DoNotice, Incarnation: next.Incarnation})
		p.state.Epoch, p.state.Seen, p.state.Barrier, p.state.Acked = 0, 0, 0, 0
	}
}

// lost is what is left of resources when their claims are lost: their workers.
func lost(all map[string]coord.ResourceProjection) map[string]coord.ResourceProjection {
	left := map[string]coord.ResourceProjection{}
	for name, r := range all {
		if r.Worker != 0 {
			left[name] = coord.ResourceProjection{Worker: r.Worker, Phase: "lost"}
		}
	}
	return left
}

// believes explains how what a node believes changed otherwise.
func (x *explainer) believes(p *process, e *Act, next *coord.Projection, step func(Step)) {
	was := &p.state
	if was.Epoch != next.Epoch && was.Epoch != 0 {
		if x.store.keys[coord.LeaderKey].version == was.Epoch && !x.exact {
			x.absent(coord.LeaderKey, nil)
		}
		step(Step{Do: DoDeposed, Epoch: was.Epoch})
	}
	if next.Leaving && !was.Leaving {
		step(Step{Do: DoLeave})
	}
	for _, name := range names(was.Resources, next.Resources) {
		if f := was.Resources[name].Fence; f != 0 && next.Resources[name].Fence == 0 && e.Name != "Committed" {
			step(Step{Do: DoLost, Resource: keyForm(name), Version: f})
		}
	}
	if next.Seen != was.Seen || next.Generation != was.Generation || next.Barrier != was.Barrier || !slices.Equal(next.Share, was.Share) {
		step(Step{Do: DoFollow, Version: next.Seen, Generation: next.Generation, Share: keyForms(next.Share), Barrier: next.Barrier})
	}
	if next.Evicting && !was.Evicting {
		step(Step{Do: DoEvict})
	}
	for _, name := range was.Declined {
		if !slices.Contains(next.Declined, name) {
			step(Step{Do: DoDeclineEnds, Resource: keyForm(name)})
		}
	}
	if next.Acked > was.Acked {
		step(Step{Do: DoAck, Generation: next.Acked})
	}
	if next.Epoch != 0 && next.Epoch != was.Epoch {
		step(Step{Do: DoElected, Epoch: next.Epoch})
	}
}

func names(a, b map[string]coord.ResourceProjection) []string {
	var all []string
	for name := range a {
		all = append(all, name)
	}
	for name := range b {
		if _, ok := a[name]; !ok {
			all = append(all, name)
		}
	}
	sort.Strings(all)
	return all
}

// action explains what a machine asks for.
func (x *explainer) action(p *process, a Act, step func(Step)) {
	switch a.Name {
	case "StartWork":
		step(Step{Do: DoStartWork, Resource: keyForm(a.Resource), Version: a.Fence})
	case "Revoke":
		step(Step{Do: DoRevoke, Resource: keyForm(a.Resource), Version: a.Fence})
	case "Finish":
		do := DoFinish
		if a.Code != "" {
			do = DoCrash // it leaves without having given everything back
		}
		step(Step{Do: do})
		p.over = true
	default:
		r := x.all[reqKey{p.name, a.Req}]
		if r == nil {
			return
		}
		if a.Req == 0 { // nobody waits for the answer
			r = &request{proc: p.name, node: p.node, act: a, sent: x.line}
		}
		x.asked = append(x.asked, r)
		for _, t := range r.txns {
			if t.ok || t.perhaps {
				x.open = append(x.open, t)
			}
		}
		x.sends(p, &p.state, r, step)
	}
}

package sim

import (
	"fmt"

	"github.com/rebalancer-go/rebalancer/coord"
	"github.com/rebalancer-go/rebalancer/coord/trace"
)

// proc is one process: a machine, its clock, its workers, and the loop that drives them.
type proc struct {
	w       *World
	place   int
	life    int
	name    string
	static  []string
	machine *coord.Machine
	clock   nodeClock
	c       chance

	dead     bool // crashed or finished: no more steps
	trusted  bool // when it was last looked at
	frozen   bool
	draining bool // it asks to be given nothing
	began    vtime
	joined   vtime    // when the store opened its first session; 0: none yet
	since    vtime    // and the latest
	wrote    vtime    // its member entry
	answered vtime    // when the first answer of the store came; 0: none yet
	held     []func() // what happened to a frozen process, for when it thaws
	trust    coord.Time
	ticks    int64 // number of the planned tick; older ones are void
	ticked   vtime // when the last run of ticks began, and how many there were
	run      int

	session string             // that the machine opened last
	linc    string             // incarnation in which it was last renewed
	told    string             // session that was told of NoHints
	sent    int64              // messages sent, names them for chance
	workers map[string]*worker // the latest of each resource
	all     []*worker          // those that have not ended, and some that have, in order of their start
	calls   tally
}

// tally counts what a process asked of the store.
type tally struct{ renews, reads, commits, others int }

func (w *World) start(place int, name string, static []string) *proc {
	w.lives[place]++
	if old := w.procs[place]; old != nil && !old.dead {
		w.elders = append(w.elders, old)
	}
	p := &proc{w: w, place: place, life: w.lives[place], name: name, static: static, clock: w.setup.Nodes[place].Clock,
		began: w.now, workers: map[string]*worker{}}
	p.c = w.c.of("proc", int64(place), int64(p.life))
	p.machine = coord.New(p.observe(w.setup.config(place, p.life, name, static)))
	w.procs[place] = p
	w.note(p, "starts as %s", name)
	p.step(coord.Start{})
	return p
}

// now is the time on the process's own clock.
func (p *proc) now() coord.Time { return p.clock.at(p.w.now) }

// trusts tells whether what the process does under its claims is still covered, by its own clock.
func (p *proc) trusts() bool { return p.now() < p.trust }

// later does something in the process after a delay in world time; a frozen process does it when it thaws.
func (p *proc) later(d vtime, do func()) {
	p.w.queue.add(p.w.now+max(d, 0), func() { p.when(do) })
}

// when does something as soon as the process runs.
func (p *proc) when(do func()) {
	switch {
	case p.dead:
	case p.frozen:
		p.held = append(p.held, do)
	default:
		do()
	}
}

// step gives the machine one event, and does what it asks for.
func (p *proc) step(ev coord.Event) {
	if p.dead || p.w.err != nil {
		return
	}
	p.w.steps++
	actions, panicked := p.safeStep(ev)
	p.w.event(p, ev)
	if panicked != nil {
		p.w.fail("panic", "%s: machine panicked at %T: %v", p.name, ev, panicked)
		return
	}
	p.trust = p.machine.TrustedUntil()
	if done, ok := ev.(coord.Renewed); ok && done.Code == coord.OK {
		p.linc = done.Stamp.Incarnation
	}
	for _, a := range actions {
		p.w.action(p, a)
		p.do(a)
	}
	p.w.afterStep(p)
	p.plan(ev)
}

func (p *proc) safeStep(ev coord.Event) (a []coord.Action, panicked any) {
	defer func() { panicked = recover() }()
	return p.machine.Step(p.now(), ev), nil
}

// plan sets the clock for the next tick, and sees to it that the machine does not run in circles.
func (p *proc) plan(ev coord.Event) {
	if p.dead {
		return
	}
	wake := p.machine.Wake()
	if _, ok := ev.(coord.Tick); ok {
		if wake <= p.now() {
			p.w.fail("busy loop", "%s wants to be woken at once after a tick", p.name)
			return
		}
		if p.w.now-p.ticked > sec {
			p.ticked, p.run = p.w.now, 0
		}
		if p.run++; p.run > maxTicks {
			p.w.fail("busy loop", "%s was woken %d times within a second", p.name, p.run)
			return
		}
	}
	p.ticks++
	n := p.ticks
	at := p.clock.world(p.w.now, wake) + p.c.of("sloppy", n).below(p.w.setup.Sloppy+1)
	if at > p.w.ends {
		return
	}
	p.w.queue.add(at, func() {
		if n == p.ticks {
			p.when(func() { p.step(coord.Tick{}) })
		}
	})
}

// maxTicks is how often a machine may ask to be woken within a second: its shortest pauses are of 10 ms.
const maxTicks = 150

// do carries out one action.
func (p *proc) do(a coord.Action) {
	switch a := a.(type) {
	case coord.OpenSession:
		p.open(a)
	case coord.CloseSession:
		p.closeSession(a)
	case coord.Renew:
		p.calls.renews++
		p.renew(a)
	case coord.Read:
		p.calls.reads++
		p.read(a)
	case coord.Commit:
		p.calls.commits++
		p.commit(a)
	case coord.Supersede:
		p.calls.others++
		p.supersede(a)
	case coord.Listen:
		p.listen(a)
	case coord.List:
		p.list(a)
	case coord.StartWork:
		p.startWork(a)
	case coord.Revoke:
		p.revoke(a)
	case coord.Lose:
		p.lose(a)
	case coord.Notify:
		p.w.notified(p, a)
	case coord.Finish:
		p.finished(a)
	default:
		p.w.fail("action", "%s: unknown action %T", p.name, a)
	}
}

// finished ends the process after a leave. A node that must end for another reason than the world's is a violation.
func (p *proc) finished(a coord.Finish) {
	p.dead = true
	p.trust = 0
	if a.Err != nil && !p.w.expected(p, a.Err) {
		p.w.fail("finish", "%s ended with an error: %v", p.name, a.Err)
	}
	for _, k := range p.all {
		if k.state == workWorking && !k.lost && a.Err == nil {
			p.w.fail("finish", "%s finished while it works %s", p.name, k.resource)
		}
	}
	p.w.ended(p)
}

// crash kills the process with all its workers; what it sent is still on its way.
func (p *proc) crash() {
	p.dead = true
	p.w.note(p, "crashes")
	p.w.happened(p, trace.Crashed)
	for _, k := range p.all {
		p.w.endWork(k)
	}
	p.w.ended(p)
}

func (p *proc) freeze() {
	p.frozen = true
	p.w.note(p, "freezes")
}

// thaw lets the process go on. The tick that is overdue, or what arrived meanwhile, may come first.
func (p *proc) thaw() {
	if !p.frozen {
		return
	}
	p.frozen = false
	p.w.note(p, "thaws")
	held := p.held
	p.held = nil
	if p.c.of("thaw", p.w.now).percent(50) {
		p.step(coord.Tick{})
	}
	for _, do := range held {
		p.when(do) // it may have been frozen or killed again
	}
	p.when(func() { p.step(coord.Tick{}) })
}

func (p *proc) String() string { return fmt.Sprintf("%s/%d", p.name, p.life) }

package sim

import (
	"fmt"

	"github.com/rebalancer-go/rebalancer/coord"
)

// Violation is a broken promise.
type Violation struct {
	Property string
	Detail   string
	At       vtime
}

// Error is the violation in one line.
func (v *Violation) Error() string {
	return fmt.Sprintf("%s at %.3fs: %s", v.Property, float64(v.At)/float64(sec), v.Detail)
}

// watch looks at everything that happens and knows what must not.
type watch struct {
	working               map[string][]*worker // whose handlers run and who were not told to stop at once
	tops                  map[string]top
	terms                 map[int64]string // epoch → session that wrote under it
	epoch                 int64            // of the latest plan since data was lost
	high                  vtime            // greatest time that the store's clock showed
	stepped               vtime            // when the clock was last stepped forward
	stepSize              vtime
	looked                vtime
	workedBy              map[string]string // name of the node that worked a resource last
	everTied, everDrained map[string]bool   // resources that were to be on some node, and nodes that were to be given nothing
	everDeclined          map[string]bool   // resources that any process declined
	arrivals              []arrival         // of the commit at hand
	moves                 map[string]int    // how often that changed
	declined              map[string]bool   // pairs of process and resource that were declined
}

// top is the greatest fence that a resource was worked under, and by which session.
type top struct {
	fence   int64
	session string
	p       *proc
}

func (v *watch) init() {
	*v = watch{working: map[string][]*worker{}, tops: map[string]top{}, terms: map[int64]string{}, declined: map[string]bool{},
		workedBy: map[string]string{}, moves: map[string]int{}, everTied: map[string]bool{}, everDrained: map[string]bool{},
		everDeclined: map[string]bool{}}
}

// lost: after a loss of data plans may be older.
func (v *watch) lost() { v.epoch = 0 }

func (w *World) fail(property, format string, args ...any) {
	if w.err == nil {
		w.err = &Violation{Property: property, Detail: fmt.Sprintf(format, args...), At: w.now}
		w.note(nil, "VIOLATION %s: %s", property, w.err.Detail)
	}
}

// beginWork is called when handlers may run.
func (w *World) beginWork(k *worker) {
	w.note(k.p, "works %s under fence %d", k.resource, k.fence)
	t := w.tops[k.resource]
	switch back := k.fence < t.fence || k.fence == t.fence && k.session != t.session; {
	case back && !w.unseenStep(k.p, t.p):
		w.fail("fences grow", "%s works %s under fence %d (session %s) after it was worked under %d (session %s)",
			k.p, k.resource, k.fence, k.session, t.fence, t.session)
	case !back:
		w.tops[k.resource] = top{k.fence, k.session, k.p}
	}
	if was := w.workedBy[k.resource]; was != "" && was != k.p.name {
		w.moves[k.resource]++
	}
	w.workedBy[k.resource] = k.p.name
	w.working[k.resource] = append(w.working[k.resource], k)
	w.checkOverlap(k)
	w.checkCovered(k)
	w.checkActive()
}

// endWork is called when no handler runs any more, or none that counts.
func (w *World) endWork(k *worker) {
	list := w.working[k.resource]
	for i, x := range list {
		if x == k {
			w.working[k.resource] = append(list[:i:i], list[i+1:]...)
			w.note(k.p, "ends work on %s under fence %d", k.resource, k.fence)
		}
	}
	if k.state == workWorking {
		k.lost = true
	}
}

// checkOverlap: at most one node works a resource.
func (w *World) checkOverlap(k *worker) {
	if !k.counts() {
		return
	}
	for _, o := range w.working[k.resource] {
		if o != k && o.counts() && !w.unseenStep(k.p, o.p) {
			w.fail("no overlap", "%s works %s under fence %d while %s works it under fence %d", k.p, k.resource, k.fence, o.p, o.fence)
		}
	}
}

// unseenStep: one of the two came after a step of the store's clock, which it could not see.
func (w *World) unseenStep(a, b *proc) bool {
	if w.stepped == 0 || w.now > w.stepped+2*w.setup.TTL || w.stepSize <= w.setup.TTL/20 {
		return false
	}
	return a.answered > w.stepped || b.answered > w.stepped
}

// touched: a step of the store's clock has ended sessions early a short while ago, and one back may have shown them again since. Whoever plans
// has seen them gone.
func (w *World) touched() bool { return w.stepped != 0 && w.now < w.stepped+2*w.setup.TTL }

// checkCovered: work under a trust of the live incarnation is covered by the very claim in the store.
func (w *World) checkCovered(k *worker) {
	if !k.counts() || k.p.linc != w.store.incarnation || w.store.stepped(w.now, k.session) {
		return
	}
	r := w.store.entry(w.now, coord.ClaimKey(k.resource))
	if r == nil || r.session != k.session || r.version != k.fence {
		w.fail("work is covered", "%s works %s under fence %d of session %s, but the store has %s", k.p, k.resource, k.fence, k.session, r.describe())
	}
}

func (r *row) describe() string {
	if r == nil {
		return "no claim"
	}
	return fmt.Sprintf("version %d of session %s", r.version, r.session)
}

// glance looks at all work now and then; what concerns one process is looked at after each of its steps.
func (w *World) glance() {
	if w.now-w.looked < w.setup.TTL/60 {
		return
	}
	w.looked = w.now
	for _, p := range w.running() {
		w.checkProc(p)
	}
}

func (w *World) checkProc(p *proc) {
	for _, k := range p.all {
		if k.state == workWorking && !k.lost {
			w.checkCovered(k)
		}
	}
}

// afterStep looks at the work of a process after its machine did something.
func (w *World) afterStep(p *proc) {
	back := p.trusts() && !p.trusted
	p.trusted = p.trusts()
	w.checkProc(p)
	if back {
		for _, k := range p.all {
			w.checkOverlap(k)
		}
	}
}

package sim

import (
	"errors"
	"fmt"
	"slices"

	"github.com/rebalancer-go/rebalancer/coord"
	"github.com/rebalancer-go/rebalancer/coord/trace"
)

var errList = errors.New("the listing failed")

// begin lets a fault happen. Those that last are active until they end or the world heals.
func (w *World) begin(f Fault) {
	if w.healed {
		return
	}
	w.note(nil, "fault %s", f)
	p := w.target(f)
	up := p != nil && !p.dead
	latest := up && p == w.procs[f.Node]
	switch f.Kind {
	case ActPause, ActPauseKept, ActDrain, ActDrainSelf, ActPin, ActMove:
		w.act(f)
	case ActEvict:
		w.evict(f)
	case ActStepDown:
		w.depose()
	case FaultDouble:
		if p := w.procs[f.Node]; p != nil && !p.dead && w.setup.Nodes[f.Node].StaticID && len(w.elders) < maxElders {
			w.start(f.Node, p.name, w.lists[f.Node])
		}
	case FaultCrash:
		if up {
			p.crash()
			w.again(f, latest)
		}
	case FaultLeave:
		if up {
			p.when(func() { p.step(coord.Leave{}) })
			w.again(f, latest)
		}
	case FaultFreeze:
		if up && !p.frozen {
			p.freeze()
			w.at(f.At+f.Dur, p.thaw)
		}
	case FaultSnapshot:
		w.store.snapshot()
		w.happened(nil, trace.Snapshot)
	case FaultRollback, FaultWipe:
		w.loseData(f)
	case FaultStep:
		w.stepClock(f.Arg)
	case FaultAppear, FaultVanish:
		w.change(f, f.Kind == FaultAppear)
	case FaultDoubt:
		r := w.setup.Resources[f.Arg]
		if up && p.workers[r] != nil {
			p.when(func() { p.step(coord.Doubt{Resource: r, Fence: p.workers[r].fence}) })
		}
	default:
		w.active = append(w.active, f)
		w.at(f.At+f.Dur, func() {
			w.active = slices.DeleteFunc(w.active, func(a Fault) bool { return a.ID == f.ID })
		})
	}
}

// again plans the next process at the place of one that crashes or leaves: never, for a quarter of them, except at the
// first place, so that somebody is left.
func (w *World) again(f Fault, latest bool) {
	if !latest {
		return // another one runs there
	}
	if f.Arg == 0 && f.Node > 0 {
		w.gone[f.Node] = true
		return
	}
	life := w.lives[f.Node]
	w.at(f.At+f.Dur+ms, func() {
		if f.Arg%2 == 1 && !w.setup.Nodes[f.Node].StaticID {
			w.names[f.Node] = fmt.Sprintf("%s.%d", w.setup.Nodes[f.Node].Name, life+1)
		}
		w.revive(f.Node, life)
	})
}

// revive starts the next process at a place, once the old one is over.
func (w *World) revive(place, life int) {
	p := w.procs[place]
	switch {
	case w.lives[place] != life: // somebody was quicker
	case p.dead:
		w.gone[place] = false
		w.start(place, w.names[place], w.lists[place])
	default:
		w.at(w.now+w.setup.TTL/20, func() { w.revive(place, life) })
	}
}

// change lets a resource come or go. For static lists a process with another list takes the place of the old one.
func (w *World) change(f Fault, there bool) {
	r := w.setup.Resources[f.Arg]
	if w.setup.Origin != coord.OriginStatic {
		w.setExists(r, there)
		return
	}
	list := slices.DeleteFunc(slices.Clone(w.lists[f.Node]), func(x string) bool { return x == r })
	if there {
		list = append(list, r)
		slices.Sort(list)
	}
	w.lists[f.Node] = list
	if p := w.procs[f.Node]; p != nil && !p.dead && !w.gone[f.Node] {
		p.when(func() { p.step(coord.Leave{}) })
		life := w.lives[f.Node]
		w.at(w.now+ms, func() { w.revive(f.Node, life) })
	}
}

// loseData rolls the store back, or empties it.
func (w *World) loseData(f Fault) {
	w.stats.Losses++
	w.stepClock(f.Arg)
	name := trace.Rollback
	if f.Kind == FaultWipe || len(w.store.snaps) == 0 {
		name = trace.Wiped
	}
	w.store.lose(w.now, 0, f.Kind == FaultWipe)
	w.happened(nil, name)
	w.watch.lost()
}

// stepClock steps the store's clock, within what the protocol promises to survive: fences grow across a loss of data as long as the clock
// goes back by less than the grace, and a step forward is either covered by the margin, also together with others, or large
// enough to be seen.
func (w *World) stepClock(d vtime) {
	if d == 0 {
		return
	}
	high := max(w.high, w.store.clock(w.now))
	w.high = high
	if d < 0 {
		d = max(d, high-w.setup.TTL/2-w.store.clock(w.now))
	} else {
		if w.now-w.stepped < 2*w.setup.TTL && w.stepped != 0 {
			return
		}
		if seen := max(w.setup.TTL/20, sec)*11/10 + w.roundTrip(); d > w.setup.TTL/20 && d < seen {
			d = seen
		}
		w.stepped, w.stepSize = w.now, d
	}
	w.store.step += d
}

// roundTrip is how long a call that is answered may take: what the store's clock advanced meanwhile tells nothing of a step.
func (w *World) roundTrip() vtime {
	if slices.ContainsFunc(w.faults, func(f Fault) bool { return f.Kind == FaultLag }) {
		return w.setup.TTL / 2 // the longest timeout
	}
	return 2 * w.setup.Latency
}

// heal ends all faults: frozen processes thaw, and every place that is not empty for good gets a process.
func (w *World) heal() {
	w.healed = true
	for _, p := range w.elders {
		p.thaw()
	}
	w.active = nil
	w.note(nil, "all faults are over")
	for r, there := range w.existing() {
		w.setExists(r, there)
	}
	w.restore()
	for i := range w.procs {
		p := w.procs[i]
		if p == nil {
			w.start(i, w.names[i], w.lists[i])
			continue
		}
		p.thaw()
		if p.dead && !w.gone[i] {
			w.revive(i, w.lives[i])
		}
	}
}

// existing is what there is, in order. An operator puts back what the store lost.
func (w *World) existing() func(func(string, bool) bool) {
	return func(yield func(string, bool) bool) {
		for _, r := range w.setup.Resources {
			if !yield(r, w.exists[r]) {
				return
			}
		}
	}
}

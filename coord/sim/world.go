package sim

import (
	"github.com/rebalancer-go/rebalancer/coord"
)

// World is one simulated group with its store, its network, and what goes wrong.
type World struct {
	setup  Setup
	faults []Fault
	c      chance
	now    vtime
	ends   vtime
	queue  queue
	store  *store

	procs     []*proc                  // the latest process at each place
	elders    []*proc                  // processes that ran when another one started under their static name
	controls  map[string]coord.Control // what operators ask for, by key
	opener    map[string]*proc         // by session
	evicted   map[*proc]bool           // that an operator evicted
	lives     []int
	gone      []bool // the place stays empty
	lists     [][]string
	names     []string
	exists    map[string]bool // resources there are, unless lists say so
	listeners map[string][]listener
	active    []Fault
	healed    bool

	watch
	history *history
	tracer  *tracer
	steps   int
	limit   int
	err     *Violation
	stats   Stats
}

// Stats is what a world did.
type Stats struct {
	Steps, Faults, Claims, Rebalances, Elections, Fenced, Losses int
	Settled                                                      vtime // from the end of the faults until everything was in its place
}

// NewWorld prepares a world. faults may be any part of the schedule of its setup.
func NewWorld(s Setup, faults []Fault) *World {
	w := &World{setup: s, faults: faults, c: s.chance(), store: newStore(s.Store), exists: map[string]bool{},
		opener: map[string]*proc{}, evicted: map[*proc]bool{}, controls: map[string]coord.Control{}, listeners: map[string][]listener{}, limit: 2_000_000}
	n := len(s.Nodes)
	w.procs, w.lives, w.gone, w.lists, w.names = make([]*proc, n), make([]int, n), make([]bool, n), make([][]string, n), make([]string, n)
	w.watch.init()
	w.ends = s.Heal + w.bound() + idleWindow(&s)
	w.store.mute = s.HintsOnly
	if s.Fresh {
		w.store.since = w.store.clock(0) / 1000
	}
	for _, r := range s.Resources {
		w.setExists(r, w.c.of("exists", int64(len(r))).of(r).percent(80))
	}
	for i := range s.Nodes {
		w.lists[i] = s.Nodes[i].Static
		w.names[i] = s.Nodes[i].Name
		w.at(s.Nodes[i].Begins, func() {
			if w.procs[i] == nil {
				w.start(i, w.names[i], w.lists[i])
			}
		})
	}
	for _, f := range faults {
		w.at(f.At, func() { w.begin(f) })
	}
	w.at(s.Heal, w.heal)
	w.planSettle()
	return w
}

func (w *World) at(t vtime, do func()) { w.queue.add(t, do) }

// Run lets the world go on to its end, and returns the first violation, or nil.
func (w *World) Run() *Violation {
	for w.queue.Len() > 0 && w.err == nil {
		q := w.queue.next()
		if q.at > w.ends {
			break
		}
		w.now = q.at
		q.do()
		w.glance()
		if w.steps > w.limit {
			w.fail("busy loop", "more than %d steps", w.limit)
		}
	}
	w.stats.Steps, w.stats.Faults = w.steps, len(w.faults)
	return w.err
}

// Stats is what the world did so far.
func (w *World) Stats() Stats { return w.stats }

// setExists lets a resource come or go, where the origin is not the nodes' own lists.
func (w *World) setExists(r string, there bool) {
	w.exists[r] = there
	if w.setup.Origin != coord.OriginRegistered {
		return
	}
	w.store.notice(w.now)
	if there {
		w.store.put(w.now, coord.ResourceKey(r), coord.EncodeRegistration(w.registration(r)), "")
	} else {
		w.store.remove(coord.ResourceKey(r))
	}
	w.wake(coord.CoordinatorAddress)
}

func (w *World) registration(r string) coord.Registration {
	if v, ok := w.setup.Registered[r]; ok {
		return v
	}
	return coord.Registration{Name: r}
}

// list answers a coordinator that asks what there is to discover.
func (p *proc) list(a coord.List) {
	w := p.w
	p.sent++
	n := p.sent
	p.later(p.c.of("list", n).below(10*w.setup.Latency+1), func() {
		var names []string
		for _, r := range w.setup.Resources {
			there := w.exists[r]
			for _, f := range w.active {
				if f.Kind == FaultListError {
					p.step(coord.Listed{Req: a.Req, Err: errList})
					return
				}
				if f.Kind == FaultFlap && p.c.of("flap", n, f.ID).of(r).percent(f.Arg) {
					there = false
				}
			}
			if there {
				names = append(names, r)
			}
		}
		p.step(coord.Listed{Req: a.Req, Names: names})
	})
}

// cannotOpen tells whether a source cannot be opened at a process right now.
func (w *World) cannotOpen(p *proc, resource string) bool {
	for _, f := range w.active {
		if f.Kind == FaultOpen && f.Node == p.place && (f.Arg < 0 || w.setup.Resources[f.Arg] == resource) {
			return true
		}
	}
	return false
}

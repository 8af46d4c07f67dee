package sim

import (
	"io"

	"github.com/rebalancer-go/rebalancer/coord"
	"github.com/rebalancer-go/rebalancer/coord/trace"
)

// tracer writes what happens as a trace for package trace. A world without one does not pay for it.
type tracer struct {
	out   io.Writer
	store bool // what the store does is written, too
	err   error
}

// Trace lets the world write a trace to out: the steps of all machines and what happens to processes and data; with store also what the
// store does, as no real server tells it. To be called before Run, whose violation tells of an error of out.
func (w *World) Trace(out io.Writer, store bool) { w.tracer = &tracer{out: out, store: store} }

func (w *World) trace(l trace.Line) {
	if w.tracer == nil || w.tracer.err != nil {
		return
	}
	b, err := l.Encode()
	if err == nil {
		_, err = w.tracer.out.Write(b)
	}
	if w.tracer.err = err; err != nil {
		w.fail("trace", "it cannot be written: %v", err)
	}
}

// observe lets a process write its steps.
func (p *proc) observe(cfg coord.Config) coord.Config {
	if p.w.tracer == nil {
		return cfg
	}
	var r trace.Recorder
	cfg.Observe = func(t coord.Trace) {
		l, ok := r.Step(p.w.now, t)
		if l.Trusted != 0 {
			l.Trusted = p.clock.world(p.w.now, t.Machine.TrustedUntil())
		}
		if ok {
			p.w.trace(l)
		}
	}
	return cfg
}

// happened writes what happened to a process, or to the store's data when p is nil.
func (w *World) happened(p *proc, name string) {
	if w.tracer == nil {
		return
	}
	l := trace.Line{At: w.now, By: trace.ByWorld, Event: trace.Act{Name: name, Incarnation: w.store.incarnation}}
	if p != nil {
		l.Node, l.Proc = p.name, p.machine.Instance()
	}
	w.trace(l)
}

// carried writes what the store did with a request of the process.
func (p *proc) carried(a trace.Act) {
	if t := p.w.tracer; t != nil && t.store {
		p.w.trace(trace.Line{At: p.w.now, By: trace.ByStore, Node: p.name, Proc: p.machine.Instance(), Event: a})
	}
}

// NewTraced draws a group from a seed whose trace the specification can replay: small, with the faults that it knows, and without what it
// has no word for (static names, operators, and a store that forgets or whose clock is set).
func NewTraced(seed int64) Setup {
	s := NewSetup(seed)
	s.unplaced()
	c := s.chance().of("traced")
	s.Nodes = s.Nodes[:min(len(s.Nodes), int(c.of("nodes").between(2, 4)))]
	s.Resources = s.Resources[:min(len(s.Resources), int(c.of("resources").between(1, 5)))]
	for i := range s.Nodes {
		n := &s.Nodes[i]
		n.StaticID, n.MaxResources, n.Static, n.Formats = false, 0, s.Resources, nil
	}
	s.Heal = s.TTL * c.of("length").between(3, 10)
	s.Kinds = []weighted{{FaultCrash, 4}, {FaultLeave, 4}, {FaultFreeze, 8}, {FaultPartition, 8}, {FaultLoss, 8}, {FaultLag, 6},
		{FaultOutage, 3}, {FaultHints, 5}, {FaultOpen, 3}, {FaultDoubt, 2}}
	if s.Mode == coord.ResourceBarrier { // the specification has no word for a global barrier that opens beside what is stuck
		s.Kinds = append(s.Kinds, weighted{FaultSlow, 3}, weighted{FaultStuck, 1})
	}
	if s.Origin != coord.OriginStatic {
		s.Kinds = append(s.Kinds, weighted{FaultAppear, 4}, weighted{FaultVanish, 4})
	}
	return s
}

package sim

import (
	"errors"
	"slices"

	"github.com/rebalancer-go/rebalancer/coord"
)

// worker is what works one claim: it opens the source, works, drains, and ends.
type worker struct {
	p        *proc
	resource string
	fence    int64
	session  string // of the claim
	number   int64
	state    workState
	lost     bool // told that the claim is no longer ours
	revoked  bool
	stuck    bool // it was reported that its handlers do not return
}

type workState uint8

const (
	workOpening workState = iota
	workWorking
	workEnded
)

// counts tells whether the worker is working in the sense of the first promise: its handlers run, nobody told it to
// stop at once, and its node's trust is not over. A drain counts: handlers still run in it.
func (k *worker) counts() bool {
	return k.state == workWorking && !k.lost && k.p.trusts()
}

func (p *proc) startWork(a coord.StartWork) {
	if k := p.workers[a.Resource]; k != nil && k.state != workEnded {
		p.w.fail("double start", "%s starts work on %s under fence %d while its worker of fence %d has not stopped", p.name, a.Resource, a.Fence, k.fence)
		return
	}
	p.sent++
	k := &worker{p: p, resource: a.Resource, fence: a.Fence, session: p.session, number: p.sent}
	p.workers[a.Resource] = k
	p.all = append(slices.DeleteFunc(p.all, func(x *worker) bool { return x.state == workEnded }), k)
	p.later(p.c.of("opening", k.number).below(p.w.setup.Opening+1), func() { p.opened(k) })
}

// opened is the end of the attempt to open the source.
func (p *proc) opened(k *worker) {
	if k.state != workOpening {
		return
	}
	if p.w.cannotOpen(p, k.resource) {
		k.state = workEnded
		p.step(coord.CannotOpen{Resource: k.resource, Fence: k.fence, Err: errCannotOpen})
		return
	}
	if k.lost || k.revoked {
		return // its end is on the way
	}
	if !p.trusts() {
		return // a worker looks at the trust before each step; the machine will tell it
	}
	k.state = workWorking
	p.w.beginWork(k)
}

var errCannotOpen = errors.New("the source cannot be opened here")

// revoke lets the handlers finish.
func (p *proc) revoke(a coord.Revoke) {
	k := p.workers[a.Resource]
	if k == nil || k.fence != a.Fence || k.state == workEnded {
		p.w.fail("revoke", "%s revokes %s under fence %d, which has no worker", p.name, a.Resource, a.Fence)
		return
	}
	k.revoked = true
	var drain vtime
	if k.state == workWorking {
		drain = p.drain(k)
	}
	if limit := 2 * p.w.setup.Drain; drain > limit {
		p.later(limit, func() {
			if k.state != workEnded {
				k.stuck = true
				p.step(coord.Stuck{Resource: k.resource, Fence: k.fence})
			}
		})
	}
	p.later(drain, func() { p.stopped(k) })
}

// drain is how long handlers take to finish.
func (p *proc) drain(k *worker) vtime {
	d := p.c.of("drain", k.number).below(p.w.setup.Drain + 1)
	for _, f := range p.w.active {
		if f.Node != p.place {
			continue
		}
		switch f.Kind {
		case FaultSlow:
			d += p.c.of("slow", k.number, f.ID).below(f.Arg)
		case FaultStuck:
			d = max(d, f.At+f.Dur-p.w.now)
		}
	}
	return d
}

// lose cancels the handlers; nothing that they do from now on counts, and they end soon.
func (p *proc) lose(a coord.Lose) {
	k := p.workers[a.Resource]
	if k != nil && k.fence == a.Fence && k.state == workEnded {
		return // it ended at the same time
	}
	if k == nil || k.fence != a.Fence {
		p.w.fail("lose", "%s loses %s under fence %d, which has no worker", p.name, a.Resource, a.Fence)
		return
	}
	p.w.endWork(k)
	k.lost = true
	d := p.drain(k)
	p.later(d, func() { p.stopped(k) })
}

func (p *proc) stopped(k *worker) {
	if k.state == workEnded {
		return
	}
	p.w.endWork(k)
	k.state = workEnded
	p.step(coord.Stopped{Resource: k.resource, Fence: k.fence})
}

package sim

import (
	"errors"

	"github.com/rebalancer-go/rebalancer/coord"
	"github.com/rebalancer-go/rebalancer/coord/trace"
)

// path is what becomes of one request and its reply.
type path struct {
	refused     bool // nothing was sent, and the sender knows
	out, back   vtime
	lost, blind bool // the request, or the reply, never arrives
}

// route draws the path of the n-th message of a process.
func (p *proc) route(n int64) path {
	w, c := p.w, p.c.of("message", n)
	r := path{out: c.of("out").below(w.setup.Latency + 1), back: c.of("back").below(w.setup.Latency + 1)}
	for _, f := range w.active {
		if f.Node >= 0 && f.Node != p.place {
			continue
		}
		x := c.of("fault", f.ID)
		switch f.Kind {
		case FaultPartition:
			r.lost = true
			r.refused = r.refused || x.percent(20)
		case FaultOutage:
			r.lost = true
			r.refused = r.refused || f.Arg%2 == 1
		case FaultLoss:
			r.lost = r.lost || x.of("request").percent(f.Arg/2)
			r.blind = r.blind || x.of("reply").percent(f.Arg/2)
		case FaultLag:
			r.out += x.of("out").below(f.Arg)
			r.back += x.of("back").below(f.Arg)
		}
	}
	return r
}

// cut tells whether nothing passes between a process and the store right now.
func (w *World) cut(p *proc) bool {
	for _, f := range w.active {
		if f.Kind == FaultOutage || f.Kind == FaultPartition && f.Node == p.place {
			return true
		}
	}
	return false
}

// request sends something to the store, and tells the process how it ended: by the reply, or by gaveUp after the timeout.
// at is what happens in the store; it returns what the reply tells the process.
func (p *proc) request(timeout coord.Duration, at func() func(), gaveUp func(code coord.Code)) {
	w := p.w
	p.sent++
	n := p.sent
	r := p.route(n)
	if r.refused {
		p.later(w.setup.Latency+ms, func() { gaveUp(coord.Failed) })
		return
	}
	done := false
	if !r.lost {
		w.queue.add(w.now+r.out, func() {
			if w.cut(p) {
				return // it began while the request was on its way
			}
			reply := at()
			if r.blind || reply == nil {
				return
			}
			w.queue.add(w.now+r.back, func() {
				if w.cut(p) {
					return
				}
				p.when(func() {
					if !done {
						done = true
						p.first()
						reply()
					}
				})
			})
		})
	}
	p.later(p.clock.world(w.now, p.now()+coord.Time(timeout))-w.now, func() {
		if !done {
			done = true
			gaveUp(coord.Unknown)
		}
	})
}

func (p *proc) first() {
	if p.answered == 0 {
		p.answered = p.w.now
	}
}

var errAway = errors.New("the store did not answer")

// failedIf is Failed where an outcome that is unknown changed nothing that matters.
func failedIf(coord.Code) coord.Code { return coord.Failed }

func (p *proc) open(a coord.OpenSession) {
	p.calls.others++
	p.request(coord.Duration(p.w.setup.TTL/6), func() func() {
		re := p.w.store.open(p.w.now, p.name, a)
		p.w.opener[re.Session], p.since = p, p.w.now
		if p.joined == 0 {
			p.joined = p.w.now
		}
		return func() {
			p.session, p.linc = re.Session, re.Stamp.Incarnation
			p.step(re)
			if !p.w.setup.Hints && p.session == re.Session && p.told != re.Session {
				p.told = re.Session
				p.step(coord.NoHints{})
			}
		}
	}, func(code coord.Code) { p.step(coord.Opened{Req: a.Req, Code: failedIf(code), Err: errAway}) })
}

func (p *proc) closeSession(a coord.CloseSession) {
	p.calls.others++
	p.request(coord.Duration(p.w.setup.TTL/6), func() func() {
		p.w.closing(p, a.Session)
		p.w.store.end(p.w.now, a.Session)
		p.carried(trace.Act{Name: "CloseSession", Req: a.Req, Session: a.Session})
		return func() { p.step(coord.Closed{Req: a.Req}) }
	}, func(coord.Code) { p.step(coord.Closed{Req: a.Req}) })
}

func (p *proc) supersede(a coord.Supersede) {
	p.request(a.Timeout, func() func() {
		re := p.w.store.supersede(p.w.now, a, func(id string) bool {
			old := p.w.opener[id]
			return p.w.setup.Proof && old != nil && old.dead
		})
		p.carried(trace.Act{Name: "Supersede", Req: a.Req, Code: re.Code.String(), Session: a.Session})
		return func() { p.step(re) }
	}, func(code coord.Code) { p.step(coord.Superseded{Req: a.Req, Code: code, Err: errAway}) })
}

func (p *proc) renew(a coord.Renew) {
	p.request(a.Timeout, func() func() {
		re := p.w.store.renew(p.w.now, a)
		p.carried(trace.Act{Name: "Renew", Req: a.Req, Code: re.Code.String(), Session: a.Session})
		return func() { p.step(re) }
	}, func(code coord.Code) { p.step(coord.Renewed{Req: a.Req, Code: code, Err: errAway}) })
}

func (p *proc) read(a coord.Read) {
	p.request(a.Timeout, func() func() {
		re := p.w.store.read(p.w.now, a)
		return func() { p.step(re) }
	}, func(code coord.Code) { p.step(coord.ReadDone{Req: a.Req, Code: failedIf(code), Err: errAway}) })
}

func (p *proc) commit(a coord.Commit) {
	p.w.checkCommit(p, a)
	p.request(a.Timeout, func() func() {
		re := p.w.store.commit(p.w.now, a, func(session string, t coord.Txn) { p.w.applied(p, session, t) })
		p.carried(trace.Act{Name: "Commit", Req: a.Req, Code: re.Code.String(), Session: a.Session, Results: trace.Results(re.Results)})
		p.w.committed(p, a, re)
		return func() { p.step(re) }
	}, func(code coord.Code) { p.step(coord.Committed{Req: a.Req, Code: code, Err: errAway}) })
}

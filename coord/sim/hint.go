package sim

import "github.com/rebalancer-go/rebalancer/coord"

// listener is a process that wants to be told when an address is woken.
type listener struct {
	p       *proc
	session string
}

func (p *proc) listen(a coord.Listen) {
	w := p.w
	p.calls.others++
	if !w.setup.Hints {
		return
	}
	p.sent++
	r := p.route(p.sent)
	if r.lost || r.refused {
		return
	}
	w.queue.add(w.now+r.out, func() {
		for _, l := range w.listeners[a.Address] {
			if l.p == p && l.session == a.Session {
				return
			}
		}
		w.listeners[a.Address] = append(w.listeners[a.Address], listener{p, a.Session})
	})
}

// wake sends hints to everybody who listens at an address: sometimes none, sometimes two.
func (w *World) wake(address string) {
	keep := w.listeners[address][:0]
	for _, l := range w.listeners[address] {
		if !l.p.dead && l.p.session == l.session {
			keep = append(keep, l)
		}
	}
	w.listeners[address] = keep
	for _, l := range keep {
		p := l.p
		p.sent++
		r := p.route(p.sent)
		copies := 1
		for _, f := range w.active {
			if f.Kind != FaultHints {
				continue
			}
			x := p.c.of("hint", p.sent, f.ID)
			if x.of("lost").percent(f.Arg) {
				copies = 0
			} else if x.of("doubled").percent(f.Arg) {
				copies++
			}
		}
		if r.lost || r.blind || r.refused {
			copies = 0
		}
		for i := range copies {
			p.later(r.back+int64(i)*(r.out+ms), func() {
				if !w.cut(p) {
					p.step(coord.Hinted{Address: address})
				}
			})
		}
	}
}

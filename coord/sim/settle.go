package sim

import (
	"errors"
	"fmt"

	"github.com/rebalancer-go/rebalancer/coord"
)

// bound is how long a group may need after the last fault until everything is in its place: the sessions of the dead (1 ttl),
// the grace or the wait after a step of the store's clock (1 ttl, counted from the end of an outage), the wait for known
// nodes (1 ttl), then joins, drains and listings.
func (w *World) bound() vtime {
	s := &w.setup
	if s.Bound > 0 {
		return s.Bound
	}
	b := 4*s.TTL + 3*s.Debounce + 4*s.Drain + 2*s.Opening + 20*s.Latency
	if s.MaxActive > 0 {
		b += s.TTL
	}
	if n := vtime(max(s.MaxMoving, s.MaxMovingNode)); n > 0 { // one after the other, each found out by a poll
		b += vtime(len(s.Resources)) / min(n, vtime(max(s.MaxMoving, 1))) * (s.Drain + s.TTL/6 + 10*s.Latency + s.Opening)
	}
	if s.Origin == coord.OriginDiscovered {
		b += shrinkLists * s.ListEvery
	}
	return b
}

// shrinkLists is after how many listings, at most, a shrink of the discovered list is believed: ten, and what it takes to begin counting.
const shrinkLists = 13

func idleWindow(s *Setup) vtime { return 2 * s.TTL }

// planSettle plans the looks at a world in which nothing is wrong any more.
func (w *World) planSettle() {
	s := &w.setup
	deadline := s.Heal + w.bound()
	w.stats.Settled = -1
	for t := s.Heal; t < deadline; t += s.TTL / 4 {
		w.at(t, func() {
			if w.unsettled() != "" {
				w.stats.Settled = -1
			} else if w.stats.Settled < 0 {
				w.stats.Settled = w.now - s.Heal
			}
		})
	}
	w.at(deadline, func() { w.judge(0) })
}

// judge looks whether everything is in its place when the time is over. A decline that ends just then moves work again, which is
// granted another ttl, a few times.
func (w *World) judge(times int) {
	why := w.unsettled()
	switch {
	case why == "":
		if w.stats.Settled < 0 {
			w.stats.Settled = w.now - w.setup.Heal
		}
		w.planIdle()
	case len(w.declined) > 0 && times < 3:
		w.ends += w.setup.TTL
		w.at(w.now+w.setup.TTL, func() { w.judge(times + 1) })
	default:
		w.fail("settles", "%.3fs after the last fault: %s", float64(w.now-w.setup.Heal)/float64(sec), why)
	}
}

// unsettled says what is not in its place, or "".
func (w *World) unsettled() string {
	for _, p := range w.elders {
		if w.elder(p) {
			return fmt.Sprintf("%s still runs beside a newer process of its name", p)
		}
	}
	for i, p := range w.procs {
		if (p == nil || p.dead) && !w.gone[i] {
			return fmt.Sprintf("no process at place %d", i+1)
		}
		if p != nil && !p.dead {
			if st := p.machine.Status(); st.State != "active" && (st.State != "draining" || !w.drained(p)) {
				return fmt.Sprintf("%s is %s", p, st.State)
			}
		}
	}
	for _, k := range w.store.keys {
		if moveKey(k) {
			return k + " was not taken back"
		}
	}
	s, fault := w.shares()
	if fault == "" {
		fault = s.fault()
	}
	return fault
}

// planIdle measures what a group at rest costs. A decline that ends moves work again: such worlds are left out.
func (w *World) planIdle() {
	if len(w.declined) > 0 || w.setup.HintsOnly {
		return
	}
	before := make([]tally, len(w.procs))
	for i, p := range w.procs {
		if p != nil {
			before[i] = p.calls
		}
	}
	from := w.now
	w.at(w.ends, func() {
		each := w.setup.TTL / 6
		most := int((w.now-from)*(1_000_000+maxDrift)/1_000_000/each) + 1
		for i, p := range w.procs {
			if p == nil || p.dead {
				continue
			}
			d := tally{p.calls.renews - before[i].renews, p.calls.reads - before[i].reads, p.calls.commits - before[i].commits, p.calls.others - before[i].others}
			if d.reads+d.commits+d.others > 0 || d.renews > most {
				w.fail("idle costs one write per renewal", "%s: %d renewals (at most %d), %d reads, %d commits, %d other calls in %.3fs",
					p, d.renews, most, d.reads, d.commits, d.others, float64(w.now-from)/float64(sec))
			}
		}
		if why := w.unsettled(); why != "" {
			w.fail("settles", "did not stay at rest: %s", why)
		}
	})
}

// notified counts what people would see.
func (w *World) notified(p *proc, n coord.Notify) {
	switch n.Kind {
	case coord.KindRebalanced:
		w.stats.Rebalances++
	case coord.KindElected:
		w.stats.Elections++
	case coord.KindFenced:
		w.stats.Fenced++
	case coord.KindDeclined:
		w.declined[p.key(n.Resource)], w.everDeclined[n.Resource] = true, true
	}
}

// expected tells whether a node may end with this error: handlers outlived the drain of a leaving node, or a newer process took
// its static name, or it is too old for the group's format, and then its place is empty for good.
func (w *World) expected(p *proc, err error) bool {
	if errors.Is(err, coord.ErrMismatch) && w.tooOld(p) {
		w.gone[p.place] = true
		return true
	}
	return errors.Is(err, coord.ErrStuck) || errors.Is(err, coord.ErrSuperseded) && (w.superseded(p) || w.evicted[p])
}

// tooOld tells whether the group was upgraded to a format that a process does not read.
func (w *World) tooOld(p *proc) bool {
	r := w.store.entry(w.now, coord.SettingsKey)
	if r == nil {
		return false
	}
	s, err := coord.DecodeSettings(r.value)
	return err == nil && s.Format > w.setup.config(p.place, p.life, p.name, nil).FormatMax
}

// committed is called with every answered commit.
func (w *World) committed(p *proc, a coord.Commit, re coord.Committed) {
	w.checkPreferences()
	for i, t := range a.Txns {
		if re.Code == coord.OK && re.Results[i].Code == coord.OK {
			for _, address := range t.Wake {
				w.wake(address)
			}
		}
	}
}

package sim

import (
	"strings"

	"github.com/rebalancer-go/rebalancer/coord"
)

// checkCommit: requests keep to the contract.
func (w *World) checkCommit(p *proc, a coord.Commit) {
	for _, t := range a.Txns {
		if s := wrong(t); s != "" {
			w.fail("contract", "%s: %s", p, s)
		}
	}
}

// applied is called with what is about to change in the store.
func (w *World) applied(p *proc, session string, t coord.Txn) {
	plan := false
	for _, k := range t.Deletes {
		w.claimGoes(p, k)
		plan = plan || planKey(k)
	}
	for _, put := range t.Puts {
		if strings.HasPrefix(put.Key, coord.ClaimPrefix) {
			if r := w.store.entry(w.now, put.Key); r != nil {
				w.fail("claims are free", "%s claims %s, which session %s holds", p, put.Key, r.session)
			}
			w.stats.Claims++
			if b, ok := w.barrier(); ok && !b.Open {
				w.fail("global barrier", "%s claims %s while the barrier is closed for generation %d", p, put.Key, b.Generation)
			}
		}
		if headOf(put.Key) {
			w.checkMoving(put)
			w.noteArrivals(put)
		}
		if put.Key == coord.BarrierKey {
			w.opens(put)
		}
		if put.Key == coord.MemberKey(p.name) {
			p.wrote = w.now
		}
		plan = plan || planKey(put.Key)
		if epoch, ok := epochOf(put); ok {
			w.planned(p, session, epoch)
		}
	}
	if plan {
		if r := w.store.entry(w.now, coord.LeaderKey); r == nil || r.session != session {
			w.fail("deposed coordinator", "%s changes the plan, but the leader entry is %s", p, r.describe())
		}
	}
}

// barrier is what stands in the store, in a group that has one.
func (w *World) barrier() (coord.Barrier, bool) {
	r := w.store.entry(w.now, coord.BarrierKey)
	if r == nil || w.setup.Mode != coord.GlobalBarrier {
		return coord.Barrier{}, false
	}
	b, err := coord.DecodeBarrier(r.value)
	return b, err == nil
}

// opens: a barrier that was closed opens only after everybody has stopped, but for what is stuck. Where data was lost, what nodes
// said of themselves may be old. A step of the store's clock tells nothing of sessions: see touched.
func (w *World) opens(put coord.Put) {
	b, err := coord.DecodeBarrier(put.Value)
	if was, ok := w.barrier(); err != nil || !b.Open || !ok || was.Open || w.store.losses > 0 || w.touched() {
		return
	}
	for _, r := range w.setup.Resources {
		for _, k := range w.working[r] {
			if k.counts() && !k.stuck && !w.orphan(k) {
				w.fail("global barrier", "generation %d opens while %s still works %s", b.Generation, k.p, r)
			}
		}
	}
}

// planKey: only the coordinator writes there. Operators do not take part in the history of a world.
func planKey(k string) bool {
	return strings.HasPrefix(k, coord.AssignmentPrefix) || strings.HasPrefix(k, coord.HistoryPrefix) || k == coord.BarrierKey || strings.HasPrefix(k, coord.DiscoveredPrefix)
}

func epochOf(put coord.Put) (int64, bool) {
	if !strings.HasPrefix(put.Key, coord.AssignmentPrefix) {
		return 0, false
	}
	a, err := coord.DecodeAssignment([]coord.Entry{{Key: put.Key, Value: put.Value}})
	return a.Epoch, err == nil
}

// planned: a term has one writer, and terms follow each other.
func (w *World) planned(p *proc, session string, epoch int64) {
	if s, ok := w.terms[epoch]; ok && s != session {
		w.fail("one writer per term", "%s (session %s) writes a plan of epoch %d, as session %s did", p, session, epoch, s)
	}
	w.terms[epoch] = session
	if epoch < w.epoch {
		w.fail("epochs grow", "%s writes a plan of epoch %d after one of %d", p, epoch, w.epoch)
	}
	w.epoch = epoch
	if r := w.store.entry(w.now, coord.LeaderKey); r == nil || r.version != epoch {
		w.fail("deposed coordinator", "%s writes a plan of epoch %d, but the leader entry is %s", p, epoch, r.describe())
	}
}

// claimGoes: nobody works under a claim that is given up.
func (w *World) claimGoes(p *proc, key string) {
	r := w.store.entry(w.now, key)
	if r == nil || !strings.HasPrefix(key, coord.ClaimPrefix) {
		return
	}
	for resource, list := range w.working {
		if coord.ClaimKey(resource) != key {
			continue
		}
		for _, k := range list {
			if k.fence == r.version && k.session == r.session && k.counts() {
				w.fail("no release while working", "%s deletes the claim of %s with fence %d, which %s works", p, resource, k.fence, k.p)
			}
		}
	}
}

// closing: a session is not closed while something is worked under it.
func (w *World) closing(p *proc, session string) {
	for _, k := range p.all {
		if k.session == session && k.counts() {
			w.fail("no release while working", "%s closes session %s while it works %s", p, session, k.resource)
		}
	}
}

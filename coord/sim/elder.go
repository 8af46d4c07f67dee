package sim

import "github.com/rebalancer-go/rebalancer/coord"

// maxElders bounds how many processes run beside a newer one of their name, at a time.
const maxElders = 3

// running are all processes, the latest and those that a newer one is to take over from.
func (w *World) running() []*proc {
	all := make([]*proc, 0, len(w.procs))
	for _, p := range w.elders {
		if w.elder(p) {
			all = append(all, p)
		}
	}
	w.elders = w.elders[:copy(w.elders, all)]
	for _, p := range w.procs {
		if p != nil {
			all = append(all, p)
		}
	}
	return all
}

// elder tells whether a process runs beside another one that has its place.
func (w *World) elder(p *proc) bool { return !p.dead && w.procs[p.place] != p }

// ended gives the place of a process that has ended to one that still runs there. Where that one ends as well, because
// the other had been the newer, somebody starts the next.
func (w *World) ended(p *proc) {
	for _, o := range w.elders {
		if o.place == p.place && w.procs[p.place] == p && !o.dead {
			w.procs[p.place] = o
			return
		}
	}
	if life := w.lives[p.place]; w.healed && w.procs[p.place] == p && !w.gone[p.place] {
		w.at(w.now+w.setup.TTL/6, func() { w.revive(p.place, life) })
	}
}

// superseded tells whether another process of its name opened a session, or joined, after this one opened its first. Which of two
// processes is the newer the store decides: who was cut off when it started comes late.
func (w *World) superseded(p *proc) bool {
	for _, o := range w.opener { // any
		if o != p && o.place == p.place && p.joined != 0 && max(o.since, o.wrote) > p.joined {
			return true
		}
	}
	return false
}

// orphan tells whether a worker drains in a process that was superseded by one that is no member any more: nobody speaks for it.
func (w *World) orphan(k *worker) bool {
	x := w.store.sessions[k.session]
	return x != nil && x.taken && w.store.entry(w.now, coord.MemberKey(k.p.name)) == nil
}

// target is the process that a fault concerns: of two of one name, sometimes the older.
func (w *World) target(f Fault) *proc {
	if f.Node < 0 {
		return nil
	}
	for _, p := range w.elders {
		if p.place == f.Node && w.elder(p) && w.c.of("elder", f.ID).percent(60) {
			return p
		}
	}
	return w.procs[f.Node]
}

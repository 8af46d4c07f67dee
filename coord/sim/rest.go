package sim

import (
	"fmt"
	"slices"

	"github.com/rebalancer-go/rebalancer/coord"
)

// shares is what stands in the world right now, as an oracle for fault. Pairs that a node declined are not demanded of it.
func (w *World) shares() (*share, string) {
	all := &share{}
	var live []*proc
	for _, p := range w.procs {
		if p == nil || p.dead {
			continue
		}
		n := w.setup.Nodes[p.place]
		live = append(live, p)
		all.nodes = append(all.nodes, holder{name: p.name, priority: n.Priority, most: n.MaxResources, weight: int64(max(n.Weight, 1))})
	}
	for _, r := range w.setup.Resources {
		owner, fault := w.owner(live, r)
		if fault != "" {
			return nil, fault
		}
		if owner >= 0 || w.wanted(live, r) {
			all.resources = append(all.resources, r)
			all.owner = append(all.owner, owner)
		}
	}
	keep, fault := w.actives(live, all)
	if fault != "" {
		return nil, fault
	}
	s, live := all.only(keep, live)
	ties, fault := w.ties(live, s)
	s.may = func(i, r int) bool {
		p, name := live[i], s.resources[r]
		return w.mayWork(p, name) && !w.declined[p.key(name)] && (ties[name] == "" || ties[name] == p.name)
	}
	w.weigh(s)
	return s, fault
}

// weigh enters what nodes are balanced by.
func (w *World) weigh(s *share) {
	for i := range s.nodes {
		s.weighted = s.weighted || s.nodes[i].weight != s.nodes[0].weight
	}
	var load []int64
	differ := false
	for _, r := range s.resources {
		load = append(load, int64(max(w.setup.Registered[r].Weight, 1)))
		differ = differ || load[len(load)-1] != load[0]
	}
	if differ {
		s.load = load
	}
}

// only leaves those nodes of a share that are to be kept.
func (s *share) only(keep []bool, live []*proc) (*share, []*proc) {
	k := &share{resources: s.resources}
	at := make([]int, len(s.nodes))
	var procs []*proc
	for i := range s.nodes {
		at[i] = -1
		if keep[i] {
			at[i] = len(k.nodes)
			k.nodes = append(k.nodes, s.nodes[i])
			procs = append(procs, live[i])
		}
	}
	for _, o := range s.owner {
		if o >= 0 {
			o = at[o]
		}
		k.owner = append(k.owner, o)
	}
	return k, procs
}

// ties are the nodes that resources are pinned to, where those can have them. A pair that was declined may be so still.
func (w *World) ties(live []*proc, s *share) (map[string]string, string) {
	ties, room := map[string]string{}, map[string]int{}
	for j, r := range s.resources {
		v, ok := w.controls[coord.PinKey(r)]
		i := slices.IndexFunc(live, func(p *proc) bool { return p.name == v.Node })
		if !ok || i < 0 || !w.mayWork(live[i], r) {
			continue
		}
		if room[v.Node]++; s.nodes[i].most > 0 && room[v.Node] > s.nodes[i].most {
			continue
		}
		if w.declined[live[i].key(r)] { // or taken again since, and then it has its place among the node's most
			ties[r] = "?"
			continue
		}
		if ties[r] = v.Node; s.owner[j] >= 0 && s.owner[j] != i {
			return ties, fmt.Sprintf("%s works %s, which is pinned to %s", live[s.owner[j]], r, v.Node)
		}
	}
	return ties, ""
}

// owner is the only node that has a resource, or -1, or what is wrong. One that is paused nobody works, and who keeps its claim has it.
func (w *World) owner(live []*proc, r string) (int, string) {
	paused, keep := w.paused(r)
	if !paused {
		return w.ownerOf(live, r)
	}
	for _, p := range live {
		if k := p.workers[r]; k != nil && k.state != workEnded && !k.lost {
			return 0, fmt.Sprintf("%s still works %s, which is paused", p, r)
		}
	}
	row := w.store.entry(w.now, coord.ClaimKey(r))
	if row == nil {
		return -1, ""
	}
	i := slices.Index(live, w.opener[row.session])
	switch {
	case !keep || i < 0:
		return 0, fmt.Sprintf("%s is paused, and session %s holds it", r, row.session)
	case !w.mayWork(live[i], r):
		return 0, fmt.Sprintf("%s holds %s, which is paused and not for it", live[i], r)
	}
	return i, ""
}

// ownerOf is the only node that works a resource, or -1, or what is wrong.
func (w *World) ownerOf(live []*proc, r string) (int, string) {
	owner := -1
	for i, p := range live {
		k := p.workers[r]
		if k == nil || k.state == workEnded || k.lost {
			continue
		}
		switch {
		case k.state != workWorking || k.revoked || !p.trusts():
			return 0, fmt.Sprintf("%s is still opening or draining %s", p, r)
		case owner >= 0:
			return 0, fmt.Sprintf("both %s and %s work %s", live[owner], p, r)
		case !w.mayWork(p, r):
			return 0, fmt.Sprintf("%s works %s, which is not for it", p, r)
		}
		owner = i
	}
	return owner, ""
}

// mayWork tells whether a resource may go to a node at all.
func (w *World) mayWork(p *proc, r string) bool {
	if w.drained(p) || !w.fits(p, r) {
		return false
	}
	if w.setup.Origin == coord.OriginStatic {
		return slices.Contains(p.static, r)
	}
	return w.exists[r]
}

// wanted tells whether a resource is there to be worked.
func (w *World) wanted(live []*proc, r string) bool {
	if paused, keep := w.paused(r); paused && !keep {
		return false
	}
	if w.setup.Origin != coord.OriginStatic {
		return w.exists[r]
	}
	return slices.ContainsFunc(live, func(p *proc) bool { return slices.Contains(p.static, r) })
}

// key names a pair of a process and a resource.
func (p *proc) key(resource string) string { return p.String() + " " + resource }

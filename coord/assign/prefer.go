package assign

import "slices"

// mostTried bounds how many resources of either kind are looked at for one exchange.
const mostTried = 64

// preferrer exchanges resources that move, or had no owner, so that more of them are where they should be.
type preferrer struct {
	p    *Problem
	plan []int32
	// loose are the resources by node that may be exchanged: wrong those that the node does not prefer, right the others.
	wrong, right [][]int32
	wanted       []uint64 // resources that any node prefers
}

// prefer exchanges resources that move, or had no owner, between nodes of one priority until no exchange puts more of them where they
// should be. Counts and loads stay as they are, and nothing moves that did not move anyway. It reports whether it changed anything.
func prefer(p *Problem, plan []int32) (changed bool) {
	if !slices.ContainsFunc(p.Nodes, func(n Node) bool { return n.Prefer != nil }) {
		return false
	}
	f := &preferrer{p: p, plan: plan, wrong: make([][]int32, len(p.Nodes)), right: make([][]int32, len(p.Nodes))}
	f.wanted = make([]uint64, (p.Resources+63)/64)
	for i := range p.Nodes {
		for w, b := range p.Nodes[i].Prefer[:min(len(f.wanted), len(p.Nodes[i].Prefer))] {
			f.wanted[w] |= b
		}
	}
	for r, o := range plan {
		if o != Nobody && p.owner(r) != o {
			f.add(int32(r), o)
		}
	}
	for again := true; again; changed = changed || again {
		again = false
		for r, o := range plan {
			if o != Nobody && p.owner(r) != o && has(f.wanted, r) && !has(p.Nodes[o].Prefer, r) && f.improve(int32(r)) {
				again = true
			}
		}
	}
	return changed
}

// add enters a resource at a node.
func (f *preferrer) add(r, o int32) {
	f.plan[r] = o
	if has(f.p.Nodes[o].Prefer, int(r)) {
		f.right[o] = append(f.right[o], r)
	} else {
		f.wrong[o] = append(f.wrong[o], r)
	}
}

// improve exchanges r, which is where it should not be, with a resource of a node that prefers r: best with one that should not be there
// either, else with one that should be where r is as well.
func (f *preferrer) improve(r int32) bool {
	for _, lists := range [][][]int32{f.wrong, f.right} {
		left := mostTried
		for b := range lists {
			if n := &f.p.Nodes[b]; len(lists[b]) > 0 && n.Priority == f.p.Nodes[f.plan[r]].Priority && has(n.Prefer, int(r)) && n.may(int(r)) &&
				f.exchange(r, int32(b), lists, &left) {
				return true
			}
		}
	}
	return false
}

// exchange gives r to b for one of its resources, with the same load, that loses nothing by it.
func (f *preferrer) exchange(r, b int32, lists [][]int32, left *int) bool {
	a := f.plan[r]
	home := &f.p.Nodes[a]
	for i := len(lists[b]) - 1; i >= 0 && *left > 0; i-- {
		*left--
		s := lists[b][i]
		if f.p.load(int(s)) != f.p.load(int(r)) || !home.may(int(s)) || has(f.p.Nodes[b].Prefer, int(s)) && !has(home.Prefer, int(s)) {
			continue
		}
		lists[b] = slices.Delete(lists[b], i, i+1)
		at := slices.Index(f.wrong[a], r)
		f.wrong[a] = slices.Delete(f.wrong[a], at, at+1)
		f.add(r, b)
		f.add(s, a)
		return true
	}
	return false
}

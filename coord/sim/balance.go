package sim

import (
	"fmt"
	"slices"

	"github.com/rebalancer-go/rebalancer/coord"
)

// share is who holds what, and who may: what the rules of assignment say is checked here without the code that assigns.
type share struct {
	nodes     []holder
	resources []string
	owner     []int // by resource; -1: none
	may       func(node, resource int) bool
}

type holder struct {
	name     string
	priority int
	most     int // 0: no limit
	count    int
}

// fault says what is wrong with the shares, or "".
func (s *share) fault() string {
	for i := range s.nodes {
		n := &s.nodes[i]
		n.count = 0
		for _, o := range s.owner {
			if o == i {
				n.count++
			}
		}
		if n.most > 0 && n.count > n.most {
			return fmt.Sprintf("%s holds %d resources, more than its %d", n.name, n.count, n.most)
		}
	}
	for r, o := range s.owner {
		if o >= 0 {
			continue
		}
		var first []int
		for i := range s.nodes {
			if s.may(i, r) {
				first = append(first, i)
			}
		}
		if b := s.reach(first, func(b int) bool { return true }); b >= 0 {
			return fmt.Sprintf("nobody holds %s, and %s could hold one more", s.resources[r], s.nodes[b].name)
		}
	}
	for a := range s.nodes {
		from := &s.nodes[a]
		if from.count == 0 {
			continue
		}
		b := s.reach(s.next(a), func(b int) bool {
			to := &s.nodes[b]
			return to.priority > from.priority || to.priority == from.priority && from.count >= to.count+2
		})
		if b >= 0 {
			return fmt.Sprintf("%s (priority %d) holds %d, %s (priority %d) only %d", from.name, from.priority, from.count,
				s.nodes[b].name, s.nodes[b].priority, s.nodes[b].count)
		}
	}
	return ""
}

// next are the nodes that could take something from node a.
func (s *share) next(a int) []int {
	var next []int
	for b := range s.nodes {
		for r, o := range s.owner {
			if o == a && b != a && s.may(b, r) {
				next = append(next, b)
				break
			}
		}
	}
	return next
}

// reach finds a node with room that satisfies better, to which a resource can be moved through the nodes of from: each that is
// passed takes one and gives one.
func (s *share) reach(from []int, better func(int) bool) int {
	seen := make([]bool, len(s.nodes))
	for len(from) > 0 {
		b := from[0]
		from = from[1:]
		if seen[b] {
			continue
		}
		seen[b] = true
		if n := s.nodes[b]; (n.most == 0 || n.count < n.most) && better(b) {
			return b
		}
		from = append(from, s.next(b)...)
	}
	return -1
}

// shares is what stands in the world right now, as an oracle for fault. Pairs that a node declined are not demanded of it.
func (w *World) shares() (*share, string) {
	s := &share{}
	var live []*proc
	for _, p := range w.procs {
		if p == nil || p.dead {
			continue
		}
		n := w.setup.Nodes[p.place]
		live = append(live, p)
		s.nodes = append(s.nodes, holder{name: p.name, priority: n.Priority, most: n.MaxResources})
	}
	for _, r := range w.setup.Resources {
		owner, fault := w.ownerOf(live, r)
		if fault != "" {
			return nil, fault
		}
		if owner >= 0 || w.wanted(live, r) {
			s.resources = append(s.resources, r)
			s.owner = append(s.owner, owner)
		}
	}
	s.may = func(i, r int) bool {
		p := live[i]
		return w.mayWork(p, s.resources[r]) && !w.declined[p.key(s.resources[r])]
	}
	return s, ""
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
	if w.setup.Origin == coord.OriginStatic {
		return slices.Contains(p.static, r)
	}
	return w.exists[r]
}

// wanted tells whether a resource is there to be worked.
func (w *World) wanted(live []*proc, r string) bool {
	if w.setup.Origin != coord.OriginStatic {
		return w.exists[r]
	}
	return slices.ContainsFunc(live, func(p *proc) bool { return slices.Contains(p.static, r) })
}

// key names a pair of a process and a resource.
func (p *proc) key(resource string) string { return p.String() + " " + resource }

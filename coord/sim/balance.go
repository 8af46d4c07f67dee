package sim

import "fmt"

// share is who holds what, and who may: what the rules of assignment say is checked here without the code that assigns.
type share struct {
	nodes     []holder
	resources []string
	owner     []int // by resource; -1: none
	may       func(node, resource int) bool
	load      []int64 // by resource; nil: nodes are balanced by number
	weighted  bool    // nodes have different weights
}

type holder struct {
	name     string
	priority int
	most     int // 0: no limit
	weight   int64
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
			return to.priority > from.priority || to.priority == from.priority && s.uneven(from, to)
		})
		if b >= 0 {
			return fmt.Sprintf("%s (priority %d) holds %d, %s (priority %d) only %d", from.name, from.priority, from.count,
				s.nodes[b].name, s.nodes[b].priority, s.nodes[b].count)
		}
	}
	return s.heavy()
}

// uneven tells whether one node holds too much beside another that could have some of it. By weight each is within one of its fair share.
func (s *share) uneven(from, to *holder) bool {
	switch {
	case s.load != nil:
		return false // see heavy
	case s.weighted:
		return int64(from.count-1)*to.weight > int64(to.count+1)*from.weight
	}
	return from.count >= to.count+2
}

// heavy says where a move would lower the greater of two loads by more than the band of a tenth of the mean, or "".
func (s *share) heavy() string {
	if s.load == nil {
		return ""
	}
	loads, sum, weights := make([]int64, len(s.nodes)), map[int]int64{}, map[int]int64{}
	for r, o := range s.owner {
		if o >= 0 {
			loads[o] += s.load[r]
			sum[s.nodes[o].priority] += s.load[r]
		}
	}
	for i := range s.nodes {
		weights[s.nodes[i].priority] += s.nodes[i].weight
	}
	for r, a := range s.owner {
		for b := range s.nodes {
			if a < 0 || a == b || s.nodes[a].priority != s.nodes[b].priority || !s.may(b, r) || s.nodes[b].most > 0 && s.nodes[b].count >= s.nodes[b].most {
				continue
			}
			x, y, l := float64(s.nodes[a].weight), float64(s.nodes[b].weight), float64(s.load[r])
			before := float64(loads[a]) / x
			after := max((float64(loads[a])-l)/x, (float64(loads[b])+l)/y)
			if p := s.nodes[a].priority; before-after > 0.101*float64(sum[p])/float64(weights[p])+0.01 {
				return fmt.Sprintf("%s holds a load of %d (weight %.0f), %s one of %d (weight %.0f), and %s of %.0f could move", s.nodes[a].name, loads[a], x,
					s.nodes[b].name, loads[b], y, s.resources[r], l)
			}
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

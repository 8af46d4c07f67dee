package sim

import (
	"fmt"
	"strings"

	"github.com/rebalancer-go/rebalancer/coord"
)

func (s *state) fail(property, format string, args ...any) {
	if s.err == nil {
		s.err = &Violation{Property: property, Detail: fmt.Sprintf(format, args...), At: s.now}
	}
}

// counts tells whether a worker works in the sense of the first promise.
func (s *state) counts(n *snode, w *sworker) bool {
	return w.working && n.up && coord.Time(s.now) < n.trust
}

// begins is called when a worker begins.
func (s *state) begins(i, j int) {
	w := s.nodes[i].workers[j]
	t := s.tops[w.resource]
	if w.fence < t.fence || w.fence == t.fence && w.session != t.session {
		s.fail("fences grow", "%s works %s under fence %d of session %s after fence %d of session %s", s.nodes[i].name, w.resource, w.fence, w.session, t.fence, t.session)
	}
	s.tops[w.resource] = top{fence: w.fence, session: w.session}
}

// check looks at the whole state after each move.
func (s *state) check() {
	for i := range s.nodes {
		n := &s.nodes[i]
		for j := range n.workers {
			w := &n.workers[j]
			if !s.counts(n, w) {
				continue
			}
			s.covered(n, w)
			for o := range i {
				for k := range s.nodes[o].workers {
					if x := &s.nodes[o].workers[k]; x.resource == w.resource && s.counts(&s.nodes[o], x) {
						s.fail("no overlap", "%s and %s work %s", s.nodes[o].name, n.name, w.resource)
					}
				}
			}
			for k := range j {
				if x := &n.workers[k]; x.resource == w.resource && s.counts(n, x) {
					s.fail("double start", "%s works %s twice", n.name, w.resource)
				}
			}
		}
	}
}

func (s *state) covered(n *snode, w *sworker) {
	if n.linc != s.store.incarnation {
		return
	}
	r := s.store.entry(s.now, coord.ClaimKey(w.resource))
	if r == nil || r.session != w.session || r.version != w.fence {
		s.fail("work is covered", "%s works %s under fence %d of session %s, but the store has %s", n.name, w.resource, w.fence, w.session, r.describe())
	}
}

// applies is called with what is about to change in the store.
func (s *state) applies(i int, session string, t coord.Txn) {
	if x := wrong(t); x != "" {
		s.fail("contract", "%s: %s", s.nodes[i].name, x)
	}
	plan := false
	for _, k := range t.Deletes {
		plan = plan || planKey(k)
		if r := s.store.entry(s.now, k); r != nil && strings.HasPrefix(k, coord.ClaimPrefix) {
			s.releases(i, k, r)
		}
	}
	leader := s.store.entry(s.now, coord.LeaderKey)
	for _, p := range t.Puts {
		plan = plan || planKey(p.Key)
		if r := s.store.entry(s.now, p.Key); r != nil && strings.HasPrefix(p.Key, coord.ClaimPrefix) {
			s.fail("claims are free", "%s claims %s, which session %s holds", s.nodes[i].name, p.Key, r.session)
		}
		if epoch, ok := epochOf(p); ok {
			if by, ok := s.terms[epoch]; ok && by != session {
				s.fail("one writer per term", "sessions %s and %s write plans of epoch %d", by, session, epoch)
			}
			s.terms[epoch] = session
			if leader == nil || leader.version != epoch {
				s.fail("deposed coordinator", "%s writes a plan of epoch %d, but the leader entry is %s", s.nodes[i].name, epoch, leader.describe())
			}
		}
	}
	if plan && (leader == nil || leader.session != session) {
		s.fail("deposed coordinator", "%s changes the plan, but the leader entry is %s", s.nodes[i].name, leader.describe())
	}
}

func (s *state) releases(i int, key string, r *row) {
	for a := range s.nodes {
		n := &s.nodes[a]
		for j := range n.workers {
			w := &n.workers[j]
			if coord.ClaimKey(w.resource) == key && w.fence == r.version && w.session == r.session && s.counts(n, w) {
				s.fail("no release while working", "%s deletes %s while %s works it", s.nodes[i].name, key, n.name)
			}
		}
	}
}

func (s *state) closes(i int, session string) {
	n := &s.nodes[i]
	for j := range n.workers {
		if w := &n.workers[j]; w.session == session && s.counts(n, w) {
			s.fail("no release while working", "%s closes session %s while it works %s", n.name, session, w.resource)
		}
	}
}

// unsettled says what is not in its place, or "".
func (s *state) unsettled() string {
	counts := map[string]int{}
	owners := map[string]int{}
	names := map[string]bool{}
	live := 0
	for i := range s.nodes {
		n := &s.nodes[i]
		if !n.up {
			continue
		}
		if names[n.name] {
			return fmt.Sprintf("two processes run as %s", n.name)
		}
		names[n.name] = true
		live++
		for j := range n.workers {
			if s.counts(n, &n.workers[j]) {
				owners[n.workers[j].resource]++
				counts[n.name]++
			}
		}
	}
	if live == 0 {
		return ""
	}
	for _, r := range s.sc.Resources {
		if owners[r] != 1 {
			return fmt.Sprintf("%s is worked by %d nodes", r, owners[r])
		}
	}
	share := len(s.sc.Resources) / live
	for i := range s.nodes {
		if n := &s.nodes[i]; n.up && (counts[n.name] < share || counts[n.name] > share+1) {
			return fmt.Sprintf("%s works %d of %d resources, with %d nodes", n.name, counts[n.name], len(s.sc.Resources), live)
		}
	}
	return ""
}

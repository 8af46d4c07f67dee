package trace

import (
	"errors"
	"fmt"
	"slices"
)

// ErrNothing is returned by Check for a history that breaks no rule, and in which nothing is worked.
var ErrNothing = errors.New("trace: nothing is worked: it shows nothing")

// Check judges a history by the promises and rules that the specification's trace module states: the store grants only what it may, nodes
// do only what they may, and what they say of themselves is what their steps make of them. It returns the first step that is not allowed,
// or nil. A history in which nothing is worked shows nothing, and is refused.
func Check(h *History) error {
	if h.Forgets || h.Static {
		return fmt.Errorf("trace: a store that forgets, and processes of one name, are not among what is checked")
	}
	c := &checker{
		live: map[string]bool{}, given: map[string]int64{}, members: map[string]memberEntry{}, acks: map[string]int64{}, plans: map[string]assignment{}, claims: map[string]claim{},
		terms: map[int64]string{}, planned: map[Key]assignment{}, barriers: map[int64]barrier{0: {}}, nodes: map[string]*nodeState{},
		global: h.Global,
	}
	worked := 0
	for i := range h.Steps {
		s := &h.Steps[i]
		if s.Do == DoStartWork {
			worked++
		}
		rule, known := rules[s.Do]
		if !known {
			return fmt.Errorf("trace: line %d, step %d: nobody knows %q", s.Line, i+1, s.Do)
		}
		if s.Sent > s.Line || s.Answered != 0 && s.Answered < s.Line {
			return fmt.Errorf("trace: line %d, step %d, %s of %s: a request is carried out between lines %d and %d", s.Line, i+1, s.Do, s.Proc, s.Sent, s.Answered)
		}
		why := rule(c, s)
		if why == "" {
			why = c.promises(s)
		}
		if why != "" {
			return fmt.Errorf("trace: line %d, step %d, %s of %s %s: %s", s.Line, i+1, s.Do, s.Proc, s.Resource, why)
		}
	}
	if worked == 0 {
		return fmt.Errorf("%w: %d lines", ErrNothing, h.Lines)
	}
	return nil
}

type memberEntry struct {
	session string
	version int64
	stopped int64
}

type assignment struct {
	version, epoch, gen int64
	share               []string
}

type barrier struct {
	version, gen int64
	open         bool
}

// claim is an entry, or what a node believes of one.
type claim struct {
	session string
	version int64
}

// checker is the store and the nodes, as the specification has them.
type checker struct {
	global  bool
	live    map[string]bool
	given   map[string]int64 // greatest version that a key had
	members map[string]memberEntry
	acks    map[string]int64 // by session: the newest generation for which its node stopped
	leader  claim
	plans   map[string]assignment // by node
	claims  map[string]claim      // by resource
	barrier barrier

	terms    map[int64]string // epoch → session
	planned  map[Key]assignment
	barriers map[int64]barrier

	nodes map[string]*nodeState // by process
}

// nodeState is one process.
type nodeState struct {
	node, session  string
	trusted        bool
	leaving, evict bool
	declined       map[string]bool
	share          []string
	seen, gen      int64
	bar            barrier
	stop, ack      int64
	lead           int64
	old            map[string]bool
	res            map[string]*holding
}

// holding is what a process has of a resource; phase is as in the specification.
type holding struct {
	phase string
	claim
}

func (c *checker) node(s *Step) *nodeState {
	n := c.nodes[s.Proc]
	if n == nil {
		n = &nodeState{node: s.Node, declined: map[string]bool{}, res: map[string]*holding{}, old: map[string]bool{}}
		c.nodes[s.Proc] = n
	}
	return n
}

func (n *nodeState) of(resource string) *holding {
	r := n.res[resource]
	if r == nil {
		r = &holding{phase: "none"}
		n.res[resource] = r
	}
	return r
}

// calm: the process trusts its session, and that lives.
func (c *checker) calm(n *nodeState) bool { return n.session != "" && n.trusted && c.live[n.session] }

func (c *checker) joined(n *nodeState) bool {
	return n.session != "" && c.members[n.node].session == n.session
}

func (c *checker) lets(n *nodeState) bool {
	return !c.global || n.bar.open && n.bar.gen == n.gen && n.bar.gen >= n.stop
}

func (c *checker) desires(n *nodeState, r string) bool {
	return slices.Contains(n.share, r) && !n.declined[r] && !n.evict && c.lets(n)
}

func (h *holding) runs() bool {
	return h.phase == "working" || h.phase == "draining" || h.phase == "lost"
}

func (n *nodeState) works(r string) bool {
	h := n.res[r]
	return h != nil && (h.phase == "working" || h.phase == "draining") && n.trusted
}

// handled tells whether a handler runs somewhere under a claim as it stands.
func (c *checker) handled(r string) bool {
	k := c.claims[r]
	for _, n := range c.nodes {
		if h := n.res[r]; k.session != "" && h != nil && h.runs() && h.claim == k {
			return true
		}
	}
	return false
}

// end ends a session with all that is bound to it.
func (c *checker) end(session string) {
	delete(c.live, session)
	for node, m := range c.members {
		if m.session == session {
			delete(c.members, node)
		}
	}
	for r, k := range c.claims {
		if k.session == session {
			delete(c.claims, r)
		}
	}
	if c.leader.session == session {
		c.leader = claim{}
	}
}

// grows gives a key a version, which must be greater than all that it had.
func (c *checker) grows(key string, v int64) string {
	if v <= c.given[key] {
		return fmt.Sprintf("version %d is not above %d", v, c.given[key])
	}
	c.given[key] = v
	return ""
}

// promises are looked at after each step: one node works a resource, and behind its work stands the very claim.
func (c *checker) promises(s *Step) string {
	if s.Do == DoState || s.Do == DoSendClaim || s.Do == DoSendRelease {
		return ""
	}
	working := map[string]string{}
	for proc, n := range c.nodes {
		for r, h := range n.res {
			if !n.works(r) {
				continue
			}
			if other := working[r]; other != "" {
				return fmt.Sprintf("both %s and %s work %s", proc, other, r)
			}
			working[r] = proc
			if k := c.claims[r]; k != h.claim || k.session != n.session {
				return fmt.Sprintf("%s works %s under fence %d of session %s, the claim has %d of %q", proc, r, h.version, h.session, k.version, k.session)
			}
		}
	}
	for proc, n := range c.nodes {
		for other, o := range c.nodes {
			if n.lead != 0 && proc != other && n.lead == o.lead {
				return fmt.Sprintf("%s and %s coordinate in epoch %d", proc, other, n.lead)
			}
		}
	}
	return ""
}

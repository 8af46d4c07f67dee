package sim

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rebalancer-go/rebalancer/coord"
)

// Result is what a search found.
type Result struct {
	States, Moves, Ends int // distinct states, moves between them, and states at the horizon that were let settle
	Complete            bool
	Violation           *Violation
	Trace               []string // the moves to it
}

// Search looks at every state that a scenario can reach: all orders of deliveries, all places for the faults of its budget. At the
// horizon the faults are over, and the group must settle.
func Search(sc Scenario) Result {
	e := &explorer{sc: &sc, seen: map[sum]struct{}{}, fields: fieldCache{}}
	s := prepared(&sc)
	e.res.Complete = true
	if s.err == nil {
		s.budget = sc.Budget
		if sc.Horizon > 0 {
			s.end = s.now + vtime(sc.Horizon)*searchTick
		}
		for i := sc.Nodes - sc.Late; i < sc.Nodes; i++ {
			s.boot(i)
		}
		e.explore(s)
	} else {
		e.found(s)
	}
	e.res.States = len(e.seen)
	return e.res
}

type explorer struct {
	sc     *Scenario
	seen   map[sum]struct{}
	fields fieldCache
	res    Result
}

func (e *explorer) found(s *state) {
	e.res.Violation, e.res.Complete = s.err, false
	for ; s != nil; s = s.from {
		if s.from != nil {
			e.res.Trace = append(e.res.Trace, fmt.Sprintf("%7.3fs %s", float64(s.now)/float64(sec), s.move))
		}
	}
	slices.Reverse(e.res.Trace)
}

// explore goes on from s in every way, and tells whether to look further.
func (e *explorer) explore(s *state) bool {
	s.check()
	if s.err != nil {
		e.found(s)
		return false
	}
	left := vtime(0)
	if e.sc.After > 0 && s.budget == (Budget{}) && !s.spent {
		s.end, s.spent = s.now+vtime(e.sc.After)*searchTick, true
	}
	if s.end != 0 {
		left = s.end - s.now
	}
	h := s.hash(left, &e.fields)
	if _, ok := e.seen[h]; ok {
		return true
	}
	e.seen[h] = struct{}{}
	if e.sc.Limit > 0 && len(e.seen) >= e.sc.Limit {
		e.res.Complete = false
		return false
	}
	if s.end != 0 && s.now >= s.end || e.sc.Prompt && s.quiet() && s.budget.Left == 0 {
		e.res.Ends++
		return e.settles(s)
	}
	return s.moves(func(n *state) bool {
		e.res.Moves++
		return e.explore(n)
	})
}

// soon is what a poll or a renewal never is: retries and elections are.
const soon = 200 * ms

// quiet tells whether nothing is on its way, and nothing will happen soon.
func (s *state) quiet() bool {
	for i := range s.nodes {
		n := &s.nodes[i]
		if n.frozen || n.up && n.machine.Wake() <= coord.Time(s.now+soon) {
			return false
		}
	}
	return len(s.flight) == 0
}

// advance lets time go on to the next tick at which a node has something to do.
func (s *state) advance() {
	if s.sc.Prompt {
		s.advanceTo()
		return
	}
	wake := coord.Time(s.now + searchTick)
	for i := range s.nodes {
		if n := &s.nodes[i]; n.up && !n.frozen {
			wake = min(wake, n.machine.Wake())
		}
	}
	ticks := (vtime(wake) - s.now + searchTick - 1) / searchTick
	s.now += max(ticks, 1) * searchTick
}

// nodeFaults calls f with each state in which one more thing went wrong with a node.
func (s *state) nodeFaults(i int, f func(*state) bool) bool {
	n := &s.nodes[i]
	if !n.up {
		return true
	}
	if n.frozen {
		x := s.next("thaws: ", n.name)
		x.nodes[i].frozen = false
		return f(x)
	}
	if s.budget.Frozen > 0 {
		x := s.next("freezes: ", n.name)
		x.budget.Frozen--
		x.nodes[i].frozen = true
		if !f(x) {
			return false
		}
	}
	if s.budget.Crashed > 0 {
		x := s.next("crashes: ", n.name)
		x.budget.Crashed--
		x.crash(i)
		if !f(x) {
			return false
		}
	}
	if s.budget.Left > 0 && !n.leaving {
		x := s.next("leaves: ", n.name)
		x.budget.Left--
		x.nodes[i].leaving = true
		x.step(i, coord.Leave{})
		return f(x)
	}
	return true
}

// losses calls f with each state in which the store lost data.
func (s *state) losses(f func(*state) bool) bool {
	if s.budget.Wiped > 0 {
		x := s.next("the store is emptied", "")
		x.budget.Wiped--
		x.store.lose(x.now, 0, true)
		if !f(x) {
			return false
		}
	}
	if s.budget.Rolled > 0 {
		x := s.next("the store goes back", "")
		x.budget.Rolled--
		x.store.lose(x.now, 0, false)
		return f(x)
	}
	return true
}

// advanceTo lets time go on to the very moment at which the next node wants to be woken.
func (s *state) advanceTo() {
	wake := coord.Time(s.now + searchTTL)
	for i := range s.nodes {
		if n := &s.nodes[i]; n.up && !n.frozen {
			wake = min(wake, n.machine.Wake())
		}
	}
	s.now = max(s.now+ms/100, vtime(wake))
}

func (s *state) crash(i int) {
	n := &s.nodes[i]
	n.up, n.trust, n.workers = false, 0, nil
	s.flight = slices.DeleteFunc(s.flight, func(m message) bool { return m.node == i && m.call == nil })
}

// calm lets everything arrive in order and time go on, until nothing is left to do or the time is over.
func (s *state) calm(until vtime, done func() bool) {
	for s.err == nil && s.now < until && !done() {
		if len(s.flight) > 0 {
			s.deliver(0, false)
			s.check()
			continue
		}
		ticked := false
		for i := range s.nodes {
			n := &s.nodes[i]
			if n.up && n.machine.Wake() <= coord.Time(s.now) {
				s.step(i, coord.Tick{})
				ticked = true
			}
		}
		if !ticked {
			s.advance()
		}
		s.check()
	}
}

// settles lets the faults end and everything come to rest.
func (e *explorer) settles(s *state) bool {
	x := s.next("all faults are over", "")
	x.flight = slices.DeleteFunc(x.flight, func(m message) bool { return m.given })
	for i := range x.nodes {
		x.nodes[i].frozen = false
	}
	within := e.sc.Within
	if within == 0 {
		within = 6 * searchTTL
	}
	if e.sc.Prompt {
		within = 0
	}
	x.calm(s.now+within, func() bool { return len(x.flight) == 0 && x.unsettled() == "" })
	if x.err == nil {
		if why := x.unsettled(); why != "" {
			x.fail("settles", "%s", why)
		}
	}
	if x.err != nil {
		e.found(x)
		return false
	}
	return true
}

// prepared is the settled state of the nodes that are there from the beginning.
func prepared(sc *Scenario) *state {
	s := newState(sc)
	for i := range sc.Nodes - sc.Late {
		s.boot(i)
	}
	s.calm(3*searchTTL, func() bool { return false })
	if sc.Prompt { // after a renewal, and long before the next
		s.calm(s.now+searchTTL/6, s.quiet)
	}
	s.store.snapshot()
	if why := s.unsettled(); s.err == nil && why != "" && sc.Late < sc.Nodes {
		s.fail("settles", "before the search: %s", why)
	}
	return s
}

// String is the result in one line, and the moves to the violation.
func (r Result) String() string {
	s := fmt.Sprintf("%d states, %d moves, %d ends, complete: %v", r.States, r.Moves, r.Ends, r.Complete)
	if r.Violation != nil {
		s += fmt.Sprintf("\n%v after %d moves:\n  %s", r.Violation, len(r.Trace), strings.Join(r.Trace, "\n  "))
	}
	return s
}

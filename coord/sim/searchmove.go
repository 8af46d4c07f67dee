package sim

import (
	"slices"

	"github.com/rebalancer-go/rebalancer/coord"
)

// moves calls f with each state that can follow, until it returns false. Where a node has something to do that concerns nobody
// else, what the others do meanwhile makes no difference: only that node moves.
func (s *state) moves(f func(*state) bool) bool {
	for i := range s.nodes {
		if s.budget.Late == 0 && s.alone(i) {
			return s.arrivals(i, f) && s.tick(i, f) && s.nodeFaults(i, f)
		}
	}
	quiet, late := true, 0
	for i := range s.nodes {
		if !s.arrivals(i, f) || !s.tick(i, f) || !s.nodeFaults(i, f) {
			return false
		}
		quiet = quiet && !s.due(i)
	}
	for k := range s.flight {
		m := &s.flight[k]
		if n := &s.nodes[m.node]; n.up && !m.given && (m.call != nil || !n.frozen) {
			late++
		}
	}
	if quiet && late <= s.budget.Late && !(s.sc.Prompt && s.quiet()) {
		x := s.next("time goes on", "")
		x.budget.Late -= late
		x.advance()
		if !f(x) {
			return false
		}
	}
	return s.losses(f)
}

// due tells whether a node wants a tick now.
func (s *state) due(i int) bool {
	n := &s.nodes[i]
	return n.up && !n.frozen && n.machine.Wake() <= coord.Time(s.now)
}

// alone tells whether a node has something to do, and nothing that it asked of the store is under way.
func (s *state) alone(i int) bool {
	n := &s.nodes[i]
	if !n.up || n.frozen {
		return false
	}
	local := s.due(i)
	for k := range s.flight {
		if m := &s.flight[k]; m.node == i {
			if m.call != nil {
				return false
			}
			local = true
		}
	}
	return local
}

func (s *state) tick(i int, f func(*state) bool) bool {
	if !s.due(i) {
		return true
	}
	x := s.next("tick of ", s.nodes[i].name)
	x.step(i, coord.Tick{})
	return f(x)
}

// arrivals lets each message of a node arrive, or be lost.
func (s *state) arrivals(i int, f func(*state) bool) bool {
	n := &s.nodes[i]
	for k := range s.flight {
		m := &s.flight[k]
		if m.node != i || m.call == nil && n.frozen {
			continue
		}
		x := s.next("", n.name)
		x.deliver(k, false)
		if !f(x) {
			return false
		}
		if s.budget.Split > 0 && m.call != nil && !m.given && n.up && !n.frozen {
			x := s.next("alone: ", n.name)
			x.budget.Split--
			x.deliver(k, true)
			if !f(x) {
				return false
			}
		}
		if s.budget.Lost > 0 && !m.given && n.up && s.losable(m) && !f(s.lost(k)) {
			return false
		}
	}
	return true
}

func (s *state) losable(m *message) bool {
	if m.call != nil {
		return true
	}
	switch m.answer.(type) {
	case coord.Stopped:
		return false
	}
	return true
}

// lost is the state in which the node gives a request up. If it was still on its way, it may yet arrive.
func (s *state) lost(k int) *state {
	x := s.next("lost: ", s.nodes[s.flight[k].node].name)
	x.budget.Lost--
	x.move.m = s.flight[k]
	m := &x.flight[k]
	if m.call != nil {
		m.given = true
		x.tell(m.node, unknown(m.call))
		return x
	}
	var again coord.Event
	switch a := m.answer.(type) {
	case coord.Opened:
		again = coord.Opened{Req: a.Req, Code: coord.Failed, Err: errAway}
	case coord.Closed:
		again = a
	case coord.Renewed:
		again = coord.Renewed{Req: a.Req, Code: coord.Unknown, Err: errAway}
	case coord.ReadDone:
		again = coord.ReadDone{Req: a.Req, Code: coord.Failed, Err: errAway}
	case coord.Committed:
		again = coord.Committed{Req: a.Req, Code: coord.Unknown, Err: errAway}
	case coord.Superseded:
		again = coord.Superseded{Req: a.Req, Code: coord.Unknown, Err: errAway}
	}
	if again == nil {
		x.flight = slices.Delete(x.flight, k, k+1) // a hint
	} else {
		m.answer = again
	}
	return x
}

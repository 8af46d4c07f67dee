package sim

import (
	"errors"
	"slices"

	"github.com/rebalancer-go/rebalancer/coord"
)

// step gives the machine of place i an event, and carries out what it asks for.
func (s *state) step(i int, ev coord.Event) {
	n := &s.nodes[i]
	n.machine = cloneMachine(n.machine)
	actions, panicked := func() (a []coord.Action, p any) {
		defer func() { p = recover() }()
		return n.machine.Step(coord.Time(s.now), ev), nil
	}()
	if panicked != nil {
		s.fail("panic", "%s at %s: %v", n.name, describe(ev), panicked)
		return
	}
	n.trust = n.machine.TrustedUntil()
	switch ev := ev.(type) {
	case coord.Opened:
		if ev.Code == coord.OK {
			n.session, n.linc, n.listens = ev.Session, ev.Stamp.Incarnation, nil
		}
	case coord.Renewed:
		if ev.Code == coord.OK {
			n.linc = ev.Stamp.Incarnation
		}
	case coord.Tick:
		if n.machine.Wake() <= coord.Time(s.now) {
			s.fail("busy loop", "%s wants to be woken at once after a tick", n.name)
		}
	}
	for _, a := range actions {
		s.do(i, a)
	}
	if ev, ok := ev.(coord.Opened); ok && ev.Code == coord.OK && !s.hints && n.session == ev.Session {
		s.step(i, coord.NoHints{})
	}
}

func (s *state) do(i int, a coord.Action) {
	n := &s.nodes[i]
	switch a := a.(type) {
	case coord.OpenSession, coord.CloseSession, coord.Renew, coord.Read, coord.Commit, coord.Supersede:
		s.flight = append(s.flight, message{node: i, call: a, sent: s.now})
	case coord.Listen:
		n.listens = append(slices.Clone(n.listens), a.Address)
	case coord.StartWork:
		n.workers = append(n.workers, sworker{a.Resource, a.Fence, n.session, true})
		s.begins(i, len(n.workers)-1)
	case coord.Revoke:
		s.tell(i, coord.Stopped{Resource: a.Resource, Fence: a.Fence})
	case coord.Lose:
		for j := range n.workers {
			if w := &n.workers[j]; w.resource == a.Resource && w.fence == a.Fence {
				w.working = false
			}
		}
		stopped := coord.Stopped(a)
		if !slices.ContainsFunc(s.flight, func(m message) bool { return m.node == i && m.answer == coord.Event(stopped) }) {
			s.tell(i, stopped)
		}
	case coord.Finish:
		n.up = false
		n.trust = 0
		if a.Err != nil && !(s.sc.Twins && errors.Is(a.Err, coord.ErrSuperseded)) {
			s.fail("finish", "%s ended with an error: %v", n.name, a.Err)
		}
	}
}

func (s *state) tell(i int, ev coord.Event) {
	s.flight = append(s.flight, message{node: i, answer: ev, sent: s.now})
}

// deliver lets the k-th message arrive. Unless it travels by itself, the answer to a request arrives in the same move.
func (s *state) deliver(k int, split bool) {
	m := s.flight[k]
	s.move.m, s.move.node = m, s.nodes[m.node].name
	s.flight = slices.Delete(s.flight, k, k+1)
	n := &s.nodes[m.node]
	if m.call == nil {
		if !n.up {
			return
		}
		if st, ok := m.answer.(coord.Stopped); ok {
			n.workers = slices.DeleteFunc(n.workers, func(w sworker) bool { return w.resource == st.Resource && w.fence == st.Fence })
		}
		s.step(m.node, m.answer)
		return
	}
	answer := s.serve(m.node, m.call)
	switch {
	case !n.up || m.given:
	case split || n.frozen:
		s.tell(m.node, answer)
	default:
		s.step(m.node, answer)
	}
}

// serve lets the store carry out a request.
func (s *state) serve(i int, call coord.Action) coord.Event {
	n := &s.nodes[i]
	switch a := call.(type) {
	case coord.OpenSession:
		return s.store.open(s.now, n.name, a)
	case coord.CloseSession:
		s.closes(i, a.Session)
		s.store.end(s.now, a.Session)
		return coord.Closed{Req: a.Req}
	case coord.Renew:
		return s.store.renew(s.now, a)
	case coord.Read:
		return s.store.read(s.now, a)
	case coord.Supersede:
		return s.store.supersede(s.now, a, func(string) bool { return false })
	}
	a := call.(coord.Commit)
	re := s.store.commit(s.now, a, func(session string, t coord.Txn) { s.applies(i, session, t) })
	for j, t := range a.Txns {
		if re.Code == coord.OK && re.Results[j].Code == coord.OK && s.hints {
			for _, address := range t.Wake {
				s.wake(address)
			}
		}
	}
	return re
}

func (s *state) wake(address string) {
	for i := range s.nodes {
		if n := &s.nodes[i]; n.up && slices.Contains(n.listens, address) {
			s.tell(i, coord.Hinted{Address: address})
		}
	}
}

// unknown is how a request ends that was given up.
func unknown(call coord.Action) coord.Event {
	switch a := call.(type) {
	case coord.OpenSession:
		return coord.Opened{Req: a.Req, Code: coord.Failed, Err: errAway}
	case coord.CloseSession:
		return coord.Closed{Req: a.Req}
	case coord.Renew:
		return coord.Renewed{Req: a.Req, Code: coord.Unknown, Err: errAway}
	case coord.Read:
		return coord.ReadDone{Req: a.Req, Code: coord.Failed, Err: errAway}
	case coord.Commit:
		return coord.Committed{Req: a.Req, Code: coord.Unknown, Err: errAway}
	case coord.Supersede:
		return coord.Superseded{Req: a.Req, Code: coord.Unknown, Err: errAway}
	}
	return nil
}

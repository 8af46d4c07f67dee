package trace

import (
	"slices"

	"github.com/rebalancer-go/rebalancer/coord"
)

// carriedOut is a line that tells what the store did with a request.
func (x *explainer) carriedOut(l *Line) {
	r, e := x.all[reqKey{l.Proc, l.Event.Req}], &l.Event
	switch {
	case e.Name == "CloseSession":
		if !x.store.ended[e.Session] {
			x.closed(&request{proc: l.Proc, node: l.Node, act: *e, sent: x.line})
		}
	case r == nil:
	case e.Name == "Commit" && e.Code == codeOK:
		for i, re := range e.Results {
			if i >= len(r.txns) {
				break
			}
			t := r.txns[i]
			if t.outcome(re); t.ok {
				x.expired(t)
				x.place(t)
			}
		}
	case e.Name == "Renew" && e.Code == codeOK && r.last:
		x.renewed(r)
	case e.Name == "Supersede" && e.Code == codeOK:
		x.emit(Step{Do: DoSupersede, Proc: r.proc, Node: r.node, Session: r.act.Session, Sent: r.sent, Answered: r.answered})
	}
}

// expired ends the sessions behind entries that a transaction found absent.
func (x *explainer) expired(t *txn) {
	for _, c := range t.Checks {
		if now, there := x.store.keys[c.Key]; there && c.Version == 0 && now.session != "" && now.session != t.req.act.Session {
			x.ends(now.session)
		}
	}
}

// answer lets the store have done what an answer tells of.
func (x *explainer) answer(r *request, e *Act) {
	for _, t := range r.txns {
		if t.ok && !t.placed {
			x.place(t)
		}
	}
	if !x.exact {
		x.told(r, e)
	}
	switch {
	case e.Code == codeLost:
		x.ends(r.act.Session)
	case e.Name == "Renewed" && r.last && !r.done:
		x.renewed(r)
	case e.Name == "Superseded" && e.Code == codeOK && !x.exact:
		x.emit(Step{Do: DoSupersede, Proc: r.proc, Node: r.node, Session: r.act.Session, Sent: r.sent, Answered: r.answered})
	}
}

// told explains entries that an answer shows and that nobody is known to have written, and the absence of what a release did not find.
func (x *explainer) told(r *request, e *Act) {
	for _, s := range e.Seen {
		if k := (Key{s.Key, s.Version}); !x.store.had[k] {
			x.present(k, nil, s.Session)
		}
	}
	for i, re := range e.Results {
		if re.Code != codeConflict || i >= len(r.txns) {
			continue
		}
		t := r.txns[i]
		for _, v := range re.Versions {
			switch {
			case v.Version != 0 && !x.store.had[v]:
				x.present(v, nil, "")
			case t.do == DoRelease && v.Key == t.key && v.Version == 0 && x.store.keys[t.key].version == t.check(t.key):
				x.absent(t.key, nil)
			}
		}
	}
}

// commits explains to the node how its claims and releases ended. Answers to requests of an earlier session tell it nothing.
func (x *explainer) commits(p *process, l *Line, step func(Step)) {
	e := &l.Event
	r := x.all[reqKey{p.name, e.Req}]
	if e.Name != "Committed" || r == nil || r.act.Session != p.state.Session {
		return
	}
	for i, t := range r.txns {
		code, now := e.Code, int64(-1)
		if e.Code == codeOK && i < len(e.Results) {
			code = e.Results[i].Code
			for _, v := range e.Results[i].Versions {
				if v.Key == t.key {
					now = v.Version
				}
			}
		}
		if e.Code == codeOK && e.Incarnation != p.state.Incarnation {
			code = codeUnknown
		}
		switch t.do {
		case DoClaim:
			s := Step{Do: claimEnd(code), Resource: claimOf(t.key), Version: t.versions[t.key]}
			if s.Do == DoClaimAnswered && !l.starts(s.Resource) {
				s.Do = DoClaimKept
			}
			p.unsure[s.Resource] = s.Do == DoClaimUnknown
			step(s)
		case DoRelease:
			x.releaseEnd(p, t, code, now, step)
		}
	}
}

// starts tells whether work on a resource begins with a line.
func (l *Line) starts(key string) bool {
	return slices.ContainsFunc(l.Actions, func(a Act) bool { return a.Name == "StartWork" && keyForm(a.Resource) == key })
}

func claimEnd(code string) Do {
	switch code {
	case codeOK:
		return DoClaimAnswered
	case codeUnknown:
		return DoClaimUnknown
	}
	return DoClaimRefused
}

func (x *explainer) releaseEnd(p *process, t *txn, code string, now int64, step func(Step)) {
	name, version := claimOf(t.key), t.check(t.key)
	s := Step{Do: DoReleaseRefused, Resource: name, Version: version}
	switch {
	case x.fence(p, name) != version: // a ghost, or it was lost meanwhile
		return
	case code == codeOK:
		s.Do = DoReleased
	case code == codeConflict && now != version:
		s.Do = DoReleaseGone
	case code == codeUnknown:
		s.Do = DoReleaseUnknown
	}
	p.retry[name] = s.Do == DoReleaseUnknown || p.retry[name] && s.Do == DoReleaseRefused
	s.Open = p.retry[name]
	step(s)
}

// fence is that of the claim that a node believes to have of a resource.
func (x *explainer) fence(p *process, key string) int64 {
	for name, r := range p.state.Resources {
		if keyForm(name) == key {
			return r.Fence
		}
	}
	return 0
}

// sends explains the claims and releases that a node asks for.
func (x *explainer) sends(p *process, next *coord.Projection, r *request, step func(Step)) {
	for _, t := range r.txns {
		s := Step{Resource: claimOf(t.key), Version: t.check(t.key), Assignment: t.check(coord.AssignmentKey(p.node)),
			Barrier: t.check(coord.BarrierKey), Sent: r.sent}
		switch {
		case t.do == DoClaim:
			if s.Do, s.Version = DoSendClaim, 0; p.unsure[s.Resource] {
				p.unsure[s.Resource] = false
				step(Step{Do: DoReadClaim, Resource: s.Resource})
			}
		case t.do == DoRelease && x.fenceIn(next, s.Resource) == s.Version:
			s.Do = DoSendRelease
		case t.do == DoRelease:
			s.Do = DoSendGhost
			p.unsure[s.Resource] = false
		default:
			continue
		}
		step(s)
	}
}

func (x *explainer) fenceIn(state *coord.Projection, key string) int64 {
	return x.fence(&process{state: *state}, key)
}

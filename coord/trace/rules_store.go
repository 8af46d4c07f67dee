package trace

import (
	"fmt"
	"maps"
	"slices"
)

// rule applies a step, and says why it is not allowed, or "".
type rule func(c *checker, s *Step) string

// rules are what each step may do.
var rules = map[Do]rule{
	DoRenew: (*checker).renew, DoClose: (*checker).close, DoExpire: (*checker).expire, DoMember: (*checker).member,
	DoClaim: (*checker).claim, DoRelease: (*checker).release, DoCampaign: (*checker).campaign, DoStepDown: (*checker).stepDown,
	DoPublish: (*checker).publish, DoForget: (*checker).publish, DoBarrier: (*checker).writeBarrier,
	DoStart: (*checker).start, DoOpened: (*checker).opened, DoLapse: (*checker).lapse, DoFence: (*checker).fence, DoNotice: (*checker).notice, DoLeave: (*checker).leave,
	DoEvict: (*checker).evict, DoAck: (*checker).ack, DoElected: (*checker).elected, DoDeposed: (*checker).deposed, DoFollow: (*checker).follow,
	DoSendClaim: (*checker).sendClaim, DoClaimAnswered: (*checker).claimAnswered, DoClaimKept: (*checker).claimAnswered, DoClaimRefused: (*checker).claimEnded, DoClaimUnknown: (*checker).claimEnded,
	DoReadClaim: (*checker).readClaim, DoSendRelease: (*checker).sendRelease, DoSendGhost: (*checker).sendGhost, DoReleased: (*checker).released, DoReleaseGone: (*checker).released,
	DoReleaseRefused: (*checker).releaseEnded, DoReleaseUnknown: (*checker).releaseEnded, DoStartWork: (*checker).startWork, DoRevoke: (*checker).revoke,
	DoStopped: (*checker).stopped, DoCannotOpen: (*checker).cannotOpen, DoDeclineEnds: (*checker).declineEnds, DoFinish: (*checker).finish,
	DoCrash: (*checker).crash, DoState: (*checker).state,
}

func (c *checker) renew(s *Step) string {
	if !c.live[s.Session] {
		return "the session that was renewed had ended"
	}
	return ""
}

func (c *checker) close(s *Step) string {
	for r, k := range c.claims {
		if k.session == s.Session && c.handled(r) {
			return "it is closed while a handler runs on " + r
		}
	}
	if n := c.node(s); n.session == s.Session && !n.leaving {
		return "it is closed by a node that does not leave"
	}
	c.end(s.Session)
	return ""
}

func (c *checker) expire(s *Step) string {
	for proc, n := range c.nodes {
		if n.session == s.Session && n.trusted {
			return fmt.Sprintf("session %s ends while %s trusts it", s.Session, proc)
		}
	}
	c.end(s.Session)
	return ""
}

func (c *checker) member(s *Step) string {
	switch m := c.members[s.Node]; {
	case !c.live[s.Session]:
		return "its session had ended"
	case m.version != s.Old:
		return fmt.Sprintf("it replaces version %d, there is %d", s.Old, m.version)
	case s.Stopped > c.acks[s.Session]:
		return fmt.Sprintf("it says that all stopped for generation %d, the node has for %d", s.Stopped, c.acks[s.Session])
	}
	c.members[s.Node] = memberEntry{s.Session, s.Version, s.Stopped}
	return c.grows("member/"+s.Node, s.Version)
}

func (c *checker) claim(s *Step) string {
	switch k := c.claims[s.Resource]; {
	case !c.live[s.Session]:
		return "its session had ended"
	case k.session != "":
		return fmt.Sprintf("session %s holds it", k.session)
	case c.members[s.Node].session != s.Session || c.members[s.Node].version != s.Member:
		return fmt.Sprintf("the member entry is %+v, not %d", c.members[s.Node], s.Member)
	case c.plans[s.Node].version != s.Assignment:
		return fmt.Sprintf("the assignment has version %d, not %d", c.plans[s.Node].version, s.Assignment)
	case c.global && c.barrier.version != s.Barrier:
		return fmt.Sprintf("the barrier has version %d, not %d", c.barrier.version, s.Barrier)
	}
	c.claims[s.Resource] = claim{s.Session, s.Version}
	return c.grows("claim/"+s.Resource, s.Version)
}

func (c *checker) release(s *Step) string {
	switch k := c.claims[s.Resource]; {
	case !c.live[s.Session]:
		return "its session had ended"
	case k.version != s.Old:
		return fmt.Sprintf("it releases version %d, there is %d", s.Old, k.version)
	case s.Assignment != 0 && c.plans[s.Node].version != s.Assignment:
		return fmt.Sprintf("the assignment has version %d, not %d", c.plans[s.Node].version, s.Assignment)
	case c.handled(s.Resource):
		return "it is released under a handler"
	}
	delete(c.claims, s.Resource)
	return ""
}

func (c *checker) campaign(s *Step) string {
	switch {
	case !c.live[s.Session]:
		return "its session had ended"
	case c.leader.session != "":
		return fmt.Sprintf("session %s coordinates", c.leader.session)
	case c.members[s.Node].version != s.Member:
		return fmt.Sprintf("the member entry is %+v, not %d", c.members[s.Node], s.Member)
	}
	c.leader, c.terms[s.Version] = claim{s.Session, s.Version}, s.Session
	return c.grows("leader", s.Version)
}

func (c *checker) stepDown(s *Step) string {
	if !c.live[s.Session] || c.leader != (claim{s.Session, s.Old}) {
		return fmt.Sprintf("it does not coordinate: the leader entry is %+v", c.leader)
	}
	c.leader = claim{}
	return ""
}

// term says what is wrong with a write of a coordinator, or "".
func (c *checker) term(s *Step) string {
	if !c.live[s.Session] || c.leader != (claim{s.Session, s.Leader}) {
		return fmt.Sprintf("a deposed coordinator writes: the leader entry is %+v, not %d of %s", c.leader, s.Leader, s.Session)
	}
	return ""
}

func (c *checker) publish(s *Step) string {
	if why := c.term(s); why != "" {
		return why
	}
	switch was := c.plans[s.Node]; {
	case was.version != s.Old:
		return fmt.Sprintf("it replaces version %d, there is %d", s.Old, was.version)
	case s.Do == DoForget:
		delete(c.plans, s.Node)
		return ""
	case s.Epoch != s.Leader:
		return fmt.Sprintf("it carries epoch %d in term %d", s.Epoch, s.Leader)
	}
	a := assignment{s.Version, s.Epoch, s.Generation, s.Share}
	c.plans[s.Node], c.planned[Key{s.Node, s.Version}] = a, a
	return c.grows("assign/"+s.Node, s.Version)
}

func (c *checker) writeBarrier(s *Step) string {
	if why := c.term(s); why != "" {
		return why
	}
	if c.barrier.version != s.Old {
		return fmt.Sprintf("it replaces version %d, there is %d", s.Old, c.barrier.version)
	}
	if s.Generation < c.barrier.gen {
		return fmt.Sprintf("generation %d follows %d", s.Generation, c.barrier.gen)
	}
	for proc, n := range c.nodes {
		for r := range n.res {
			if s.Open && n.works(r) {
				return fmt.Sprintf("it opens over work of %s on %s", proc, r)
			}
		}
	}
	c.barrier = barrier{s.Version, s.Generation, s.Open}
	c.barriers[s.Version] = c.barrier
	return c.grows("barrier", s.Version)
}

// Steps are all steps that the specification's trace module has to know, sorted.
func Steps() []Do {
	return slices.Sorted(maps.Keys(rules))
}

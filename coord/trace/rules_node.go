package trace

import (
	"fmt"
	"slices"
)

func (c *checker) start(s *Step) string {
	c.node(s)
	return ""
}

func (c *checker) opened(s *Step) string {
	n := c.node(s)
	switch {
	case n.session != "":
		return "it has a session"
	case c.given["session/"+s.Session] != 0:
		return "this session was opened before"
	}
	for r, h := range n.res {
		if h.phase != "none" && h.phase != "lost" {
			return fmt.Sprintf("%s is %s", r, h.phase)
		}
	}
	c.given["session/"+s.Session] = 1
	n.session, n.trusted, c.live[s.Session] = s.Session, true, true
	return ""
}

func (c *checker) lapse(s *Step) string {
	c.node(s).trusted = false
	return ""
}

func (c *checker) fence(s *Step) string {
	n := c.node(s)
	if n.session != s.Session || n.trusted && c.live[n.session] {
		return "it gives up a session that it trusts"
	}
	n.old[n.session] = true
	for _, h := range n.res {
		if h.phase == "working" || h.phase == "draining" || h.phase == "lost" {
			h.phase = "lost"
		} else {
			*h = holding{phase: "none"}
		}
	}
	n.session, n.trusted, n.evict, n.share, n.seen, n.gen, n.bar, n.stop, n.ack, n.lead = "", false, false, nil, 0, 0, barrier{}, 0, 0, 0
	return ""
}

// notice: what was read of an earlier incarnation is forgotten; what is held must all have been found again.
func (c *checker) notice(s *Step) string {
	n := c.node(s)
	n.seen, n.lead, n.bar, n.stop, n.ack = 0, 0, barrier{}, 0, 0
	c.revoked(n)
	return ""
}

func (c *checker) leave(s *Step) string {
	c.node(s).leaving = true
	return ""
}

// revoked drains what is not desired any more.
func (c *checker) revoked(n *nodeState) {
	for r, h := range n.res {
		if h.phase == "working" && !c.desires(n, r) {
			h.phase = "draining"
		}
	}
}

func (c *checker) evict(s *Step) string {
	n := c.node(s)
	if !n.leaving {
		return "it does not leave"
	}
	n.evict = true
	c.revoked(n)
	return ""
}

func (c *checker) ack(s *Step) string {
	n := c.node(s)
	if !c.global || n.bar.open || n.bar.gen != s.Generation {
		return fmt.Sprintf("the barrier that it knows is %+v", n.bar)
	}
	for r, h := range n.res {
		if h.phase != "none" && h.phase != "unsure" {
			return fmt.Sprintf("it says that all stopped, and %s is %s", r, h.phase)
		}
	}
	n.ack, c.acks[n.session] = s.Generation, s.Generation
	return ""
}

func (c *checker) elected(s *Step) string {
	n := c.node(s)
	if c.terms[s.Epoch] == "" || c.terms[s.Epoch] != n.session {
		return fmt.Sprintf("epoch %d is that of session %q", s.Epoch, c.terms[s.Epoch])
	}
	n.lead = s.Epoch
	return ""
}

func (c *checker) deposed(s *Step) string {
	n := c.node(s)
	if n.lead != s.Epoch || c.leader.version == n.lead {
		return fmt.Sprintf("it ends its term %d, the leader entry is %+v", n.lead, c.leader)
	}
	n.lead = 0
	return ""
}

func (c *checker) follow(s *Step) string {
	n := c.node(s)
	if !c.calm(n) && !(n.leaving && n.trusted) { // who leaves may have closed its session
		return "it follows without a session that it trusts"
	}
	if s.Version != n.seen {
		a, ok := c.planned[Key{n.node, s.Version}]
		if !ok || a.gen != s.Generation || !sameSet(a.share, s.Share) {
			return fmt.Sprintf("it applies version %d of generation %d with %v, which never stood there: %+v", s.Version, s.Generation, s.Share, a)
		}
		n.seen, n.gen, n.share = s.Version, s.Generation, s.Share
	} else if n.gen != s.Generation || !sameSet(n.share, s.Share) {
		return "its share changes, and its assignment does not"
	}
	b, ok := c.barriers[s.Barrier]
	if !ok {
		return fmt.Sprintf("it knows a barrier of version %d, which never stood there", s.Barrier)
	}
	if n.bar = b; !b.open {
		n.stop = max(n.stop, b.gen)
	}
	c.revoked(n)
	return ""
}

func sameSet(a, b []string) bool {
	a, b = slices.Clone(a), slices.Clone(b)
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(a, b)
}

func (c *checker) sendClaim(s *Step) string {
	n, h := c.node(s), c.node(s).of(s.Resource)
	switch {
	case !c.calm(n) || !c.joined(n) || n.leaving:
		return "it claims and is no member in good standing"
	case h.phase != "none":
		return "it claims what is " + h.phase
	case !c.desires(n, s.Resource):
		return "it claims what it is not assigned"
	case s.Assignment != n.seen || c.global && s.Barrier != n.bar.version:
		return fmt.Sprintf("its claim relies on assignment %d and barrier %d, it knows %d and %d", s.Assignment, s.Barrier, n.seen, n.bar.version)
	}
	h.phase = "asked"
	return ""
}

func (c *checker) readClaim(s *Step) string {
	h := c.node(s).of(s.Resource)
	if h.phase != "unsure" {
		return "it looks for a claim while it is " + h.phase
	}
	h.phase = "none"
	return ""
}

func (c *checker) claimAnswered(s *Step) string {
	n, h := c.node(s), c.node(s).of(s.Resource)
	if !c.calm(n) || h.phase != "asked" || c.claims[s.Resource] != (claim{n.session, s.Version}) {
		return fmt.Sprintf("it is told of claim %d while it is %s; there is %+v", s.Version, h.phase, c.claims[s.Resource])
	}
	h.claim, h.phase = claim{n.session, s.Version}, "stopped"
	if c.desires(n, s.Resource) && s.Do == DoClaimAnswered {
		h.phase = "working"
	}
	return ""
}

func (c *checker) claimEnded(s *Step) string {
	h := c.node(s).of(s.Resource)
	if h.phase != "asked" {
		return "it is told of a claim while it is " + h.phase
	}
	if h.phase = "none"; s.Do == DoClaimUnknown {
		h.phase = "unsure"
	}
	return ""
}

func (c *checker) sendRelease(s *Step) string {
	n, h := c.node(s), c.node(s).of(s.Resource)
	checks := n.seen != 0 && !slices.Contains(n.share, s.Resource) && c.lets(n) && !n.evict
	switch {
	case !c.calm(n):
		return "it releases without a session that it trusts"
	case h.phase != "stopped" && h.phase != "retry":
		return "it releases what is " + h.phase
	case h.phase == "stopped" && c.desires(n, s.Resource):
		return "it releases what it is assigned"
	case h.version != s.Version:
		return fmt.Sprintf("it releases version %d, it holds %d", s.Version, h.version)
	case checks && s.Assignment != n.seen:
		return fmt.Sprintf("its release relies on assignment %d, it knows %d", s.Assignment, n.seen)
	}
	h.phase = "releasing"
	return ""
}

func (c *checker) sendGhost(s *Step) string {
	h := c.node(s).of(s.Resource)
	if h.phase != "none" && h.phase != "unsure" {
		return "it gives back a claim that it did not obtain while it is " + h.phase
	}
	h.phase = "none"
	return ""
}

func (c *checker) released(s *Step) string {
	h := c.node(s).of(s.Resource)
	if h.phase != "releasing" || h.version != s.Version || c.claims[s.Resource] == h.claim {
		return fmt.Sprintf("it is told that it released %d while it is %s of %d; there is %+v", s.Version, h.phase, h.version, c.claims[s.Resource])
	}
	*h = holding{phase: "none"}
	return ""
}

func (c *checker) releaseEnded(s *Step) string {
	h := c.node(s).of(s.Resource)
	if h.phase != "releasing" {
		return "it is told of a release while it is " + h.phase
	}
	if h.phase = "stopped"; s.Open {
		h.phase = "retry"
	}
	return ""
}

func (c *checker) startWork(s *Step) string {
	n, h := c.node(s), c.node(s).of(s.Resource)
	if h.phase == "stopped" && c.calm(n) && c.desires(n, s.Resource) {
		h.phase = "working"
	}
	if h.phase != "working" || h.version != s.Version || !n.trusted {
		return fmt.Sprintf("it starts under fence %d while it is %s of %d", s.Version, h.phase, h.version)
	}
	return ""
}

func (c *checker) revoke(s *Step) string {
	if h := c.node(s).of(s.Resource); h.phase != "draining" || h.version != s.Version {
		return fmt.Sprintf("it is told to drain fence %d while it is %s of %d", s.Version, h.phase, h.version)
	}
	return ""
}

func (c *checker) stopped(s *Step) string {
	h := c.node(s).of(s.Resource)
	switch {
	case h.version != s.Version:
		return fmt.Sprintf("a worker of fence %d ends, there is one of %d", s.Version, h.version)
	case h.phase == "draining":
		h.phase = "stopped"
	case h.phase == "lost":
		*h = holding{phase: "none"}
	default:
		return "a worker ends while it is " + h.phase
	}
	return ""
}

func (c *checker) cannotOpen(s *Step) string {
	n, h := c.node(s), c.node(s).of(s.Resource)
	if h.phase == "working" {
		h.phase = "draining"
	}
	why := c.stopped(s)
	if h.phase == "stopped" {
		n.declined[s.Resource] = true
	}
	return why
}

func (c *checker) declineEnds(s *Step) string {
	delete(c.node(s).declined, s.Resource)
	return ""
}

func (c *checker) finish(s *Step) string {
	n := c.node(s)
	if !n.leaving {
		return "it ends and was not asked to leave"
	}
	delete(c.nodes, s.Proc)
	return ""
}

func (c *checker) crash(s *Step) string {
	delete(c.nodes, s.Proc)
	return ""
}

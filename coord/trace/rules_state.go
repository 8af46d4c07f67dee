package trace

import (
	"fmt"
	"slices"
	"strings"
)

// agrees are the phases of the specification for what a machine says of a resource that it holds.
var agrees = map[string][]string{
	"claimed": {"stopped"}, "working": {"working"}, "draining": {"draining"}, "stopped": {"stopped", "retry"}, "releasing": {"releasing"},
}

// state compares what a machine says of itself with what its steps have made of it.
func (c *checker) state(s *Step) string {
	n, p := c.node(s), s.State
	var bad []string
	differs := func(what string, says, is any) {
		if fmt.Sprint(says) != fmt.Sprint(is) {
			bad = append(bad, fmt.Sprintf("%s is %v, it says %v", what, is, says))
		}
	}
	differs("the session", p.Session, n.session)
	differs("its term", p.Epoch, n.lead)
	differs("its assignment", p.Seen, n.seen)
	differs("its generation", p.Generation, n.gen)
	differs("its barrier", p.Barrier, n.bar.version)
	differs("what it stopped for", p.Acked, n.ack)
	differs("that it leaves", p.Leaving, n.leaving)
	if !sameSet(keyForms(p.Share), n.share) {
		differs("its share", p.Share, n.share)
	}
	says := map[string]string{}
	for name, r := range p.Resources {
		key := keyForm(name)
		h := n.of(key)
		switch {
		case r.Fence != 0:
			if !slices.Contains(agrees[r.Phase], h.phase) || r.Fence != h.version || r.Worker != 0 && r.Worker != r.Fence {
				differs(name, fmt.Sprint(r.Phase, " ", r.Fence), fmt.Sprint(h.phase, " ", h.version))
			}
			says[key] = r.Phase
		case r.Worker != 0:
			if h.phase != "lost" || h.version != r.Worker {
				differs(name, fmt.Sprint("lost ", r.Worker), fmt.Sprint(h.phase, " ", h.version))
			}
			says[key] = "lost"
		}
	}
	for key, h := range n.res {
		if says[key] == "" && !slices.Contains([]string{"none", "asked", "unsure"}, h.phase) {
			differs(key, "nothing", h.phase)
		}
	}
	return strings.Join(bad, "; ")
}

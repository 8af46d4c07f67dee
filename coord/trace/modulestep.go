package trace

import (
	"fmt"
	"sort"
	"strings"

	"github.com/rebalancer-go/rebalancer/coord"
)

// step is a step as a record of the trace module, with the fields that it looks at.
func (w *writer) step(s *Step) string {
	var b strings.Builder
	field := func(name string, value any) { fmt.Fprintf(&b, ", %s |-> %v", name, value) }
	fmt.Fprintf(&b, "[a |-> %q, l |-> %d", string(s.Do), s.Line)
	if s.Proc != "" {
		field("n", w.nodes[s.node()])
	}
	if s.Resource != "" {
		field("r", w.resources[s.Resource])
	}
	claim, assign := "claim/"+s.Resource, "assign/"+s.node()
	switch s.Do {
	case DoOpened, DoRenew, DoFence, DoExpire, DoClose:
		field("s", w.session(s.Session))
	case DoMember:
		w.request(s, field)
		field("stopped", w.generation(s.Stopped))
		field("leaving", truth(s.Leaving))
		field("decl", w.set(s.Declined))
	case DoClaim, DoRelease:
		w.request(s, field)
		field("v", w.version(claim, s.Version))
		field("old", w.version(claim, s.Old))
		field("av", w.version(assign, s.Assignment))
		field("bv", w.version("barrier", s.Barrier))
	case DoCampaign, DoStepDown:
		w.request(s, field)
		field("v", w.version("leader", s.Version))
		field("old", w.version("leader", s.Old))
	case DoPublish, DoForget:
		w.request(s, field)
		w.entry(s, field)
	case DoBarrier:
		w.request(s, field)
		field("ldr", w.version("leader", s.Leader))
		field("v", w.version("barrier", s.Version))
		field("old", w.version("barrier", s.Old))
		field("gen", w.generation(s.Generation))
		field("open", truth(s.Open))
	case DoElected, DoDeposed:
		field("e", w.version("leader", s.Epoch))
	case DoAck:
		field("gen", w.generation(s.Generation))
	case DoFollow:
		field("v", w.version(assign, s.Version))
		field("gen", w.generation(s.Generation))
		field("share", w.set(s.Share))
		field("bv", w.version("barrier", s.Barrier))
	case DoState:
		w.state(s, s.State, field)
	default:
		field("v", w.version(claim, s.Version))
		field("av", w.version(assign, s.Assignment))
		field("bv", w.version("barrier", s.Barrier))
		field("open", truth(s.Open))
	}
	b.WriteString("]")
	return b.String()
}

// node is the node whose process takes the step, or asked for it.
func (s *Step) node() string {
	if s.Writer != "" {
		return s.Writer
	}
	return s.Node
}

func (w *writer) request(s *Step, field func(string, any)) {
	field("s", w.session(s.Session))
	field("sent", s.Sent)
	field("told", truth(s.Answered != 0))
	field("answered", s.Answered)
}

func (w *writer) entry(s *Step, field func(string, any)) {
	key := "assign/" + s.Node
	field("m", w.nodes[s.Node])
	field("ldr", w.version("leader", s.Leader))
	field("v", w.version(key, s.Version))
	field("old", w.version(key, s.Old))
	field("e", w.version("leader", s.Epoch))
	field("gen", w.generation(s.Generation))
	field("share", w.set(s.Share))
	field("open", truth(s.Do == DoForget))
}

func (w *writer) state(s *Step, p *coord.Projection, field func(string, any)) {
	field("s", w.session(p.Session))
	field("e", w.version("leader", p.Epoch))
	field("v", w.version("assign/"+s.Node, p.Seen))
	field("gen", w.generation(p.Generation))
	field("bv", w.version("barrier", p.Barrier))
	field("stopped", w.generation(p.Acked))
	field("leaving", truth(p.Leaving))
	field("share", w.set(keyForms(p.Share)))
	var all []string
	for name, r := range p.Resources {
		key := keyForm(name)
		switch {
		case r.Fence != 0:
			all = append(all, fmt.Sprintf("<<%d, %q, %d>>", w.resources[key], r.Phase, w.version("claim/"+key, r.Fence)))
		case r.Worker != 0:
			all = append(all, fmt.Sprintf("<<%d, \"lost\", %d>>", w.resources[key], w.version("claim/"+key, r.Worker)))
		}
	}
	sort.Strings(all)
	field("res", "{"+strings.Join(all, ", ")+"}")
}

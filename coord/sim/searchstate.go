package sim

import (
	"fmt"
	"slices"

	"github.com/rebalancer-go/rebalancer/coord"
)

// Scenario is a small group and what may go wrong in it: Search looks at everything that can then happen.
type Scenario struct {
	Name      string
	Nodes     int
	Resources []string
	Mode      coord.Mode
	Late      int  // how many of the nodes, from the last, join only when the search begins
	Twins     bool // names are static, and the last node is a second process under the name of the first
	Hints     bool
	Horizon   int   // in ticks from the beginning of the search; 0: faults may come at any time
	After     int   // in ticks from the last fault of the budget, which comes before the horizon; 0: all is over at the horizon
	Within    vtime // to settle in after the horizon; 0: six ttl
	// Prompt demands that everything is in its place as soon as nothing is on its way and nobody wants to be woken soon: no poll
	// and no renewal is needed for it. Time goes on by what the machines ask for, not in ticks.
	Prompt  bool
	Budget  Budget
	Without coord.Guards
	Store   StoreGuards
	// Limit ends a search without a result after so many states; 0: none.
	Limit int
}

// Budget is how often each thing may go wrong.
type Budget struct {
	Lost    int // a request or its answer is given up as unknown; the request may still arrive later
	Late    int // a message is still on its way when time goes on
	Split   int // an answer travels by itself; others arrive as soon as the store has answered
	Frozen  int
	Crashed int
	Left    int
	Wiped   int
	Rolled  int // back to what was there when the search began
}

const (
	searchTTL = 6 * sec
	// searchTick is how far time goes on at once, at least.
	searchTick = searchTTL / 12
)

// state is one state of a search. It is never changed once it was reached: next states are made of copies.
type state struct {
	sc     *Scenario
	now    vtime
	store  *store
	nodes  []snode
	flight []message
	budget Budget
	tops   map[string]top
	terms  map[int64]string
	hints  bool
	end    vtime // of the search; 0: not before the budget is spent
	spent  bool  // it ends so long after the last fault
	err    *Violation
	// How it was reached.
	from *state
	move step
}

// step names a move, without the price of describing it.
type step struct {
	what string
	node string
	m    message
}

func (t step) String() string {
	switch {
	case t.m.call != nil:
		return t.what + t.node + ": request " + describe(t.m.call)
	case t.m.answer != nil:
		return t.what + t.node + ": " + describe(t.m.answer)
	}
	return t.what + t.node
}

// snode is a node in a search. Its machine is copied before each step.
type snode struct {
	name    string
	machine *coord.Machine
	up      bool
	frozen  bool
	leaving bool
	trust   coord.Time
	session string
	linc    string
	listens []string // addresses, of the session
	workers []sworker
}

type sworker struct {
	resource string
	fence    int64
	session  string
	working  bool // counts until it is told to stop at once, or has stopped
}

// message is something on its way.
type message struct {
	node   int
	call   coord.Action // a request on its way to the store
	answer coord.Event  // or something on its way to the node
	sent   vtime
	given  bool // the node gave the request up
}

func newState(sc *Scenario) *state {
	s := &state{sc: sc, store: newStore(sc.Store), tops: map[string]top{}, terms: map[int64]string{}, hints: sc.Hints}
	for i := range sc.Nodes {
		s.nodes = append(s.nodes, snode{name: fmt.Sprintf("n%d", i+1)})
	}
	if sc.Twins {
		s.nodes[sc.Nodes-1].name = s.nodes[0].name
	}
	return s
}

// next is a copy that may be changed, for the state after a move of a node (or of none).
func (s *state) next(what, node string) *state {
	n := *s
	n.from, n.move = s, step{what: what, node: node}
	n.store = s.store.clone()
	n.nodes = slices.Clone(s.nodes)
	for i := range n.nodes {
		n.nodes[i].workers = slices.Clone(s.nodes[i].workers)
	}
	n.flight = slices.Clone(s.flight)
	n.tops = make(map[string]top, len(s.tops))
	for k, v := range s.tops {
		n.tops[k] = v
	}
	n.terms = make(map[int64]string, len(s.terms))
	for k, v := range s.terms {
		n.terms[k] = v
	}
	return &n
}

// boot starts a machine at place i.
func (s *state) boot(i int) {
	n := &s.nodes[i]
	cfg := coord.Config{Group: "g", Node: n.name, Instance: fmt.Sprintf("i%d", i+1), StaticID: s.sc.Twins, Mode: s.sc.Mode, Origin: coord.OriginStatic, Static: s.sc.Resources,
		TTL: coord.Duration(searchTTL), Debounce: coord.Duration(searchTick), DebounceMax: coord.Duration(2 * searchTick),
		Seed: uint64(i + 1), Without: s.sc.Without}.WithDefaults()
	n.machine, n.up = coord.New(cfg), true
	s.step(i, coord.Start{})
}

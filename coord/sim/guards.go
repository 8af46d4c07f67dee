package sim

import (
	"fmt"
	"strings"

	"github.com/rebalancer-go/rebalancer/coord"
)

// Engine is what shows that a guard is needed.
type Engine string

// The engines of the table of guards.
const (
	BySimulation Engine = "simulation"
	BySearch     Engine = "search"
	BySchedule   Engine = "schedule" // written by hand
)

// Guarded is one row of the table: guards that are removed together, and what then breaks.
type Guarded struct {
	Name     string
	Machine  coord.Guards
	Store    StoreGuards
	Rule     string
	Breaks   []string // the properties of which one must be violated
	Engine   Engine
	Profile  Profile   // for BySimulation
	Seeds    int64     // of the profile, from 0: one of them must fail
	Search   Scenario  // for BySearch
	Schedule *Schedule // for BySchedule
	// Cover is another guard without which nothing breaks. Not for BySearch.
	Cover *Cover
}

// Cover is another guard that covers one completely: each keeps the promise alone.
type Cover struct {
	Name    string // as in the table
	Machine coord.Guards
	Why     string
}

// Table lists every guard of the machine and of the store.
func Table() []Guarded {
	return append(machineGuards(), storeGuards()...)
}

// Markdown is the table for people.
func Markdown() string {
	var b strings.Builder
	b.WriteString("# Guards of the protocol\n\nWritten by `go test ./coord/sim -run TestGuardsFile -write`; do not edit. What breaks when a guard is removed, and which engine shows it.\n" +
		"TestGuards runs each row: without the guard it must fail, with all guards the same world must pass. Where one guard covers another, the world must pass\n" +
		"without either, and fail without both.\n\n" +
		"| guard | rule | what breaks without it | shown by |\n|---|---|---|---|\n")
	for _, g := range Table() {
		breaks, by := strings.Join(g.Breaks, "; or "), string(g.Engine)
		switch g.Engine {
		case BySimulation:
			profile := string(g.Profile)
			if profile == "" {
				profile = "any world"
			}
			by = fmt.Sprintf("simulation, %s, seeds below %d", profile, g.Seeds)
		case BySearch:
			by = "search, " + g.Search.Name
		case BySchedule:
			by = "schedule, " + g.Schedule.Name
		}
		if g.Cover != nil {
			breaks = fmt.Sprintf("nothing alone: covered by %q (%s); removed together: %s", g.Cover.Name, g.Cover.Why, breaks)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", g.Name, g.Rule, breaks, by)
	}
	return b.String()
}

// Shown runs a row and returns the violation that it must lead to, with the world that it happened in, or nil. with all guards
// in place that world must pass, which is checked as well.
func (g *Guarded) Shown() (*Violation, error) {
	switch g.Engine {
	case BySearch:
		return g.searched()
	case BySchedule:
		return g.played()
	}
	all, passes := g.removals()
	for seed := range g.Seeds {
		v := g.world(seed, all)
		if v == nil || !g.expects(v) {
			continue
		}
		for _, p := range passes {
			if w := g.world(seed, p); w != nil {
				return nil, fmt.Errorf("seed %d fails without %#x of the machine and %#x of the store: %w", seed, uint64(p.machine), uint16(p.store), w)
			}
		}
		return v, nil
	}
	return nil, nil
}

// removed are guards that are taken out together.
type removed struct {
	machine coord.Guards
	store   StoreGuards
}

// removals are what must break the promise, and what must not.
func (g *Guarded) removals() (all removed, passes []removed) {
	passes, all = []removed{{}}, removed{g.Machine, g.Store}
	if g.Cover != nil {
		passes = append(passes, all)
		all.machine |= g.Cover.Machine
	}
	return all, passes
}

func (g *Guarded) world(seed int64, out removed) *Violation {
	s := NewProfile(g.Profile, seed)
	s.Without |= out.machine
	s.Store |= out.store
	return NewWorld(s, NewSchedule(&s)).Run()
}

func (g *Guarded) searched() (*Violation, error) {
	sc := g.Search
	if r := Search(sc); r.Violation != nil {
		return nil, fmt.Errorf("fails with all guards: %v", r)
	}
	sc.Without |= g.Machine
	sc.Store |= g.Store
	r := Search(sc)
	if r.Violation == nil || !g.expects(r.Violation) {
		return nil, nil
	}
	return r.Violation, nil
}

func (g *Guarded) played() (*Violation, error) {
	all, passes := g.removals()
	if g.Cover != nil {
		passes = append(passes, removed{machine: g.Cover.Machine})
	}
	for _, p := range passes {
		v, err := g.Schedule.Play(p.machine, p.store)
		if err == nil && v != nil {
			err = fmt.Errorf("fails without %#x of the machine and %#x of the store: %w", uint64(p.machine), uint16(p.store), v)
		}
		if err != nil {
			return nil, err
		}
	}
	v, err := g.Schedule.Play(all.machine, all.store)
	if v != nil && !g.expects(v) {
		return nil, fmt.Errorf("it breaks another promise: %w", v)
	}
	return v, err
}

func (g *Guarded) expects(v *Violation) bool {
	for _, p := range g.Breaks {
		if p == v.Property {
			return true
		}
	}
	return false
}

// Package storetest checks a store against every sentence of the contract in package backends.
//
// A driver's own test calls Run with what the suite cannot know: how to make an empty place for data, and how to lose
// that data. What a driver cannot do it declares with a reason, which is logged; a declaration that is not true, or is
// missing, fails the suite.
package storetest

import (
	"context"
	"sort"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/backends"
)

// Driver is what the suite needs to know of a store.
type Driver struct {
	// Place makes a new, empty place for data. Required.
	Place func(t *testing.T) Place
	// TTL is one that the store can do, as short as it can be kept alive reliably on a busy machine. Required.
	TTL time.Duration
	// Wrap runs one case; nil calls it. A store that works in virtual time runs it in a testing/synctest bubble.
	Wrap func(t *testing.T, f func(t *testing.T))
	// Slack is by how much sessions may be seen to end later than their TTL says; 0 for a store that is exact.
	Slack time.Duration
	// Rounds of the cases that race; 0 is 20.
	Rounds int
	// Only tells which cases to run, by their names; nil: all. For a driver that loses data in more than one way.
	Only func(name string) bool
}

// Place is where one case keeps its data.
type Place struct {
	// Open opens a store over the data; again for one more, as another process would. The suite closes it. Required.
	Open func(t *testing.T) backends.Store
	// Lose loses all data under the open stores.
	Lose func(t *testing.T)
	// RollBack remembers the data and returns what brings it back, under the open stores.
	RollBack func(t *testing.T) (restore func(t *testing.T))
	// StepBack sets back the clock that versions are drawn from.
	StepBack func(t *testing.T, d time.Duration)
	// Rows counts what is stored of sessions and of entries bound to one, alive or not.
	Rows func(t *testing.T) int
	// Cannot says why the driver cannot do a thing: the name of a field above, Hints or TwoHandles.
	Cannot map[Ability]string
}

// Ability is something that a driver may be unable to do.
type Ability string

// What a driver may be unable to do.
const (
	Lose       Ability = "Lose"
	RollBack   Ability = "RollBack"
	StepBack   Ability = "StepBack"
	Rows       Ability = "Rows"
	Hints      Ability = "Hints"      // Listen gives ErrNoHints
	TwoHandles Ability = "TwoHandles" // Open gives the same store again
)

// A testCase checks one sentence of the contract.
type testCase struct {
	name  string
	needs []Ability
	f     func(e *env)
}

// Run checks the store.
func Run(t *testing.T, d Driver) {
	t.Helper()
	if d.Place == nil || d.TTL <= 0 {
		t.Fatal("storetest: a driver needs Place and TTL")
	}
	if d.Rounds == 0 {
		d.Rounds = 20
	}
	if d.Wrap == nil {
		d.Wrap = func(t *testing.T, f func(t *testing.T)) { f(t) }
	}
	t.Run("AbilitiesAreDeclared", func(t *testing.T) { d.Wrap(t, func(t *testing.T) { abilities(t, d) }) })
	for _, cases := range [][]testCase{sessionCases, readCases, commitCases, keyCases, versionCases, lossCases, hintCases, closeCases, raceCases, supersedeCases} {
		for _, c := range cases {
			if d.Only != nil && !d.Only(c.name) {
				continue
			}
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				d.Wrap(t, func(t *testing.T) {
					e := newEnv(t, d)
					for _, a := range c.needs {
						if why := e.place.Cannot[a]; why != "" {
							t.Skipf("the store cannot %s: %s", a, why)
						}
					}
					c.f(e)
				})
			})
		}
	}
}

// abilities fails when a declaration is missing or untrue, and logs the reasons.
func abilities(t *testing.T, d Driver) {
	p := d.Place(t)
	has := map[Ability]bool{Lose: p.Lose != nil, RollBack: p.RollBack != nil, StepBack: p.StepBack != nil, Rows: p.Rows != nil}
	a, b := p.Open(t), p.Open(t)
	defer closeStore(t, a)
	defer closeStore(t, b)
	has[TwoHandles] = a != b
	h, err := a.Open(t.Context(), backends.SessionOptions{Group: "g", TTL: d.TTL})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	has[Hints] = h.Listen(ctx, "a", func() {}) == nil
	var names []string
	for ability := range has {
		names = append(names, string(ability))
	}
	sort.Strings(names)
	for _, name := range names {
		why, declared := p.Cannot[Ability(name)]
		switch {
		case has[Ability(name)] && declared:
			t.Errorf("%s: declared impossible (%s), but the store does it", name, why)
		case !has[Ability(name)] && why == "":
			t.Errorf("%s: the store does not do it and gives no reason", name)
		case declared:
			t.Logf("not tested: %s: %s", name, why)
		}
	}
	for ability := range p.Cannot {
		if _, known := has[ability]; !known {
			t.Errorf("%s: no such ability", ability)
		}
	}
}

func closeStore(t *testing.T, s backends.Store) {
	if err := s.Close(); err != nil {
		t.Errorf("closing the store: %v", err)
	}
}

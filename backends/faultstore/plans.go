package faultstore

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// Match chooses calls. Empty fields match all.
type Match struct {
	Kinds                []Kind
	Group, Node, Session string
}

func (m Match) matches(c Call) bool {
	return (len(m.Kinds) == 0 || slices.Contains(m.Kinds, c.Kind)) && (m.Group == "" || m.Group == c.Group) &&
		(m.Node == "" || m.Node == c.Node) && (m.Session == "" || m.Session == c.Session)
}

// Script gives the first calls that match one fault each, in order; all others pass. A zero Fault lets its call pass.
func Script(m Match, faults ...Fault) Plan {
	var mu sync.Mutex
	return PlanFunc(func(c Call) Fault {
		mu.Lock()
		defer mu.Unlock()
		if len(faults) == 0 || !m.matches(c) {
			return Fault{}
		}
		f := faults[0]
		faults = faults[1:]
		return f
	})
}

// Always gives every call that matches the same fault.
func Always(m Match, f Fault) Plan {
	return PlanFunc(func(c Call) Fault {
		if m.matches(c) {
			return f
		}
		return Fault{}
	})
}

// All asks the plans in order; the first that decides on a fault wins.
func All(plans ...Plan) Plan {
	return PlanFunc(func(c Call) Fault {
		for _, p := range plans {
			if f := p.Decide(c); f != (Fault{}) {
				return f
			}
		}
		return Fault{}
	})
}

// Chances are the probabilities, from 0 to 1, of faults that Random draws. They exclude each other; what is left passes.
type Chances struct {
	Before, After, HangBefore, HangAfter, Delay float64
	MaxDelay                                    time.Duration // of Delay; uniform from 0
}

// Random draws a fault for each call that matches, from a seed. Which call gets which fault depends on their order too.
func Random(seed uint64, m Match, p Chances) Plan {
	return &random{rng: rand.New(rand.NewPCG(seed, seed)), seed: seed, match: m, p: p}
}

type random struct {
	mu    sync.Mutex
	rng   *rand.Rand
	seed  uint64
	match Match
	p     Chances
}

// String tells the seed.
func (r *random) String() string { return fmt.Sprintf("random faults of seed %d: %+v", r.seed, r.p) }

func (r *random) Decide(c Call) Fault {
	if !r.match.matches(c) {
		return Fault{}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	x := r.rng.Float64()
	delay := time.Duration(r.rng.Float64() * float64(r.p.MaxDelay))
	for _, one := range []struct {
		chance float64
		fault  Fault
	}{
		{r.p.Before, Fault{Before: true}},
		{r.p.After, Fault{After: true}},
		{r.p.HangBefore, Fault{Before: true, Hang: true}},
		{r.p.HangAfter, Fault{After: true, Hang: true}},
		{r.p.Delay, Fault{Delay: delay}},
	} {
		if x < one.chance {
			return one.fault
		}
		x -= one.chance
	}
	return Fault{}
}

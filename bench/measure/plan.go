package measure

import (
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/rebalancer-go/rebalancer/coord/assign"
)

// Planner makes a plan: the owner of each resource, by the indexes of a Problem. Another library's algorithm is compared by
// another Planner.
type Planner struct {
	Name string
	Plan func(assign.Problem) []int32
}

// Planners are those that the table compares.
func Planners() []Planner { return []Planner{{Name: "coord/assign", Plan: assign.Plan}} }

// PlanCost is what one plan takes.
type PlanCost struct {
	Planner          string
	Resources, Nodes int
	Change           string
	Time             time.Duration // median
	Bytes, Allocs    uint64        // of one plan
	Moves            int           // resources whose owner was alive and is another one now
	Spread           int           // between the fullest and the emptiest node
}

// Plans measures a fresh plan, one without changes, a leave and a join, all nodes alike.
func Plans(p Planner, resources, nodes, rounds int) ([]PlanCost, error) {
	var out []PlanCost
	for _, c := range changes(p, resources, nodes) {
		cost := PlanCost{Planner: p.Name, Resources: resources, Nodes: len(c.problem.Nodes), Change: c.name}
		var times []float64
		var plan []int32
		for range rounds {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			began := time.Now()
			plan = p.Plan(c.problem)
			times = append(times, float64(time.Since(began)))
			runtime.ReadMemStats(&after)
			cost.Bytes, cost.Allocs = after.TotalAlloc-before.TotalAlloc, after.Mallocs-before.Mallocs
		}
		cost.Time = time.Duration(median(times))
		counts := make([]int, len(c.problem.Nodes))
		for r, o := range plan {
			if o < 0 || int(o) >= len(counts) {
				return nil, fmt.Errorf("%s, %s: resource %d has no owner", p.Name, c.name, r)
			}
			counts[o]++
			if r < len(c.problem.Owner) && c.problem.Owner[r] >= 0 && c.problem.Owner[r] != o {
				cost.Moves++
			}
		}
		cost.Spread = slices.Max(counts) - slices.Min(counts)
		out = append(out, cost)
	}
	return out, nil
}

type change struct {
	name    string
	problem assign.Problem
}

func changes(p Planner, resources, nodes int) []change {
	fresh := assign.Problem{Nodes: make([]assign.Node, nodes), Resources: resources}
	owner := p.Plan(fresh)
	gone := int32(nodes / 2)
	left := slices.Clone(owner)
	for r, o := range left {
		switch {
		case o == gone:
			left[r] = assign.Nobody
		case o > gone:
			left[r]--
		}
	}
	return []change{
		{"fresh", fresh},
		{"nothing changed", assign.Problem{Nodes: fresh.Nodes, Resources: resources, Owner: owner}},
		{"one leaves", assign.Problem{Nodes: fresh.Nodes[1:], Resources: resources, Owner: left}},
		{"one joins", assign.Problem{Nodes: make([]assign.Node, nodes+1), Resources: resources, Owner: owner}},
	}
}

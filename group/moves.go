package group

import (
	"fmt"
	"strings"
	"time"

	"github.com/rebalancer-go/rebalancer/coord"
)

// Plan is what the coordinator says of a plan that it published (KindRebalanced).
type Plan struct {
	// Epoch and Generation identify it.
	Epoch, Generation int64
	// Causes say in single words why it was made, sorted: "join", "return" (a node with a static name is back), "leave", "gone", "coordinator" (a
	// new one), "change" (resources, what operators ask for, or what nodes may take).
	Causes []string
	// Moves are the resources that change their node, at most 100; Moved is how many there are.
	Moves []Move
	Moved int
	// Pending is how many further moves wait until others have ended (MaxMoving, MaxMovingPerNode).
	Pending int
	// Took is the time from the plan to the last entry in the store.
	Took time.Duration
}

// Move is one resource that a plan gives to another node.
type Move struct {
	Resource string
	// From and To are nodes; "" for nobody.
	From, To string
	// Reason says in one word why: "new" (nobody had it), "balance", "leave", "gone", "drained", "declined" (its node could not open
	// it), "asked" (an operator moved or pinned it), "ineligible" (its node lacks a label, or does not list it), "standby" (its node is not
	// active any more), "paused", "removed", "unplaceable" (no live node may take it).
	Reason string
}

// Share is what a node learns of its share (KindAssigned).
type Share struct {
	// Epoch and Generation are those of the plan.
	Epoch, Generation int64
	// Causes are those of the plan (see Plan); none when a coordinator of an older version made it.
	Causes []string
	// Gained are the resources that the node is to claim, Lost those that it holds and is to give back.
	Gained, Lost []string
}

func planOf(r *coord.PlanReport) *Plan {
	if r == nil {
		return nil
	}
	p := &Plan{Epoch: r.Epoch, Generation: r.Generation, Causes: words(r.Causes), Moved: r.Moved, Pending: r.Pending, Took: time.Duration(r.Took)}
	for _, m := range r.Moves {
		p.Moves = append(p.Moves, Move{Resource: m.Resource, From: m.From, To: m.To, Reason: string(m.Reason)})
	}
	return p
}

func shareOf(r *coord.ShareReport) *Share {
	if r == nil {
		return nil
	}
	return &Share{Epoch: r.Epoch, Generation: r.Generation, Causes: words(r.Causes), Gained: r.Gained, Lost: r.Lost}
}

func words(causes []coord.Cause) []string {
	out := make([]string, len(causes))
	for i, c := range causes {
		out[i] = string(c)
	}
	return out
}

const (
	maxLoggedMoves = 20
	maxLoggedName  = 100 // bytes
)

// String says in one line what moves where and why; of many moves the first 20.
func (p *Plan) String() string {
	var b strings.Builder
	for i, m := range p.Moves {
		if i == maxLoggedMoves {
			break
		}
		if i > 0 {
			b.WriteString("; ")
		}
		fmt.Fprintf(&b, "%s: %s → %s (%s)", shorten(m.Resource, maxLoggedName), nobody(m.From), nobody(m.To), m.Reason)
	}
	if more := p.Moved - min(len(p.Moves), maxLoggedMoves); more > 0 {
		fmt.Fprintf(&b, "; and %d more", more)
	}
	return b.String()
}

func nobody(node string) string {
	if node == "" {
		return "nobody"
	}
	return node
}

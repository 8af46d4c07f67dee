// Package assign decides which node of a group should hold which resource. It is one pure function over indexes: no
// I/O, clock, randomness or map, so the same input gives the same plan, byte for byte, on every machine.
//
// # Guarantee
//
// [Plan] minimises, in this order:
//
//  1. Priority. Nodes of the highest priority hold as many resources as their Allowed and Max permit, then those of the next,
//     and so on. In particular nothing that can be placed stays unplaced.
//  2. Balance among nodes of equal priority. No chain of moves (a resource from one node to a second, another one from there to a
//     third, …) leads from a node to one of the same priority, below its Max, that holds fewer by two or more. So where Allowed and
//     Max permit, counts differ by one at most. What weights change is said at [Node].
//  3. Moves: the resources with a present owner in Nodes that the plan does not leave with it. Resources without one count nothing.
//
// All three are exact, with whatever mix of Priority, Max, Weight, Allowed and Owner. (The balanced ways to count form an integral
// base polyhedron in each priority, and the fewest moves for given counts an M-convex function over it, so where no single
// chain betters a plan, nothing does. Package tests check it against all plans of small problems, and by a certificate at larger ones.)
//
// It follows that planning again with the plan as Owner changes nothing; that a node that joins takes from the fullest; and that
// what a leaving node held goes to the emptiest, while nothing else moves more than balance asks for.
//
// # Cost
//
// Where every node may take everything: time in proportion to the resources, and N log N for the nodes; one slice of int32 for the
// plan and at most two more. Otherwise a bit for each pair of a resource and a node, and searches among the nodes, one for
// many moves where those are alike: for 24,104 resources on 100 nodes about a millisecond, for 100,000 on 1,000 about 25, ten times
// that when one node takes over everything. The worst inputs found take a quarter of a second and seven seconds: half of all
// resources misplaced, each at home on two nodes only, so that chains are long. By load a tenth of a second at 100,000 on 1,000, and
// most of a second where loads differ by orders of magnitude and a node joins.
//
// # Ties
//
// Among plans that are equal in all three, the choice is fixed. Where no node has an Allowed: the odd resource stays with a node that
// already has it, first where it was before what came Late, else goes to the lowest index; what a node gives up are its last
// resources; and what has no owner is dealt in turns, so that neighbours are spread over the nodes, the first to the lowest
// index of those that are to get the most. Where some node has an Allowed the choice means nothing.
package assign

// Node is what a plan needs to know of a node. Its zero value may take anything, with the share of one.
type Node struct {
	// Priority: nodes of a higher one are filled first.
	Priority int
	// Weight is the node's share among nodes of its priority; less than 1 counts as 1, and more than MaxWeight as MaxWeight.
	//
	// Every node ends within one of its fair share, whatever the mix of weights, priorities, Max and Allowed. Fair shares are how the
	// resources of a priority would be divided if they could be cut: per weight, whoever has least has as much as Allowed and
	// Max permit, then whoever has second least, and so on. Where every node may take everything that is the part by weight of what
	// nodes of the priority hold, less what those hold whose Max is below their own part. (Exact while
	// the weights of a priority add up to less than 2^30.)
	Weight int
	// Late is how many of what the node holds came to it only because another node is gone. Of nodes that could all keep one resource
	// more than others, those keep it first that had as many without these. Less than 1: none.
	Late int
	// Max is the most resources that the node may hold; less than 1: no limit.
	Max int
	// Allowed is a bit set over the indexes of the resources that the node may take: resource i is bit i%64 of word i/64. Bits that
	// are missing at its end are not set; nil: all resources.
	Allowed []uint64
	// Prefer is a set like Allowed of the resources that should be here rather than on another node of its priority; nil: none. A
	// resource moves for it only if it moves anyway or had no owner, and only in exchange for another such one (with the same load), so
	// balance and moves stay what they are. Exchanges of two are made until none helps; longer rings are not looked for, and of
	// those that a resource could change places with at most 128 are tried.
	Prefer []uint64
}

// MaxWeight is the greatest weight that makes a difference.
const MaxWeight = 1 << 20

// Problem is the input of Plan. Plan changes nothing in it and keeps nothing of it.
type Problem struct {
	// Nodes in an order of the caller's, which decides ties: see Ties.
	Nodes []Node
	// Resources is how many there are; their order too decides ties. Less than 1: none.
	Resources int
	// Owner is the present owner of each resource as an index into Nodes. Anything out of range, and what is missing at its
	// end, is nobody; nil: nobody owns anything.
	Owner []int32
	// Load is the weight of each resource: nodes are then balanced by the sum of what they hold, in place of how many that
	// is. What is missing at its end, and less than 1, counts as 1, more than MaxWeight as MaxWeight; nil, or all the same: by number.
	//
	// Priority, Max and Allowed count as before. What has no owner is placed the heaviest first, each where the load for the weight is least.
	// Then resources move, or two change places, only where that lowers the greater of two nodes' loads for their weights by more than
	// a tenth of what a node of the priority holds on average: a band in parts of the mean, since what a move costs does
	// not fall with the load, and one very heavy resource would make a band in parts of the heaviest meaningless. When planning is over no move
	// and no exchange would do that. This is a search from where the resources are: neither the best balance of all nor the fewest moves.
	// (Where Allowed refuses the 64 nearest in weight, others are not tried.)
	Load []int32
}

// Nobody stands in a plan for a resource that no node may take.
const Nobody int32 = -1

// Plan returns for each resource the index of the node that should hold it, or Nobody (-1) where no node may take it or all
// that may are at their Max.
func Plan(p Problem) []int32 {
	plan := make([]int32, max(p.Resources, 0))
	for r := range plan {
		plan[r] = p.owner(r)
	}
	if len(plan) == 0 || len(p.Nodes) == 0 {
		return plan
	}
	switch {
	case p.Load != nil && p.byLoad():
		planLoad(p, plan)
		return plan
	case p.uniform():
		planUniform(p, plan)
	default:
		planFlow(p, plan)
	}
	prefer(&p, plan)
	return plan
}

// owner is the present owner of r, or Nobody.
func (p *Problem) owner(r int) int32 {
	if r >= len(p.Owner) || p.Owner[r] < 0 || int(p.Owner[r]) >= len(p.Nodes) {
		return Nobody
	}
	return p.Owner[r]
}

// uniform says whether every node may take every resource.
func (p *Problem) uniform() bool {
	for i := range p.Nodes {
		if !p.Nodes[i].mayTakeAll(p.Resources) {
			return false
		}
	}
	return true
}

func (n *Node) mayTakeAll(resources int) bool {
	if n.Allowed == nil {
		return true
	}
	full, rest := resources/64, resources%64
	if len(n.Allowed) < full || rest > 0 && len(n.Allowed) == full {
		return false
	}
	for _, w := range n.Allowed[:full] {
		if w != ^uint64(0) {
			return false
		}
	}
	return rest == 0 || n.Allowed[full]|^uint64(0)<<rest == ^uint64(0)
}

// limit is the most that the node may hold of so many resources.
func (n *Node) limit(resources int) int32 {
	if n.Max < 1 {
		return int32(resources)
	}
	return int32(min(n.Max, resources))
}

// weight is the node's weight within its bounds.
func (n *Node) weight() int64 { return int64(min(max(n.Weight, 1), MaxWeight)) }

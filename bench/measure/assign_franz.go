package measure

import (
	"fmt"
	"io"
	"runtime"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/rebalancer-go/rebalancer/coord/assign"
)

// franzTopic holds all resources as its partitions: names are mapped to indexes already, on both sides.
const franzTopic = "t"

// FranzSticky makes one plan with the sticky balancer of franz-go, and returns how to make it and how to read it. Only the
// call between them is to be measured: members' metadata are encoded and parsed before. All nodes must be alike.
func FranzSticky(p assign.Problem) (balance func() error, read func() []int32, err error) {
	held := make([][]int32, len(p.Nodes))
	for r, o := range p.Owner {
		if o >= 0 {
			held[o] = append(held[o], int32(r))
		}
	}
	sticky := kgo.StickyBalancer()
	members := make([]kmsg.JoinGroupResponseMember, len(p.Nodes))
	index := make(map[string]int32, len(p.Nodes))
	for i := range members {
		members[i] = kmsg.NewJoinGroupResponseMember()
		members[i].MemberID = fmt.Sprintf("node-%04d", i)
		index[members[i].MemberID] = int32(i)
		var current map[string][]int32
		if len(held[i]) > 0 {
			current = map[string][]int32{franzTopic: held[i]}
		}
		members[i].ProtocolMetadata = sticky.JoinGroupMetadata([]string{franzTopic}, current, 1)
	}
	b, _, err := sticky.MemberBalancer(members)
	if err != nil {
		return nil, nil, err
	}
	balancer, ok := b.(kgo.GroupMemberBalancerOrError)
	if !ok {
		return nil, nil, fmt.Errorf("the sticky balancer of franz-go is a %T", b)
	}
	var into kgo.IntoSyncAssignment
	balance = func() (err error) {
		into, err = balancer.BalanceOrError(map[string]int32{franzTopic: int32(p.Resources)})
		return err
	}
	read = func() []int32 {
		plan := make([]int32, p.Resources)
		for r := range plan {
			plan[r] = assign.Nobody
		}
		if franz, ok := into.(*kgo.BalancePlan); ok {
			for member, topics := range franz.AsMemberIDMap() { // into a slice
				for _, r := range topics[franzTopic] {
					plan[r] = index[member]
				}
			}
		}
		return plan
	}
	return balance, read, nil
}

// AssignCost is what one plan takes here and in franz-go, in turns in the same process.
type AssignCost struct {
	Resources, Nodes        int
	Change                  string
	Time, FranzTime         time.Duration // the median
	Bytes, FranzBytes       uint64
	Allocs, FranzAllocs     uint64
	Moves, FranzMoves       int
	Unplaced, FranzUnplaced int
}

// Assign compares both for a fresh group, without changes, after a leave and after a join.
func Assign(resources, nodes, rounds int) ([]AssignCost, error) {
	var out []AssignCost
	for _, c := range changes(Planner{Plan: assign.Plan}, resources, nodes) {
		cost := AssignCost{Resources: resources, Nodes: len(c.problem.Nodes), Change: c.name}
		var ours, theirs []float64
		var plan []int32
		for range rounds {
			balance, read, err := FranzSticky(c.problem)
			if err != nil {
				return nil, err
			}
			var t time.Duration
			t, cost.Bytes, cost.Allocs, _ = once(func() error { plan = assign.Plan(c.problem); return nil })
			ours = append(ours, float64(t))
			t, cost.FranzBytes, cost.FranzAllocs, err = once(balance)
			if err != nil {
				return nil, err
			}
			theirs = append(theirs, float64(t))
			cost.Moves, cost.Unplaced = moves(c.problem, plan)
			cost.FranzMoves, cost.FranzUnplaced = moves(c.problem, read())
		}
		cost.Time, cost.FranzTime = time.Duration(median(ours)), time.Duration(median(theirs))
		out = append(out, cost)
	}
	return out, nil
}

// once measures one call, with nothing left to collect.
func once(do func() error) (took time.Duration, bytes, allocs uint64, err error) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	began := time.Now()
	err = do()
	took = time.Since(began)
	runtime.ReadMemStats(&after)
	return took, after.TotalAlloc - before.TotalAlloc, after.Mallocs - before.Mallocs, err
}

// moves counts resources that leave an owner which is there, and those without a place.
func moves(p assign.Problem, plan []int32) (moved, unplaced int) {
	for r, o := range plan {
		switch {
		case o == assign.Nobody:
			unplaced++
		case r < len(p.Owner) && p.Owner[r] >= 0 && p.Owner[r] != o:
			moved++
		}
	}
	return moved, unplaced
}

// AssignSizes are the inputs of the table: resources and nodes.
func AssignSizes() [][2]int { return [][2]int{{24104, 100}, {100000, 1000}} }

// AssignTable writes the comparison in Markdown. Ratios below 1 are for this project.
func AssignTable(w io.Writer, rounds int) error {
	fmt.Fprintln(w, "coord/assign beside the sticky balancer of franz-go (one topic; only BalanceOrError): median time, memory and moves of one plan.")
	fmt.Fprintln(w, "\n| resources × nodes | change | time | franz-go | ratio | kB | franz-go | ratio | moves | franz-go |\n|---|---|---|---|---|---|---|---|---|---|")
	for _, size := range AssignSizes() {
		costs, err := Assign(size[0], size[1], rounds)
		if err != nil {
			return err
		}
		for _, c := range costs {
			fmt.Fprintf(w, "| %d × %d | %s | %v | %v | %.3f | %d | %d | %.3f | %d | %d |\n", c.Resources, c.Nodes, c.Change,
				c.Time.Round(time.Microsecond), c.FranzTime.Round(time.Microsecond), float64(c.Time)/float64(c.FranzTime),
				c.Bytes/1000, c.FranzBytes/1000, float64(c.Bytes)/float64(c.FranzBytes), c.Moves, c.FranzMoves)
		}
	}
	return nil
}

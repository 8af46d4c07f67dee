package measure

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/rebalancer-go/rebalancer/coord/assign"
)

func TestAssignTable(t *testing.T) {
	var b strings.Builder
	if err := AssignTable(&b, 5); err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + b.String())
}

// Never more moves than franz-go, and never more memory. Times are for the benchmark.
func TestAssignIsNoWorseThanFranz(t *testing.T) {
	for _, size := range append(AssignSizes(), [2]int{7, 3}, [2]int{1000, 33}) {
		costs, err := Assign(size[0], size[1], 1)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range costs {
			if c.Moves > c.FranzMoves || c.Bytes > c.FranzBytes || c.Unplaced > 0 || c.FranzUnplaced > 0 {
				t.Errorf("%+v", c)
			}
		}
	}
}

// Owners in any disorder: never more moves than franz-go, which balances as well.
func TestAssignMovesNoMoreThanFranz(t *testing.T) {
	for seed := range uint64(1000) {
		rng := rand.New(rand.NewPCG(seed, 1))
		p := assign.Problem{Nodes: make([]assign.Node, 1+rng.IntN(20)), Resources: 1 + rng.IntN(200)}
		p.Owner = make([]int32, p.Resources)
		skew := 1 + rng.IntN(len(p.Nodes))
		for r := range p.Owner {
			p.Owner[r] = int32(rng.IntN(skew+1)) - int32(rng.IntN(2))
		}
		for r, o := range p.Owner {
			p.Owner[r] = min(o, int32(len(p.Nodes)-1))
		}
		balance, read, err := FranzSticky(p)
		if err != nil {
			t.Fatal(err)
		}
		if err := balance(); err != nil {
			t.Fatal(err)
		}
		plan, franz := assign.Plan(p), read()
		ours, unplaced := moves(p, plan)
		theirs, left := moves(p, franz)
		if ours > theirs || unplaced > 0 || left > 0 || !slices.Equal(spread(p, plan), spread(p, franz)) {
			t.Fatalf("seed %d (of 1000, from 0): %d moves and counts %v, franz-go %d and %v", seed, ours, spread(p, plan), theirs, spread(p, franz))
		}
	}
}

// spread are the sorted numbers of resources of the nodes.
func spread(p assign.Problem, plan []int32) []int {
	counts := make([]int, len(p.Nodes))
	for _, o := range plan {
		if o >= 0 {
			counts[o]++
		}
	}
	slices.Sort(counts)
	return counts
}

func BenchmarkAssign(b *testing.B) {
	for _, size := range AssignSizes() {
		for _, c := range changes(Planner{Plan: assign.Plan}, size[0], size[1]) {
			name := fmt.Sprintf("%dx%d/%s", size[0], size[1], strings.ReplaceAll(c.name, " ", "-"))
			b.Run(name+"/assign", func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					assign.Plan(c.problem)
				}
			})
			b.Run(name+"/franz-go", func(b *testing.B) {
				b.ReportAllocs()
				for range b.N {
					b.StopTimer()
					balance, _, err := FranzSticky(c.problem)
					if err != nil {
						b.Fatal(err)
					}
					b.StartTimer()
					if err := balance(); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

package assign

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// Preferences change neither counts nor what stays, and are followed where they can be.
func TestPrefer(t *testing.T) {
	t.Parallel()
	p := Problem{Nodes: []Node{{Prefer: []uint64{0b0011}}, {Prefer: []uint64{0b1100}}}, Resources: 4}
	if plan := Plan(p); !slices.Equal(plan, []int32{0, 0, 1, 1}) {
		t.Errorf("%v", plan)
	}
	p.Owner = []int32{1, 1, 0, 0}
	if plan := Plan(p); !slices.Equal(plan, p.Owner) {
		t.Errorf("sticky first: %v", plan)
	}
	for seed := range uint64(2000) {
		rng := rand.New(rand.NewPCG(seed, 9))
		p := randomProblem(rng, 1+rng.IntN(30), false)
		with := Plan(p)
		valid(t, seed, p, with)
		plain := p
		plain.Nodes = slices.Clone(p.Nodes)
		for i := range plain.Nodes {
			plain.Nodes[i].Prefer = nil
		}
		without := Plan(plain)
		a, b := make([]int, len(p.Nodes)+1), make([]int, len(p.Nodes)+1)
		for r := range with {
			a[with[r]+1]++
			b[without[r]+1]++
			if p.owner(r) != Nobody && without[r] == p.owner(r) && with[r] != without[r] {
				t.Fatalf("seed %d: resource %d moves for a preference", seed, r)
			}
		}
		if better := exchangeLeft(p, with); better != "" {
			t.Fatalf("seed %d: %v: %s", seed, with, better)
		}
		if !slices.Equal(a, b) {
			t.Fatalf("seed %d: counts %v with preferences, %v without", seed, a, b)
		}
	}
}

// exchangeLeft looks for an exchange that puts more resources where they are preferred, of two that move anyway.
func exchangeLeft(p Problem, plan []int32) string {
	happy := func(r int, o int32) int {
		if has(p.Nodes[o].Prefer, r) {
			return 1
		}
		return 0
	}
	for r, a := range plan {
		for s, b := range plan[:r] {
			if a == b || a == Nobody || b == Nobody || p.owner(r) == a || p.owner(s) == b || p.load(r) != p.load(s) ||
				p.Nodes[a].Priority != p.Nodes[b].Priority || !p.Nodes[b].may(r) || !p.Nodes[a].may(s) {
				continue
			}
			if happy(r, b)+happy(s, a) > happy(r, a)+happy(s, b) {
				return fmt.Sprintf("%d at %d and %d at %d could change places", r, a, s, b)
			}
		}
	}
	return ""
}

// Each zone prefers its third of the resources, of which the first zone has no nodes.
func BenchmarkPrefer(b *testing.B) {
	for _, size := range []struct{ resources, nodes int }{{24104, 100}, {100000, 1000}} {
		p := Problem{Nodes: make([]Node, size.nodes+1), Resources: size.resources}
		for i := range p.Nodes {
			p.Nodes[i].Prefer = make([]uint64, (size.resources+63)/64)
			for r := range size.resources {
				if r%3 == 1+i%2 {
					p.Nodes[i].Prefer[r/64] |= 1 << (r % 64)
				}
			}
		}
		for _, c := range changes() {
			b.Run(fmt.Sprintf("%dx%d/%s", size.resources, size.nodes, c.name), func(b *testing.B) {
				changed := c.make(p)
				b.ReportAllocs()
				for b.Loop() {
					Plan(changed)
				}
			})
		}
	}
}

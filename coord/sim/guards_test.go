package sim

import (
	"flag"
	"os"
	"testing"

	"github.com/rebalancer-go/rebalancer/coord"
)

var writeFlag = flag.Bool("write", false, "write GUARDS.md anew")

// TestGuards removes each guard: what the table says must break. With all guards the same world passes.
func TestGuards(t *testing.T) {
	t.Parallel()
	for _, g := range Table() {
		t.Run(g.Name, func(t *testing.T) {
			t.Parallel()
			v, err := g.Shown()
			switch {
			case err != nil:
				t.Error(err)
			case v == nil:
				t.Errorf("removed, and nothing broke: want one of %v by %s", g.Breaks, g.Engine)
			default:
				t.Logf("shown: %v", v)
			}
		})
	}
}

// TestGuardsListed: every guard is in the table, once.
func TestGuardsListed(t *testing.T) {
	t.Parallel()
	var machine coord.Guards
	var store StoreGuards
	for _, g := range Table() {
		if machine&g.Machine != 0 || store&g.Store != 0 {
			t.Errorf("%s: listed twice", g.Name)
		}
		machine |= g.Machine
		store |= g.Store
	}
	for g := coord.Guards(1); g <= coord.GuardElders; g <<= 1 {
		if machine&g == 0 {
			t.Errorf("guard %#x of the machine is not in the table", uint64(g))
		}
	}
	for g := StoreGuards(1); g < storeGuardEnd; g <<= 1 {
		if store&g == 0 {
			t.Errorf("guard %#x of the store is not in the table", uint16(g))
		}
	}
}

// TestGuardsFile: GUARDS.md is the table.
func TestGuardsFile(t *testing.T) {
	t.Parallel()
	if *writeFlag {
		if err := os.WriteFile("GUARDS.md", []byte(Markdown()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile("GUARDS.md")
	if err != nil || string(b) != Markdown() {
		t.Errorf("GUARDS.md is not the table (%v): go test ./coord/sim -run TestGuardsFile -write", err)
	}
}

//go:build linux

package stores

import (
	"fmt"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/admin"
	"github.com/rebalancer-go/rebalancer/group"
	"github.com/rebalancer-go/rebalancer/internal/waittest"
)

func names(n int) []string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("r%03d", i))
	}
	return all
}

func TestScenarios(t *testing.T) {
	t.Parallel()
	shared(t, map[string]scenario{
		"nodes come and go": nodesComeAndGo, "resources come and go": resourcesComeAndGo, "single active node": singleActiveNode,
	})
}

// The scenarios of the original: all on one node, shares as nodes come and go, a spare node.
func nodesComeAndGo(t *testing.T, sys *system, global bool) {
	f, six := newFleet(t, sys, global), group.Static(names(6)...)
	f.start("a", six)
	f.shares("one node has all", 6)
	f.start("b", six)
	f.start("c", six)
	f.shares("three nodes", 2, 2, 2)
	f.stop("b")
	f.shares("one left", 3, 3)
	f.stop("a")
	f.shares("another left", 6)
	for i, want := range [][]int{{3, 3}, {2, 2, 2}, {1, 1, 2, 2}, {1, 1, 1, 1, 2}, {1, 1, 1, 1, 1, 1}} {
		f.start(fmt.Sprintf("n%d", i), six)
		f.shares("one joined", want...)
	}
	f.spare(six)
}

// spare: there are as many nodes as resources. One more changes nothing, neither when it comes nor when it goes; the loss of an owner does.
func (f *fleet) spare(six group.Resources) {
	f.t.Helper()
	before := f.ledger.works()
	spare := f.start("spare", six)
	f.until("the spare node is a member", time.Minute, func() bool { s := spare.Status(); return s.Applied && s.State == group.StateActive })
	f.shares("with a spare node", 0, 1, 1, 1, 1, 1, 1)
	f.same(before, "a spare node came")
	f.stop("spare")
	f.same(before, "a spare node left")
	f.start("spare2", six)
	f.stop("n0")
	f.shares("an owner left, the spare node took over", 1, 1, 1, 1, 1, 1)
}

// same checks that nothing was given to somebody else. Under the global barrier everybody stops for a change, but keeps what it has.
func (f *fleet) same(before map[string]entry, what string) {
	f.t.Helper()
	for r, o := range f.ledger.works() {
		if b := before[r]; o.node != b.node || !f.global && o.fence != b.fence {
			f.t.Errorf("%s, and resource %s went from %s (fence %d) to %s (fence %d)", what, r, b.node, b.fence, o.node, o.fence)
		}
	}
}

// Registered resources come and go.
func resourcesComeAndGo(t *testing.T, sys *system, global bool) {
	f := newFleet(t, sys, global)
	operator := sys.open(t, sys.addr)
	defer operator.Close()
	change := func(f func() ([]string, error)) {
		t.Helper()
		if _, err := f(); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"a", "b"} {
		n := f.start(name, group.Registered())
		f.until(name+" is a member", time.Minute, func() bool { return n.Status().Applied })
	}
	for _, n := range []int{4, 7, 20} {
		change(func() ([]string, error) { return admin.AddResources(t.Context(), operator, sys.group, names(n)...) })
		f.shares("resources were added", n/2, n-n/2)
	}
	change(func() ([]string, error) {
		return admin.RemoveResources(t.Context(), operator, sys.group, names(20)[:15]...)
	})
	f.shares("resources were removed", 2, 3)
	change(func() ([]string, error) { return admin.Pause(t.Context(), operator, sys.group, false, names(20)[15]) })
	f.shares("one is paused", 2, 2)
	change(func() ([]string, error) { return admin.Resume(t.Context(), operator, sys.group, names(20)[15]) })
	f.shares("it goes on", 2, 3)
	waittest.Until(t, "what was removed is given back, and five resources of two nodes are described", func() bool {
		d, err := admin.Describe(t.Context(), operator, sys.group)
		return err == nil && len(d.Nodes) == 2 && len(d.Resources) == 5
	})
}

// A single active node, by priority, and its backup.
func singleActiveNode(t *testing.T, sys *system, global bool) {
	f, three := newFleet(t, sys, global), group.Static(names(3)...)
	f.setup = func(c *group.Config) {
		c.MaxActive = 1
		c.Priority = map[string]int{"first": 2, "second": 1}[c.Node]
	}
	f.start("first", three)
	f.shares("alone", 3)
	f.start("second", three)
	f.start("third", three)
	f.shares("with backups", 0, 0, 3)
	f.until("both backups are there", time.Minute, func() bool { return f.nodes["second"].Status().Applied && f.nodes["third"].Status().Applied })
	f.stop("first")
	f.shares("the first left", 0, 3)
	if counts := f.ledger.counts(); counts["second"] != 3 {
		t.Errorf("the backup of the higher priority does not work: %v", counts)
	}
	f.start("first", three)
	f.until("the first is back as a backup", time.Minute, func() bool { return f.nodes["first"].Status().Applied })
	f.shares("no fail-back", 0, 0, 3)
	if counts := f.ledger.counts(); counts["second"] != 3 {
		t.Errorf("fail-back although nobody asked for it: %v", counts)
	}
}

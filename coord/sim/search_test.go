package sim

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/coord"
)

var (
	fullFlag  = flag.Bool("search.full", false, "do not cut searches off where CI does")
	fullLimit = flag.Int("search.states", 0, "with -search.full: cut them off after so many states; 0: never, which takes hours and gigabytes")
)

var two = []string{"a", "b"}

// scenarios are the small groups that are searched. Those with a Limit are cut off there in CI.
func scenarios() []Scenario {
	local, global := coord.ResourceBarrier, coord.GlobalBarrier
	return []Scenario{
		{Name: "join", Nodes: 2, Late: 1, Resources: two, Mode: local, Hints: true, Horizon: 10},
		{Name: "two at once", Nodes: 2, Late: 2, Resources: two, Mode: local, Hints: true, Horizon: 8},
		{Name: "leave, prompt", Nodes: 2, Resources: two, Mode: local, Hints: true, Prompt: true, Horizon: 2, Budget: Budget{Left: 1}},
		{Name: "join, a loss", Nodes: 2, Late: 1, Resources: two, Mode: local, Horizon: 10, Budget: Budget{Lost: 1}},
		{Name: "freeze", Nodes: 2, Resources: two, Mode: local, After: 16, Budget: Budget{Frozen: 1}},
		{Name: "rollback", Nodes: 2, Resources: two, Mode: local, After: 16, Budget: Budget{Rolled: 1}},
		{Name: "wipe", Nodes: 2, Resources: two, Mode: local, After: 16, Budget: Budget{Wiped: 1}},
		{Name: "join, global", Nodes: 2, Late: 1, Resources: two, Mode: global, Hints: true, Horizon: 10},
		{Name: "three, one leaves, prompt", Nodes: 3, Resources: two, Mode: local, Hints: true, Prompt: true, Horizon: 2, Budget: Budget{Left: 1}},
		{Name: "three, two leave, prompt", Nodes: 3, Resources: two, Mode: local, Hints: true, Prompt: true, Horizon: 2, Budget: Budget{Left: 2}, Limit: 15000},
		{Name: "two of one name", Nodes: 2, Late: 1, Twins: true, Resources: two[:1], Mode: local, Hints: true, Horizon: 10},
		{Name: "two of one name, freeze", Nodes: 2, Late: 1, Twins: true, Resources: two[:1], Mode: local, Horizon: 10, Budget: Budget{Frozen: 1}, Limit: 15000},
		{Name: "two of one name, a loss", Nodes: 2, Late: 1, Twins: true, Resources: two[:1], Mode: local, Horizon: 10, Budget: Budget{Lost: 1}},
		// The rest of what the specification is checked with: 2 × 2 with one fault in both modes and with two, 3 × 3 with one.
		{Name: "crash", Nodes: 2, Resources: two, Mode: local, After: 16, Budget: Budget{Crashed: 1}},
		{Name: "crash, global", Nodes: 2, Resources: two, Mode: global, After: 16, Budget: Budget{Crashed: 1}, Limit: 15000},
		{Name: "freeze, global", Nodes: 2, Resources: two, Mode: global, After: 16, Budget: Budget{Frozen: 1}, Limit: 15000},
		{Name: "leave, global", Nodes: 2, Resources: two, Mode: global, Hints: true, After: 16, Budget: Budget{Left: 1}, Limit: 15000},
		{Name: "crash and freeze", Nodes: 2, Resources: two, Mode: local, After: 16, Budget: Budget{Crashed: 1, Frozen: 1}, Limit: 15000},
		{Name: "three by three, a crash", Nodes: 3, Resources: []string{"a", "b", "c"}, Mode: local, After: 16, Budget: Budget{Crashed: 1}, Limit: 15000},
		{Name: "leave, rollback", Nodes: 2, Resources: two, Mode: local, Hints: true, Horizon: 2, After: 13, Budget: Budget{Left: 1, Rolled: 1}, Limit: 15000},
	}
}

// TestSearch looks at every state of small groups. Scenarios with a Limit are cut off there, depth first, and SEARCH.md says so: what
// they did not reach is not proved.
func TestSearch(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	results := map[string]Result{}
	t.Run("scenarios", func(t *testing.T) {
		for _, sc := range scenarios() {
			t.Run(sc.Name, func(t *testing.T) {
				t.Parallel()
				if *fullFlag && sc.Limit > 0 {
					sc.Limit = *fullLimit
				}
				begin := time.Now()
				r := Search(sc)
				t.Logf("%s: %v in %v", sc.Name, r, time.Since(begin).Round(time.Millisecond))
				if r.Violation != nil {
					t.Error("a promise is broken")
				}
				if !r.Complete && sc.Limit == 0 {
					t.Error("the search was cut off")
				}
				mu.Lock()
				defer mu.Unlock()
				results[sc.Name] = r
			})
		}
	})
	if len(results) == len(scenarios()) && !*fullFlag { // else only some were run
		checkSearchFile(t, results)
	}
}

// checkSearchFile compares SEARCH.md with what was found, but for the numbers, which change with the machine.
func checkSearchFile(t *testing.T, results map[string]Result) {
	t.Helper()
	table := searchTable(results)
	if *writeFlag {
		if err := os.WriteFile("SEARCH.md", []byte(table), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile("SEARCH.md")
	counts := regexp.MustCompile(`\| \d+ \|`)
	bare := func(s string) string { return counts.ReplaceAllString(s, "| n |") }
	if err != nil || bare(string(b)) != bare(table) {
		t.Errorf("SEARCH.md is not what was found (%v): go test ./coord/sim -run 'TestSearch$' -write\n%s", err, table)
	}
}

func searchTable(results map[string]Result) string {
	var b strings.Builder
	b.WriteString("# What the search covers\n\nWritten by `go test ./coord/sim -run 'TestSearch$' -write`; do not edit. Complete: every state that the scenario can reach " +
		"was looked at, and every end came to rest.\nStates that go on alike are one; canon.go says what that is taken to be. Cut off: only that many, depth first; what was not reached is not proved. `-search.full` goes on, for hours; `-search.full -search.states=N` up to N states.\n\n" +
		"| scenario | group | faults | states | result in CI |\n|---|---|---|---|---|\n")
	for _, sc := range scenarios() {
		r := results[sc.Name]
		done := "complete"
		if !r.Complete {
			done = "cut off"
		}
		fmt.Fprintf(&b, "| %s | %d nodes, %d resources, barrier: %s | %s | %d | %s |\n", sc.Name, sc.Nodes, len(sc.Resources), sc.Mode, sc.faults(), r.States, done)
	}
	return b.String()
}

func (sc *Scenario) faults() string {
	var what []string
	if sc.Twins {
		what = append(what, "two processes of one static name")
	}
	for _, f := range []struct {
		n    int
		name string
	}{{sc.Late, "joins"}, {sc.Budget.Lost, "requests or answers lost"}, {sc.Budget.Frozen, "freezes"}, {sc.Budget.Crashed, "crashes"}, {sc.Budget.Rolled, "rollbacks"},
		{sc.Budget.Wiped, "losses of all data"}, {sc.Budget.Left, "leaves"}} {
		if f.n > 0 {
			what = append(what, fmt.Sprintf("%s: %d", f.name, f.n))
		}
	}
	return strings.Join(what, ", ")
}

// TestSearchFinds: the search is not blind. Without a guard it finds what then breaks, though states that go on alike are one to it.
func TestSearchFinds(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		scenario string
		machine  coord.Guards
		store    StoreGuards
		want     []string
	}{
		{"join", coord.GuardStopFirst, 0, []string{release}},
		{"join", coord.GuardClaimFree, 0, []string{free}},
		{"freeze", coord.GuardTrust, 0, []string{overlap, covered}},
		{"leave, rollback", coord.GuardReread, 0, []string{covered, overlap}},
		{"leave, rollback", coord.GuardRenewIncarnation, 0, []string{covered, overlap}},
		{"wipe", coord.GuardGrace, 0, []string{overlap}},
		{"wipe", 0, StoreAbsentRecord, []string{covered, overlap}},
		{"two of one name", coord.GuardOwnSession, 0, []string{covered, fences, overlap}},
		{"two of one name", coord.GuardSupersededEnds, 0, []string{settles}},
		{"two of one name", 0, StoreSupersedeKeeps, []string{covered, overlap}},
	} {
		for _, sc := range scenarios() {
			if sc.Name != x.scenario {
				continue
			}
			t.Run(fmt.Sprintf("%s/%#x/%#x", x.scenario, uint64(x.machine), uint16(x.store)), func(t *testing.T) {
				t.Parallel()
				sc.Without, sc.Store = x.machine, x.store
				r := Search(sc)
				g := Guarded{Breaks: x.want}
				if r.Violation == nil || !g.expects(r.Violation) {
					t.Errorf("want one of %v, found %v", x.want, r)
				}
				t.Logf("%d states: %v", r.States, r.Violation)
			})
		}
	}
}

// Package spec has tests that hold the specification and the code together; TLC is not run by them, and nothing here says that it was.
package spec

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rebalancer-go/rebalancer/coord/sim"
	"github.com/rebalancer-go/rebalancer/coord/trace"
)

func text(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func find(s, pattern string) []string {
	var all []string
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(s, -1) {
		all = append(all, m[1])
	}
	return all
}

func set(all ...string) map[string]bool {
	m := map[string]bool{}
	for _, x := range all {
		m[x] = true
	}
	return m
}

// protocol are the names of coord's events and actions: the types with the methods that mark them.
func protocol(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	files, err := filepath.Glob("../coord/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Recv == nil || fn.Name.Name != "event" && fn.Name.Name != "action" {
				continue
			}
			if id, ok := fn.Recv.List[0].Type.(*ast.Ident); ok {
				names[id.Name] = true
			}
		}
	}
	return names
}

// base are the modules of the base specification.
var base = []string{"Group.tla", "Session.tla", "Follower.tla", "Coordinator.tla", "Rebalance.tla"}

// environment are steps of the base that no event or action of coord stands for: they happen to processes, requests and sessions.
var environment = set("Crash", "Freeze", "Thaw", "Lapse", "Expire", "LoseLeader", "LoseRequest")

// TestActionLists: the table in Group names each event and action of coord, each step of the base, and nothing that is neither.
func TestActionLists(t *testing.T) {
	t.Parallel()
	_, table, ok := strings.Cut(text(t, "Group.tla"), "stands for it:")
	table, _, end := strings.Cut(table, "*)")
	if !ok || !end {
		t.Fatal("Group.tla has no table of events and actions")
	}
	mentioned := set(find(table, `\b([A-Z][A-Za-z]+)\b`)...)
	var all string
	for _, file := range base {
		all += text(t, file)
	}
	defined := set(find(all, `(?m)^([A-Z][A-Za-z]+)(?:\([^)]*\))? *==`)...)
	_, next, _ := strings.Cut(text(t, "Rebalance.tla"), "NodeStep(n) ==")
	next, _, _ = strings.Cut(next, "Next  ==")
	steps := set(find(next, `\b([A-Z][A-Za-z]+)(?:\(|\b)`)...)
	maps.DeleteFunc(steps, func(s string, _ bool) bool {
		return !defined[s] || slices.Contains([]string{"N", "R", "NodeStep", "Arrival", "Untrusted", "Proto", "Env"}, s)
	})
	if len(steps) < 20 {
		t.Fatalf("only %d steps of the base were found", len(steps))
	}
	mentioned["Committed"] = mentioned["Committed"] || mentioned["Commit"] // the table has them by what is committed
	coord := protocol(t)
	for name := range coord {
		if !mentioned[name] {
			t.Errorf("coord.%s is in no row of the table in Group.tla: say which step stands for it, or that none does", name)
		}
	}
	for step := range steps {
		if !mentioned[step] && !environment[step] {
			t.Errorf("the step %s is in no row of the table in Group.tla: say which event or action of coord it stands for", step)
		}
	}
	for name := range mentioned {
		if !coord[name] && !defined[name] && name != "README" && name != "StaticNames" {
			t.Errorf("%s in the table in Group.tla is neither an event or action of coord nor a step", name)
		}
	}
}

// TestTraceSteps: the trace module knows exactly the steps that package trace makes, and Check those that the module knows.
func TestTraceSteps(t *testing.T) {
	t.Parallel()
	_, do, _ := strings.Cut(text(t, "trace/Trace.tla"), "\nDo(x) ==")
	do, _, _ = strings.Cut(do, "OTHER")
	known := set(find(do, `"([A-Z][A-Za-z]+)"`)...)
	made := map[string]bool{}
	for _, s := range trace.Steps() {
		made[string(s)] = true
	}
	for s := range made {
		if !known[s] {
			t.Errorf("Trace.tla does not know the step %s that package trace makes", s)
		}
	}
	for s := range known {
		if !made[s] {
			t.Errorf("package trace does not make the step %s of Trace.tla", s)
		}
	}
}

// here are guards of the code that the specification has under another name, or not at all, and why.
var here = map[string]string{
	"store: claim grace":          "grace: the specification does not tell who checks it",
	"store: renewal compares":     "renew incarnation: a renewal without an incarnation and a store that does not compare are one there",
	"store: commit of the living": "a request is applied only while its session lives; in the code the epoch covers it",
	"store: atomic checks":        "a step of the specification is atomic",
	"reserved ends":               "reserved shares are not in the specification",
}

// there are rules that only the specification removes.
var there = map[string]string{
	"close after work": "the code removes it with \"stop first\"",
	"stop before ack":  "in the code the same condition as \"barrier acks\"",
	"grace outlasts":   "an assumption of Forgets that Clocks shows",
	"strangers":        "in the code a part of \"elders\"",
}

// TestGuards: TLC removes the guards that the simulation removes, under the same names, and each of them is one in some module.
func TestGuards(t *testing.T) {
	t.Parallel()
	var modules string
	files, err := filepath.Glob("*.tla")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		modules += text(t, file)
	}
	guards := map[string]bool{}
	for _, name := range find(modules, `G\("([^"]+)"\)`) {
		guards[bare(name)] = true
	}
	mutants := map[string]bool{}
	for _, off := range find(text(t, "checks/mutants.txt"), `Off=\{([^}]*)\}`) {
		for _, name := range find(off, `"([^"]+)"`) {
			mutants[bare(strings.ReplaceAll(name, "_", " "))] = true
		}
	}
	code := map[string]bool{}
	for _, g := range sim.Table() {
		code[bare(g.Name)] = true
		if mutants[bare(g.Name)] == (here[g.Name] != "") {
			t.Errorf("guard %q of coord/sim/GUARDS.md must be removed in checks/mutants.txt, or be explained in this test, and not both", g.Name)
		}
	}
	for name := range here {
		if !code[bare(name)] {
			t.Errorf("%q is explained here and is no guard of coord/sim/GUARDS.md", name)
		}
	}
	for name := range mutants {
		if !guards[name] {
			t.Errorf("checks/mutants.txt removes %q, which no module has as G(%q): nothing would be removed", name, name)
		}
		if code[name] == (there[name] != "") {
			t.Errorf("checks/mutants.txt removes %q: it must be a guard of coord/sim/GUARDS.md, or be explained in this test, and not both", name)
		}
	}
	for name := range guards {
		if !mutants[name] && !explained(name) {
			t.Errorf("a module has G(%q), and no row of checks/mutants.txt removes it", name)
		}
	}
}

// bare is a guard's name without the mark of those of the store, which one module may do for both sides.
func bare(name string) string { return strings.TrimPrefix(name, "store: ") }

func explained(name string) bool { return here[name] != "" || here["store: "+name] != "" }

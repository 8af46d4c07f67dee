package arch

import (
	"go/ast"
	"slices"
	"strings"
)

// checkClock finds readings of the clock and sleeps where time comes in as an argument.
func checkClock(m *module) []string {
	var bad []string
	for _, p := range m.pkgs {
		if p.dir != "." && !p.below("coord") && p.dir != "backends" && p.dir != "sources" {
			continue
		}
		for _, f := range p.code() {
			f.calls(func(call *ast.CallExpr, pkg, fn string) {
				if pkg == "time" && slices.Contains([]string{"After", "AfterFunc", "NewTicker", "NewTimer", "Now", "Since", "Sleep", "Tick", "Until"}, fn) {
					bad = append(bad, m.at(call, "time.%s: this package takes the time as an argument", fn))
				}
			})
		}
	}
	return bad
}

// checkSleep finds sleeps in tests that wait for something to have happened. A sleep is fine in virtual time, where it is exact, and
// between two looks at a condition in a loop; one that is something else, such as the work of a process that is to be killed, says so on
// its line.
func checkSleep(m *module) []string {
	var bad []string
	for _, p := range m.pkgs {
		bubbles := slices.ContainsFunc(p.files, virtual)
		for _, f := range p.files {
			if !f.test && !strings.HasSuffix(p.dir, "test") || virtual(f) {
				continue
			}
			fine := loopsOf(f.ast)
			if bubbles { // the package may have a helper that makes a bubble around a function, and fakes that work in it
				fine = append(fine, bubbledIn(f.ast)...)
			}
			f.calls(func(call *ast.CallExpr, pkg, fn string) {
				inside := slices.ContainsFunc(fine, func(n ast.Node) bool { return n.Pos() <= call.Pos() && call.End() <= n.End() })
				if pkg == "time" && fn == "Sleep" && !inside && !m.explained(f, call) {
					bad = append(bad, m.at(call, "time.Sleep in a test: look at a condition in a loop with a deadline, or use testing/synctest"))
				}
			})
		}
	}
	return bad
}

// explained tells whether a comment follows on the line.
func (m *module) explained(f *file, n ast.Node) bool {
	line := m.fset.Position(n.End()).Line
	return slices.ContainsFunc(f.ast.Comments, func(c *ast.CommentGroup) bool {
		return c.Pos() > n.End() && m.fset.Position(c.Pos()).Line == line
	})
}

func virtual(f *file) bool { return slices.Contains(f.imports(), "testing/synctest") }

func loopsOf(root ast.Node) []ast.Node {
	var loops []ast.Node
	ast.Inspect(root, func(n ast.Node) bool {
		if l, ok := n.(*ast.ForStmt); ok {
			loops = append(loops, l)
		}
		return true
	})
	return loops
}

// bubbledIn are the functions written down as arguments of calls, and the methods.
func bubbledIn(root ast.Node) []ast.Node {
	var fns []ast.Node
	ast.Inspect(root, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			for _, a := range n.Args {
				if fn, ok := a.(*ast.FuncLit); ok {
					fns = append(fns, fn)
				}
			}
		case *ast.FuncDecl:
			if n.Recv != nil {
				fns = append(fns, n)
			}
		}
		return true
	})
	return fns
}

// checkSkip finds tests that skip whatever REBAL_REQUIRE says. The suite of stores skips what a driver declares impossible, and
// checks the declaration.
func checkSkip(m *module) []string {
	var bad []string
	for _, p := range m.pkgs {
		for _, f := range p.files {
			if strings.Contains(f.src, "REBAL_REQUIRE") || f.name == "backends/storetest/storetest.go" || p.below("internal/arch") {
				continue
			}
			ast.Inspect(f.ast, func(n ast.Node) bool {
				sel, ok := n.(*ast.SelectorExpr)
				if ok && slices.Contains([]string{"Skip", "SkipNow", "Skipf"}, sel.Sel.Name) && slices.Contains(f.imports(), "testing") {
					bad = append(bad, m.at(sel, "%s: a test that cannot run must fail when REBAL_REQUIRE names what it lacks", sel.Sel.Name))
				}
				return true
			})
		}
	}
	return bad
}

// checkGuards finds code outside the protocol's own tests that takes a guard of the protocol away.
func checkGuards(m *module) []string {
	var bad []string
	for _, p := range m.pkgs {
		if p.below("coord") {
			continue // the machine reads the field, the simulation sets it
		}
		for _, f := range p.code() {
			if !slices.Contains(f.imports(), modulePath+"/coord") {
				continue
			}
			ast.Inspect(f.ast, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.KeyValueExpr:
					if k, ok := n.Key.(*ast.Ident); ok && k.Name == "Without" {
						bad = append(bad, m.at(n, "Without is set: only tests of the protocol may remove its guards"))
					}
				case *ast.SelectorExpr:
					if n.Sel.Name == "Without" {
						bad = append(bad, m.at(n, "Without is used: only tests of the protocol may remove its guards"))
					}
				}
				return true
			})
		}
	}
	return bad
}

package arch

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// layer says what the packages of a folder may import of ours. "x" is the package x alone, "x/..." also what is below it. The
// first layer that fits decides.
type layer struct {
	of      string
	imports []string
}

var layers = []layer{
	{".", []string{"internal/..."}},
	{"coord/...", []string{"coord/..."}},
	{"group/...", []string{".", "coord/...", "backends", "sources", "internal/..."}},
	{"backends", []string{".", "internal/..."}},
	{"backends/...", []string{".", "backends", "internal/..."}},
	{"sources", []string{".", "internal/..."}},
	{"sources/pickup", []string{"."}},
	{"sources/...", []string{".", "sources", "sources/pickup", "internal/..."}},
	{"health", []string{"group"}},
	{"telemetry/...", []string{".", "backends", "group", "internal/...", "sources"}},
	{"admin/...", []string{".", "backends", "coord/...", "internal/..."}},
	{"statuspage/...", []string{".", "admin", "backends", "internal/...", "sources"}},
	{"internal/...", []string{".", "backends", "internal/...", "sources", "sources/pickup"}},
	{"cmd/...", []string{"..."}},
	{"examples/...", []string{"..."}},
	{"integration/...", []string{"..."}},
	{"spec/...", []string{"..."}},
}

func fits(dir, pattern string) bool {
	if pattern == "..." {
		return true
	}
	if prefix, ok := strings.CutSuffix(pattern, "/..."); ok {
		return under(dir, prefix)
	}
	return dir == pattern
}

// driver is the folder of the driver that a package belongs to, "" for none: memory, sqlite, file, …
func driver(dir string) string {
	parts := strings.Split(dir, "/")
	if len(parts) < 2 || parts[0] != "backends" && parts[0] != "sources" {
		return ""
	}
	return path.Join(parts[0], parts[1])
}

// checkLayers finds imports of ours against the arrows.
func checkLayers(m *module) []string {
	var bad []string
	for _, p := range m.pkgs {
		i := slices.IndexFunc(layers, func(l layer) bool { return fits(p.dir, l.of) })
		if i < 0 {
			bad = append(bad, fmt.Sprintf("%s: no layer is named for this folder", p.dir))
			continue
		}
		for _, imp := range p.imports() {
			dir, ours := folder(imp)
			if !ours || driver(dir) != "" && driver(dir) == driver(p.dir) {
				continue
			}
			if !slices.ContainsFunc(layers[i].imports, func(pattern string) bool { return fits(dir, pattern) }) {
				bad = append(bad, fmt.Sprintf("%s imports %s: it may import %v of ours", p.dir, dir, layers[i].imports))
			}
		}
	}
	return bad
}

// impure are the packages that the pure machine must not import: clocks, chance, goroutines, I/O.
var impure = []string{
	"context", "crypto/rand", "log", "log/slog", "math/rand", "math/rand/v2", "net", "os", "runtime", "sync", "sync/atomic",
	"syscall", "time",
}

// checkPure finds imports of coord that would make it depend on more than its inputs.
func checkPure(m *module) []string {
	var bad []string
	for _, p := range m.pkgs {
		if !p.below("coord") {
			continue
		}
		for _, imp := range p.imports() {
			_, ours := folder(imp)
			io := strings.HasPrefix(imp, "os/") || strings.HasPrefix(imp, "net/")
			third := !ours && strings.Contains(strings.Split(imp, "/")[0], ".")
			if slices.Contains(impure, imp) || io || third {
				bad = append(bad, fmt.Sprintf("%s imports %s: the machine has no clock, chance, goroutine or I/O of its own", p.dir, imp))
			}
		}
	}
	return bad
}

// checkTestingLinked finds packages that link testing into their users; those whose name ends in test are meant for tests.
func checkTestingLinked(m *module) []string {
	graph := map[string][]string{}
	for p, imports := range m.outside {
		graph[p] = imports
	}
	for _, p := range m.pkgs {
		graph[importPath(p.dir)] = p.imports()
	}
	var bad []string
	for _, p := range m.pkgs {
		if strings.HasSuffix(p.dir, "test") || p.dir == "internal/testserver" {
			continue
		}
		if chain := chainTo(graph, importPath(p.dir), "testing"); chain != nil {
			bad = append(bad, fmt.Sprintf("%s links testing: %s", p.dir, strings.Join(chain, " → ")))
		}
	}
	return bad
}

func importPath(dir string) string { return path.Join(modulePath, dir) }

// chainTo is a shortest way of imports from one package to another, nil when there is none.
func chainTo(graph map[string][]string, from, to string) []string {
	came := map[string]string{from: ""}
	for queue := []string{from}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		if at == to {
			var chain []string
			for ; at != ""; at = came[at] {
				chain = append(chain, at)
			}
			slices.Reverse(chain)
			return chain
		}
		for _, next := range graph[at] {
			if _, seen := came[next]; !seen {
				came[next] = at
				queue = append(queue, next)
			}
		}
	}
	return nil
}

package arch

import (
	"os"
	"strings"
	"testing"
	"testing/fstest"
)

// rule is one check of the module, with a bad example that it must find and a good one that it must not.
type rule struct {
	name      string
	check     func(*module) []string
	bad, good map[string]string   // files
	outside   map[string][]string // imports of packages that are not ours
	want      []string            // each must be in a finding; their number is that of the findings
}

func rules() []rule {
	return []rule{
		layersRule(),
		pureRule(),
		testingRule(),
		initRule(),
		globalsRule(),
		clockRule(),
		sleepRule(),
		skipRule(),
		guardsRule(),
		lengthRule(),
		docsRule(),
	}
}

// TestModule holds the module against each rule.
func TestModule(t *testing.T) {
	t.Parallel()
	const root = "../.."
	m := mustLoad(t, os.DirFS(root))
	if len(m.pkgs) < 10 {
		t.Fatalf("only %d packages found below %s", len(m.pkgs), root)
	}
	if err := m.loadOutside(root); err != nil {
		t.Fatal(err)
	}
	for _, r := range rules() {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			for _, finding := range r.check(m) {
				t.Error(finding)
			}
		})
	}
}

// TestRules shows that each rule finds a bad example and leaves a good one alone.
func TestRules(t *testing.T) {
	t.Parallel()
	for _, r := range rules() {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			found := r.check(example(t, r.bad, r.outside))
			for _, w := range r.want {
				if !strings.Contains(strings.Join(found, "\n"), w) {
					t.Errorf("the bad example: no finding has %q", w)
				}
			}
			if len(found) != len(r.want) || t.Failed() {
				t.Errorf("the bad example: want %d findings, got %d:\n%s", len(r.want), len(found), strings.Join(found, "\n"))
			}
			for _, finding := range r.check(example(t, r.good, nil)) {
				t.Errorf("the good example: %s", finding)
			}
		})
	}
}

func example(t *testing.T, files map[string]string, outside map[string][]string) *module {
	t.Helper()
	root := fstest.MapFS{}
	for name, text := range files {
		root[name] = &fstest.MapFile{Data: []byte(text)}
	}
	m := mustLoad(t, root)
	m.outside = outside
	return m
}

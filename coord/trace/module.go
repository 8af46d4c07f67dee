package trace

import (
	"fmt"
	"slices"
	"sort"
	"strings"
)

// Module is a TLA+ module of that name with histories for the specification's trace module, and its configuration. All must be of one kind
// of barrier, and beyond nothing that the module has a word for (see History).
func Module(name string, all []*History) (module, config string, err error) {
	nodes, resources := 1, 1
	var b strings.Builder
	fmt.Fprintf(&b, "---- MODULE %s ----\nEXTENDS Trace\nRecorded == <<", name)
	for i, h := range all {
		if h.Global != all[0].Global || h.Forgets || h.Static {
			return "", "", fmt.Errorf("trace: history %d cannot stand in one module with the others, or in any", i+1)
		}
		if i > 0 {
			b.WriteString(",")
		}
		w := newWriter(h)
		nodes, resources = max(nodes, len(w.nodes)), max(resources, len(w.resources))
		b.WriteString("\n<<")
		for j := range h.Steps {
			if j > 0 {
				b.WriteString(",\n")
			}
			b.WriteString(w.step(&h.Steps[j]))
		}
		b.WriteString(">>")
	}
	b.WriteString(">>\n====\n")
	mode := "resource"
	if len(all) > 0 && all[0].Global {
		mode = "global"
	}
	return b.String(), fmt.Sprintf(moduleConfig, count(nodes), count(resources), mode), nil
}

// moduleConfig: the definitions about plans that are replaced would be computed before the first state, for groups of any size.
const moduleConfig = `SPECIFICATION TraceSpec
CONSTANTS
  None = None
  N = %s
  R = %s
  Mode = "%s"
  Sticky = TRUE
  Ready = {}
  Faults = {"crash", "freeze", "cut", "leave", "decline", "late"}
  MaxFaults = 1000000
  Off = {}
  Traces <- Recorded
  AllMaps <- NoPlans
  Best <- NoPlans
  Sessions <- NoPlans
  Sym <- NoPlans
INVARIANTS TypeOK NoOverlap Covered OneGeneration OneCoordinator KeptPromises
PROPERTIES FencesGrow EpochsGrow
`

func count(n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprint(i+1))
	}
	return "{" + strings.Join(all, ", ") + "}"
}

// writer puts small numbers in the place of names and versions, in the same order: TLC's integers are short.
type writer struct {
	nodes, resources map[string]int
	sessions         map[string]string // <<node, number>>
	versions         map[string][]int64
	gens             []int64
}

func newWriter(h *History) *writer {
	w := &writer{nodes: map[string]int{}, resources: map[string]int{}, sessions: map[string]string{}, versions: map[string][]int64{}}
	for i := range h.Steps {
		s := &h.Steps[i]
		number(w.nodes, s.Node)
		number(w.resources, s.Resource)
		for _, r := range slices.Concat(s.Share, s.Declined) {
			number(w.resources, r)
		}
		if s.State != nil {
			for r := range s.State.Resources {
				number(w.resources, keyForm(r))
			}
		}
		if key := keyOf(s); key != "" {
			w.versions[key] = append(w.versions[key], s.Version)
		}
		w.gens = append(w.gens, s.Generation)
	}
	rank(w.nodes)
	rank(w.resources)
	opened := map[string]int{}
	for i := range h.Steps {
		if s := &h.Steps[i]; s.Do == DoOpened {
			opened[s.Node]++
			w.sessions[s.Session] = fmt.Sprintf("<<%d, %d>>", w.nodes[s.Node], opened[s.Node])
		}
	}
	for key := range w.versions {
		slices.Sort(w.versions[key])
		w.versions[key] = slices.Compact(w.versions[key])
	}
	slices.Sort(w.gens)
	w.gens = slices.Compact(append([]int64{0}, w.gens...))
	return w
}

func number(names map[string]int, name string) {
	if name != "" {
		names[name] = 0
	}
}

func rank(names map[string]int) {
	sorted := make([]string, 0, len(names))
	for name := range names {
		sorted = append(sorted, name)
	}
	sort.Strings(sorted)
	for i, name := range sorted {
		names[name] = i + 1
	}
}

// keyOf is what a step gives a version to, "" for a step that gives none.
func keyOf(s *Step) string {
	switch s.Do {
	case DoClaim:
		return "claim/" + s.Resource
	case DoPublish:
		return "assign/" + s.Node
	case DoCampaign:
		return "leader"
	case DoBarrier:
		return "barrier"
	}
	return ""
}

// strange stands for a version that nobody gave.
const strange = 999999

func (w *writer) version(key string, v int64) int {
	if v == 0 {
		return 0
	}
	if i, ok := slices.BinarySearch(w.versions[key], v); ok {
		return i + 1
	}
	return strange
}

func (w *writer) generation(g int64) int {
	if i, ok := slices.BinarySearch(w.gens, g); ok {
		return i
	}
	return strange
}

func (w *writer) session(s string) string {
	switch tuple := w.sessions[s]; {
	case s == "":
		return "None"
	case tuple == "":
		return "<<0, 0>>"
	default:
		return tuple
	}
}

func (w *writer) set(names []string) string {
	var all []string
	for _, r := range names {
		all = append(all, fmt.Sprint(w.resources[r]))
	}
	return "{" + strings.Join(all, ", ") + "}"
}

func truth(b bool) string { return strings.ToUpper(fmt.Sprint(b)) }

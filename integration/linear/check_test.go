//go:build linux

package linear

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// patience is how long the search for an explanation of one part may take. Most take milliseconds.
const patience = 2 * time.Minute

// verdict is what became of a history.
type verdict struct {
	illegal, undecided []part
	operations         int
}

// judge looks for an explanation of every part of a history.
func judge(events []event, r rules, patience time.Duration) verdict {
	var v verdict
	for _, p := range split(events, r) {
		v.operations += len(p.ops)
		switch porcupine.CheckOperationsTimeout(model, p.ops, patience) {
		case porcupine.Illegal:
			v.illegal = append(v.illegal, p)
		case porcupine.Unknown:
			v.undecided = append(v.undecided, p)
		}
	}
	return v
}

// check fails the test unless a history has an explanation, or when it is too poor to show anything.
func (h *history) check(t *testing.T, r rules) {
	t.Helper()
	began := time.Now()
	v := judge(h.events, r, patience)
	took := time.Since(began)
	for _, p := range v.undecided {
		t.Errorf("%s: no explanation found within %v, which says nothing; %d operations", p.name, patience, len(p.ops))
	}
	if len(v.illegal) == 0 { // all keys at once: sessions end in one moment for all that is bound to them
		r.whole = true
		whole := judge(h.events, r, time.Second)
		v.illegal = whole.illegal
		if len(whole.undecided) > 0 {
			t.Log("with all keys at once the search takes too long: the parts alone were checked")
		}
	}
	for _, p := range v.illegal {
		t.Errorf("NOT LINEARIZABLE: %s\n%s", p.name, explain(p))
	}
	if len(v.illegal) > 0 {
		h.keep(t)
	}
	n, calls := map[outcome]int{}, map[what]int{}
	for _, e := range h.events {
		calls[e.Kind]++
		for i := range e.Txns {
			o := unknown // as of a process that was killed meanwhile
			if i < len(e.Results) {
				o = e.Results[i].Outcome
			} else if e.Return != 0 {
				o = e.Outcome
			}
			n[o]++
		}
	}
	t.Logf("%d calls, %d operations, checked in %v: %v; transactions: %v", len(h.events), v.operations, took, calls, n)
	if n[done] < 10 || n[conflict] == 0 || calls[read] < 5 {
		t.Error("a history that shows nothing")
	}
}

// keep writes a history that has no explanation to a file, and shows the commits that are said to have changed nothing: one of them may have.
func (h *history) keep(t *testing.T) {
	f, err := os.CreateTemp("", "history-*.ndjson")
	if err != nil {
		t.Error(err)
		return
	}
	out := newLines(f)
	for _, e := range h.events {
		out.note(e)
		if e.Kind == committed && e.Outcome == nothingDone {
			t.Logf("%.3f–%.3f ms: client %d: nothing was committed: %s", float64(e.Call)/1e6, float64(e.Return)/1e6, e.Client, e.Why)
		}
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	t.Logf("the history is in %s", f.Name())
}

// explain shows how far the longest explanation goes, and what does not fit behind it.
func explain(p part) string {
	_, info := porcupine.CheckOperationsVerbose(model, p.ops, patience)
	var longest []porcupine.Operation
	for _, all := range info.PartialLinearizationsOperations() {
		for _, l := range all {
			if len(l) > len(longest) {
				longest = l
			}
		}
	}
	var b strings.Builder
	s := state{}
	fits := map[*operation]bool{}
	for i, o := range longest {
		op := o.Input.(*operation)
		fits[op] = true
		s.step(op)
		if i >= len(longest)-20 {
			fmt.Fprintf(&b, "  %s\n", line(o))
		}
	}
	fmt.Fprintf(&b, "then %s; of these none fits:\n", s)
	shown := 0
	for _, o := range p.ops {
		if !fits[o.Input.(*operation)] && shown < 10 {
			shown++
			fmt.Fprintf(&b, "  %s\n", line(o))
		}
	}
	return b.String()
}

func line(o porcupine.Operation) string {
	until := "-"
	if o.Return != never {
		until = fmt.Sprintf("%.3f", float64(o.Return)/1e6)
	}
	return fmt.Sprintf("%.3f–%s ms: %s", float64(o.Call)/1e6, until, o.Input.(*operation).about)
}

package group

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/coord"
)

// TestTroublesAreBounded: what a node tells of stays far below the longest value of a store, is the same for the same troubles, and of the last errors it is
// the newest.
func TestTroublesAreBounded(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, text string
		least      int // told of
	}{
		{"r%04d", "no room", maxTroubles},
		{strings.Repeat("<", 1000) + "%04d", strings.Repeat("\x01", maxTrouble), 5}, // each character is six where it stands
	} {
		n := &node{workers: map[workerKey]*worker{}}
		const all = 500
		for i := range all {
			w, err := &worker{}, errors.New(c.text)
			w.err.Store(&err)
			w.lastErr.Store(&coord.LastError{Error: troubleText(err), At: int64(i + 1)})
			n.workers[workerKey{fmt.Sprintf(c.name, i), 1}] = w
		}
		reasons, last := n.troublesNow()
		size := 0
		for name, text := range reasons {
			size += 6 * (len(name) + len(text))
		}
		for name, e := range last {
			size += 6 * (len(name) + len(e.Error))
		}
		if len(last) < c.least || len(last) > maxTroubles || len(reasons) < c.least || len(reasons) > maxTroubles || size > backends.MaxValue {
			t.Errorf("%d reasons and %d last errors, at most %d bytes", len(reasons), len(last), size)
		}
		for i := range last {
			if last[i].At <= int64(all-len(last)) {
				t.Errorf("of %d, %d is told of", len(last), last[i].At)
			}
		}
		sameChoice(t, n, reasons, last)
	}
}

// sameChoice checks that the choice stays.
func sameChoice(t *testing.T, n *node, reasons map[string]string, last map[string]coord.LastError) {
	t.Helper()
	for range 3 {
		r, l := n.troublesNow()
		if fmt.Sprint(r) != fmt.Sprint(reasons) || fmt.Sprint(l) != fmt.Sprint(last) {
			t.Error("the same troubles are told of otherwise")
		}
	}
}

// TestTroubleText: no secret gets into the store, also where the text is cut within it.
func TestTroubleText(t *testing.T) {
	t.Parallel()
	long := errors.New(strings.Repeat("x", maxTrouble-20) + " amqp://user:hunter2hunter2hunter2@host refused")
	for _, err := range []error{long, errors.New("amqp://user:hunter2@host"), errors.New("password=hunter2")} {
		if got := troubleText(err); strings.Contains(got, "hunter") || len(got) > maxTrouble+len("…") {
			t.Errorf("%q", got)
		}
	}
}

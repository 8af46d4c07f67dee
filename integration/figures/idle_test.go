package figures

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// TestIdle: 10 nodes that hold 1,000 resources and have nothing to do make one store call per node and renewal, a write,
// and no other. It is the same in both modes.
func TestIdle(t *testing.T) {
	t.Parallel()
	modes(t, func(t *testing.T, global bool) {
		synctest.Test(t, func(t *testing.T) { idle(t, global) })
	})
}

func idle(t *testing.T, global bool) {
	const intervals = 20
	f := newFleet(t, 0, 1000, global)
	var all []string
	for i := range 10 {
		all = append(all, fmt.Sprintf("n%d", i))
	}
	f.start(all...)
	f.balanced(all...)
	time.Sleep(2 * renewal) // virtual: what the last change left behind is over
	began := time.Now()
	time.Sleep(intervals * renewal)
	ended := time.Now()
	count := map[string]map[string]int{}
	for _, c := range f.calls.since(began) {
		if !c.from.Before(ended) {
			continue // so that the window holds each renewal once, whatever its phase
		}
		if count[c.node] == nil {
			count[c.node] = map[string]int{}
		}
		count[c.node][c.kind]++
		if c.node != f.coordinator() && len(c.prefixes) > 0 {
			t.Errorf("node %s is not the coordinator and asks for all below %q", c.node, c.prefixes)
		}
	}
	for _, name := range all {
		if len(count[name]) != 1 || count[name]["renew"] != intervals {
			t.Errorf("node %s: %v in %d renewal intervals", name, count[name], intervals)
		}
	}
	t.Logf("10 nodes, 1,000 resources, %d renewal intervals: %v", intervals, count)
	f.end()
	f.noWholeGroup()
}

// noWholeGroup: no node ever read the whole group, and none but a coordinator more than what is addressed to it.
func (f *fleet) noWholeGroup() {
	f.t.Helper()
	for _, c := range f.calls.wholeGroup(f.leads) {
		f.t.Errorf("node %s: a %s of everything below %q", c.node, c.kind, c.prefixes)
	}
}

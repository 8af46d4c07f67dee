package group

import (
	"fmt"
	"testing"
)

// A node that has many resources with long names gives up almost all of them at once: no entry may grow beyond what a store takes.
func TestMuchMovesAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		const resources, nodes = 1_200, 4
		var names []string
		for i := range resources {
			names = append(names, fmt.Sprintf("%0500d", i))
		}
		var all []*running
		for i := range nodes {
			all = append(all, w.start(w.config(fmt.Sprintf("n%d", i), names...), nil))
			if i == 0 {
				all[0].holdsCount(resources)
			}
		}
		for _, r := range all {
			r.holdsCount(resources / nodes)
		}
		for _, r := range all[1:] {
			_ = r.end()
		}
		all[0].holdsCount(resources)
		_ = all[0].end()
		for _, e := range w.events["n0"] {
			if e.Err != nil {
				t.Errorf("%s: %v", e.Reason, e.Err)
			}
		}
	})
}

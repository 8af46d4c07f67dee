package sim

import (
	"slices"
	"strings"

	"github.com/rebalancer-go/rebalancer/coord"
)

// arrival is a resource that a plan gives to a node which had it not before, nor still has to give it back.
type arrival struct{ resource, node string }

// noteArrivals adds what an entry of a plan, which is about to be written, gives to its node anew.
func (w *World) noteArrivals(put coord.Put) {
	if w.setup.Registered == nil {
		return
	}
	decode := func(b []byte) coord.Assignment {
		a, err := coord.DecodeAssignment([]coord.Entry{{Key: put.Key, Value: b}})
		if err != nil || a.Parts > 0 {
			w.fail("contract", "%s cannot be read, or has parts: %v", put.Key, err)
		}
		return a
	}
	var old coord.Assignment
	if r := w.store.entry(w.now, put.Key); r != nil {
		old = decode(r.value)
	}
	node := strings.TrimSuffix(strings.TrimPrefix(put.Key, coord.AssignmentPrefix), "/")
	for _, r := range decode(put.Value).Share {
		if _, leaves := old.Leaving[r]; !leaves && !slices.Contains(old.Share, r) {
			w.arrivals = append(w.arrivals, arrival{r, node})
		}
	}
}

// checkPreferences: of what one plan gives to other nodes, no two resources with the same load could change places between nodes of one
// priority so that more of them are where they should be. What stays where it is does not move for a preference, so this is all
// that is asked of a plan, and of a group at rest. The entries of a commit are of one plan. What operators tied, or a node ever declined, may
// not have been free to go.
func (w *World) checkPreferences() {
	come := w.arrivals
	w.arrivals = nil
	for i, a := range come {
		for _, b := range come[:i] {
			x, y := w.placeOf(a.node), w.placeOf(b.node)
			if x == y || w.unfree(a.resource) || w.unfree(b.resource) || w.setup.MaxActive == 0 && x.Priority != y.Priority ||
				w.load(a.resource) != w.load(b.resource) || !w.labelled(y, a.resource) || !w.labelled(x, b.resource) {
				continue
			}
			if now, then := w.liked(x, a.resource)+w.liked(y, b.resource), w.liked(y, a.resource)+w.liked(x, b.resource); then > now {
				w.fail("preferences", "one plan gives %s to %s and %s to %s, which had better change places", a.resource, a.node, b.resource, b.node)
			}
		}
	}
}

// placeOf is the place of the processes of a name: the later ones there have a dot in theirs.
func (w *World) placeOf(name string) *NodeSetup {
	name, _, _ = strings.Cut(name, ".")
	i := slices.IndexFunc(w.setup.Nodes, func(n NodeSetup) bool { return n.Name == name })
	return &w.setup.Nodes[i]
}

func (w *World) unfree(r string) bool { return w.everTied[r] || w.everDeclined[r] }

func (w *World) load(r string) int { return max(w.setup.Registered[r].Weight, 1) }

// liked is 1 for a place where a resource should be.
func (w *World) liked(n *NodeSetup, r string) int {
	for _, l := range w.setup.Registered[r].Prefer {
		if k, v, _ := strings.Cut(l, "="); n.Labels[k] == v {
			return 1
		}
	}
	return 0
}

//go:build linux

package stores

import (
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/group"
)

// The store loses everything, or goes back to what it was some time ago, under nodes that work. Nothing is worked twice at once, fences grow, and the work
// goes on by itself.
func TestStoreLosesData(t *testing.T) {
	t.Parallel()
	overAll(t, func(t *testing.T, sys *system, global bool) {
		f, ten := newFleet(t, sys, global), group.Static(names(10)...)
		f.start("a", ten)
		f.start("b", ten)
		f.shares("at first", 5, 5)
		if sys.keep != nil {
			sys.keep()
			f.start("c", ten)
			f.shares("after it was kept", 3, 3, 4)
			f.stop("a")
			f.shares("one left", 5, 5)
			sys.back()
			f.again("after it went back")
		}
		if sys.wipe != nil {
			sys.wipe()
			f.again("after it was emptied")
		}
	})
}

// again waits until all ten are worked, under fences of after the loss: nobody works on as if nothing had happened.
func (f *fleet) again(what string) {
	f.t.Helper()
	since := time.Now()
	f.until(what+": everything is claimed anew or confirmed, in balance", 2*time.Minute, func() bool {
		counts := f.ledger.counts()
		for name := range f.nodes {
			if counts[name] != 10/len(f.nodes) {
				return false
			}
		}
		d := time.Since(since)
		return d > f.sys.ttl+f.sys.ttl/2 // longer than anybody can have trusted what was lost
	})
}

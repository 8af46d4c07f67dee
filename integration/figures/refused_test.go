package figures

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rebalancer-go/rebalancer/group"
)

// TestRefusedNode: a node that does not fit the group ends at once, and its session with it, also when the store takes its time.
func TestRefusedNode(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 10*time.Millisecond, 4, false)
		f.start("a")
		f.balanced("a")
		f.global = true
		f.start("b")
		began := time.Now()
		if err := <-f.nodes["b"].done; !errors.Is(err, group.ErrMismatch) {
			t.Fatalf("not refused: %v", err)
		}
		if d := time.Since(began); d > time.Second {
			t.Errorf("refused only after %v", d)
		}
		delete(f.nodes, "b")
		closed := 0
		for _, c := range f.calls.since(began) {
			if c.node == "b" && c.kind == "closed" {
				closed++
			}
		}
		if closed != 1 {
			t.Errorf("its session was closed %d times", closed)
		}
		f.end()
	})
}

package group

import (
	"math/rand/v2"
	"testing"

	"github.com/rebalancer-go/rebalancer"
)

// A lane keeps its messages in order while it uses its memory again.
func TestLaneUsesItsMemoryAgain(t *testing.T) {
	t.Parallel()
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 1))
		la := &lane{}
		var want []*rebalancer.Message
		for range 2000 {
			if len(want) < 8 && rng.IntN(2) == 0 {
				m := &rebalancer.Message{}
				want = append(want, m)
				la.push(item{m: m})
			} else if len(want) > 0 {
				if got := la.items[la.head].m; got != want[0] {
					t.Fatalf("seed %d: another message is the first", seed)
				}
				want = want[1:]
				if more := la.pop(); more != (len(want) > 0) {
					t.Fatalf("seed %d: says %t that there is another, of %d", seed, more, len(want))
				}
			}
		}
		if cap(la.items) > 64 {
			t.Fatalf("seed %d: room for %d messages where 8 were there at most", seed, cap(la.items))
		}
	}
}

package statuspage

import (
	"fmt"
	"testing"

	"github.com/rebalancer-go/rebalancer/admin"
)

// TestPastIsBounded: however many nodes and resources a rebalance moves, the page is told of a few, and how many more there are.
func TestPastIsBounded(t *testing.T) {
	t.Parallel()
	var lines []admin.Record
	for i := range 5000 {
		lines = append(lines, admin.Record{Kind: admin.KindRebalance, Resource: fmt.Sprintf("r%04d", i), To: fmt.Sprintf("n%02d", i/50), Generation: 3})
	}
	for i := range 2 * maxPast {
		lines = append(lines, admin.Record{Kind: admin.KindPause, Resource: "r", Generation: 0, Reason: fmt.Sprint(i)})
	}
	all := pastOf(lines, func(s string) string { return s })
	if len(all) != maxPast || len(all[0].Parts) != maxParts {
		t.Fatalf("%d changes, the first of %d parts, want %d and %d", len(all), len(all[0].Parts), maxPast, maxParts)
	}
	told := all[0].More
	for _, p := range all[0].Parts {
		if told += p.Count; len(p.Names) != maxNamed || p.Count != 50 {
			t.Errorf("%d names of %d", len(p.Names), p.Count)
		}
	}
	if told != 5000 {
		t.Errorf("%d of 5000 are told of or counted", told)
	}
}

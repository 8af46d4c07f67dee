//go:build linux

package files

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/internal/programtest"
)

var (
	seed   = flag.Uint64("seed", 0, "of the random schedules; 0: another one for each run")
	soak   = flag.Bool("soak", false, "run the long version")
	rounds = flag.Int("rounds", 500, "how many processes are killed in each group of the long version")
)

// TestMain makes the test binary a node where it is told to be one.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == nodeMode {
		os.Exit(node(os.Args[2:]))
	}
	flag.Parse()
	os.Exit(m.Run())
}

// random is the chance of one test, and says how to have it again.
func random(t *testing.T) *rand.Rand {
	t.Helper()
	return programtest.Random(t, *seed, func(test string, seed uint64) string {
		return fmt.Sprintf("REBAL_REQUIRE=servers go test ./integration/files -run '^%s$' -args -seed=%d -soak=%v", test, seed, *soak)
	})
}

// within polls a condition, and tells whether it came to hold.
func within(patience time.Duration, ok func() bool) bool {
	for end := time.Now().Add(patience); !ok(); time.Sleep(20 * time.Millisecond) { // between two looks
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

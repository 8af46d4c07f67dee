//go:build linux

package order

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/internal/programtest"
	"github.com/rebalancer-go/rebalancer/internal/testserver"
)

var (
	seed    = flag.Uint64("seed", 0, "of the random schedules; 0: another one for each run")
	soak    = flag.Bool("soak", false, "run the long version, with faults of the servers too")
	lasting = flag.Duration("for", 10*time.Minute, "how long the faults of the long version go on")
)

// binary is the program under test, built once.
var binary string

var servers testserver.Keeper

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	defer servers.End()
	return programtest.Main(m, &binary)
}

// random is the chance of one test, and says how to have it again.
func random(t *testing.T) *rand.Rand {
	t.Helper()
	return programtest.Random(t, *seed, func(test string, seed uint64) string {
		return fmt.Sprintf("REBAL_REQUIRE=servers go test ./integration/order -run '^%s$' -args -seed=%d -soak=%v", test, seed, *soak)
	})
}

// within polls a condition, and tells whether it came to hold.
func within(patience time.Duration, ok func() bool) bool {
	for end := time.Now().Add(patience); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

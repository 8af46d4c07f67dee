//go:build linux

package order

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

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
	dir, err := os.MkdirTemp("", "rebalancer")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	defer servers.End()
	binary = filepath.Join(dir, "rebalancer")
	build := exec.Command("go", "build", "-o", binary, "../../cmd/rebalancer")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "%v: %v\n%s", build, err, out)
		return 1
	}
	return m.Run()
}

// random is the chance of one test, and says how to have it again.
func random(t *testing.T) *rand.Rand {
	t.Helper()
	s := *seed
	if s == 0 {
		s = rand.Uint64()
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("replay: REBAL_REQUIRE=servers go test ./integration/order -run '^%s$' -args -seed=%d -soak=%v", t.Name(), s, *soak)
		}
	})
	t.Logf("seed %d", s)
	return rand.New(rand.NewPCG(s, 0))
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

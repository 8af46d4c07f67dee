package sim

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/rebalancer-go/rebalancer/coord/trace"
)

var (
	traceFlag  = flag.String("into", "", "write the traces of TestTraces, and that of the world of -seed, to files in this directory")
	tracesFlag = flag.Int64("traces", 40, "how many worlds TestTraces runs")
)

// traced runs the world of a seed and returns its trace.
func traced(t *testing.T, seed int64, store bool) []trace.Line {
	t.Helper()
	s := NewTraced(seed)
	faults := NewSchedule(&s)
	var b bytes.Buffer
	w := NewWorld(s, faults)
	w.Trace(&b, store)
	if v := w.Run(); v != nil {
		t.Fatalf("seed %d: %v", seed, v)
	}
	if *traceFlag != "" {
		name := filepath.Join(*traceFlag, fmt.Sprintf("%s-%d.ndjson", s.Mode, seed))
		if store { // of each world one is enough for who takes all of them
			name += ".store"
		}
		if err := os.WriteFile(name, b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	lines, err := trace.Decode(&b)
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

func judge(lines []trace.Line) error {
	h, err := trace.Explain(lines)
	if err != nil {
		return err
	}
	return trace.Check(h)
}

// TestTraces: what the machines of simulated groups do is a behaviour that the specification allows, whether the trace tells what the store
// did, or that has to be worked out.
func TestTraces(t *testing.T) {
	t.Parallel()
	var worked atomic.Int64
	t.Run("worlds", func(t *testing.T) {
		for seed := *firstFlag; seed < *firstFlag+*tracesFlag; seed++ {
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				t.Parallel()
				for _, store := range []bool{true, false} {
					err := judge(traced(t, seed, store))
					if errors.Is(err, trace.ErrNothing) {
						continue
					}
					if err != nil {
						t.Errorf("with what the store did %v: %v\nreplay: go test ./coord/sim -run 'TestTraces$' -first=%d -traces=1 -into=/tmp", store, err, seed)
					}
					worked.Add(1)
				}
			})
		}
	})
	if n := worked.Load(); n < *tracesFlag {
		t.Errorf("something is worked in %d of %d traces", n, 2**tracesFlag)
	}
}

// TestAlteredTraces: a trace with one event altered is refused, in whichever way, wherever the event stands.
func TestAlteredTraces(t *testing.T) {
	t.Parallel()
	lines := traced(t, alteredSeed, false)
	if err := judge(lines); err != nil {
		t.Fatal(err)
	}
	for _, a := range trace.Alterations() {
		t.Run(a.Name, func(t *testing.T) {
			t.Parallel()
			n := 0
			for ; ; n++ {
				altered, ok, err := trace.Alter(lines, a, n)
				if err != nil {
					t.Fatal(err)
				}
				if !ok {
					break
				}
				if judge(altered) == nil {
					t.Errorf("event %d: it is not refused", n)
				}
			}
			if n == 0 {
				t.Error("there is nothing to alter in this trace: choose another one")
			}
			t.Logf("%d traces", n)
		})
	}
	if err := judge(nil); !errors.Is(err, trace.ErrNothing) {
		t.Errorf("an empty trace: %v", err)
	}
}

// alteredSeed is a world in whose trace there is something to alter in each way.
const alteredSeed = 1

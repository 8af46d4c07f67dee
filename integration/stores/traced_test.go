//go:build linux

package stores

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/backends/faultstore"
	"github.com/rebalancer-go/rebalancer/coord/trace"
	"github.com/rebalancer-go/rebalancer/group"
)

var (
	traceDir = flag.String("into", "", "write the traces of TestTracedRuns to files in this directory")
	traced   = flag.Int("traces", 0, "how many runs TestTracedRuns makes over all stores; 0: one over SQLite alone")
)

// TestTracedRuns: what real nodes do under faults is a behaviour that the specification allows, and one event altered is not.
func TestTracedRuns(t *testing.T) {
	t.Parallel()
	all := kinds()
	n := *traced
	if n == 0 {
		n, all = 1, all[:1]
	}
	for i := range n {
		k := all[i%len(all)]
		t.Run(fmt.Sprintf("%d over %s", i+1, k.name), func(t *testing.T) {
			t.Parallel()
			tracedRun(t, k.start(t), i/len(all)%2 == 1)
		})
	}
}

func tracedRun(t *testing.T, sys *system, global bool) {
	rnd := random(t)
	const resources = 5
	rounds := 2
	if *traced > 0 {
		rounds = 6
	}
	b := &lines{}
	c := &chaos{fleet: newFleet(t, sys, global), rnd: rnd, resources: group.Static(names(resources)...), count: resources, most: 3}
	c.fleet.setup = func(cfg *group.Config) { cfg.Trace = b }
	var faulty []*faultstore.Store
	c.fleet.wrap = func(_ string, s backends.Store) backends.Store {
		f := faultstore.New(s, nil)
		faulty = append(faulty, f)
		return f
	}
	plan := func(chance float64) {
		for i, f := range faulty {
			f.SetPlan(faultstore.Random(rnd.Uint64()+uint64(i), faultstore.Match{}, faultstore.Chances{
				Before: chance, After: chance, HangBefore: chance / 2, HangAfter: chance / 2, Delay: 2 * chance, MaxDelay: sys.ttl / 4,
			}))
		}
	}
	c.join()
	c.join()
	c.settle("at first")
	for range rounds {
		plan(0.1) // requests and answers are lost, beside what happens to nodes, network and server
		what, undo := c.fault()
		c.pause(200*time.Millisecond, 2*sys.ttl)
		undo()
		t.Logf("%s; %v", what, c.ledger)
	}
	plan(0)
	c.settle("after the last fault")
	c.stopAll()
	b.judge(t)
}

// lines are what all nodes of a group write, in one order.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// judge looks at what was written when all nodes have ended.
func (l *lines) judge(t *testing.T) {
	t.Helper()
	if *traceDir != "" || t.Failed() {
		dir := *traceDir
		if dir == "" {
			dir = os.TempDir()
		}
		file := filepath.Join(dir, strings.NewReplacer("/", "-", " ", "-").Replace(t.Name())+".ndjson")
		if err := os.WriteFile(file, l.b.Bytes(), 0o600); err != nil {
			t.Error(err)
		}
		t.Logf("the trace is in %s", file)
	}
	all, err := trace.Decode(&l.b)
	if err != nil {
		t.Fatal(err)
	}
	h, err := trace.Explain(all)
	if err != nil {
		t.Fatal(err)
	}
	if err := trace.Check(h); err != nil {
		t.Error(err)
	}
	t.Logf("%d lines, %d steps", len(all), len(h.Steps))
	for _, a := range trace.Alterations() {
		other, ok, err := trace.Alter(all, a, 0)
		if err != nil {
			t.Fatal(err)
		}
		if h, err := trace.Explain(other); ok && err == nil && trace.Check(h) == nil {
			t.Errorf("not refused: %s", a.Name)
		}
	}
}

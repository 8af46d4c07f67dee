package figures

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/backends"
	smem "github.com/rebalancer-go/rebalancer/backends/memory"
	"github.com/rebalancer-go/rebalancer/group"
	"github.com/rebalancer-go/rebalancer/sources/memory"
)

// fleet is a group of several nodes in this process, and all that they did.
type fleet struct {
	t         *testing.T
	calls     *storeLog
	ttl       time.Duration // 0: the default
	realTime  bool          // in real time, not in a bubble of virtual time
	messages  *memory.Source
	source    *sourceLog
	resources []string
	global    bool
	pace      func(resource string) time.Duration // how long a handler takes with a message
	nodes     map[string]*node

	mu    sync.Mutex
	leads map[string]bool // every node that coordinated at some time
}

type node struct {
	*group.Group
	name string
	stop context.CancelFunc
	done chan error
}

// newFleet makes a store whose calls take latency each, and so many resources.
func newFleet(t *testing.T, latency time.Duration, resources int, global bool) *fleet {
	return newFleetOver(t, smem.New(smem.WithLatency(latency)), resources, global)
}

func newFleetOver(t *testing.T, store backends.Store, resources int, global bool) *fleet {
	f := &fleet{
		t: t, calls: newStoreLog(store), messages: memory.New(), global: global, pace: pace, nodes: map[string]*node{}, leads: map[string]bool{},
	}
	f.source = newSourceLog(f.messages)
	for i := range resources {
		f.resources = append(f.resources, fmt.Sprintf("r%04d", i))
	}
	return f
}

// pace is how long a handler takes with a message of a resource: not the same everywhere, so that they do not end together.
func pace(resource string) time.Duration {
	sum := 0
	for _, c := range []byte(resource) {
		sum = sum*31 + int(c)
	}
	return time.Duration(3+sum%8)*time.Millisecond + time.Duration(sum%97)*10*time.Microsecond
}

func (f *fleet) start(names ...string) {
	f.t.Helper()
	for _, name := range names {
		g, err := group.New(group.Config{
			Name: "figures", Node: name, Store: f.calls, Source: f.source, GlobalBarrier: f.global, TTL: f.ttl,
			Resources: group.Static(f.resources...), Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
			OnEvent: func(e group.Event) {
				if e.Kind == group.KindElected {
					f.mu.Lock()
					defer f.mu.Unlock()
					f.leads[name] = true
				}
			},
		})
		if err != nil {
			f.t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(f.t.Context())
		n := &node{Group: g, name: name, stop: cancel, done: make(chan error, 1)}
		f.nodes[name] = n
		f.t.Cleanup(cancel) // also when the test fails half-way
		go func() {
			n.done <- g.Consume(ctx, func(_ context.Context, m *rebalancer.Message) error {
				time.Sleep(f.pace(m.Resource)) // the work
				return nil
			})
		}()
	}
}

// balanced waits until the nodes share the resources evenly.
func (f *fleet) balanced(names ...string) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), time.Hour)
	defer cancel()
	least := len(f.resources) / len(names)
	for _, name := range names {
		err := f.nodes[name].Wait(ctx, func(s group.Status) bool {
			working := 0
			for _, r := range s.Resources {
				if r.Phase == "working" {
					working++
				}
			}
			return (working == least || working == least+1) && working == len(s.Resources) && s.Awaited == 0
		})
		if err != nil {
			f.t.Fatalf("node %s does not hold its share: %v\n%+v", name, err, f.nodes[name].Status())
		}
	}
	if !f.realTime {
		synctest.Wait()
	}
}

// coordinator is the name of the node that coordinates.
func (f *fleet) coordinator() string {
	f.t.Helper()
	for name, n := range f.nodes {
		if n.Status().Leading {
			return name
		}
	}
	f.t.Fatal("nobody coordinates")
	return ""
}

// send gives each resource so many messages.
func (f *fleet) send(n int) {
	f.t.Helper()
	for _, r := range f.resources {
		if err := f.messages.Send(r, make([]string, n)...); err != nil {
			f.t.Fatal(err)
		}
	}
}

// heldBy are the resources of a node, with the last claim of each.
func (f *fleet) heldBy(name string) map[string]hold {
	held := map[string]hold{}
	for _, r := range f.resources {
		if hs := f.source.of(r); len(hs) > 0 && hs[len(hs)-1].node == name {
			held[r] = hs[len(hs)-1]
		}
	}
	return held
}

// end stops all nodes and looks at what must hold in every test.
func (f *fleet) end() {
	f.t.Helper()
	for _, n := range f.nodes {
		n.stop()
	}
	for name, n := range f.nodes {
		if err := <-n.done; err != nil {
			f.t.Errorf("node %s: %v", name, err)
		}
	}
	if n := f.messages.Overlaps(); n != 0 {
		f.t.Errorf("%d times two nodes worked one resource", n)
	}
}

//go:build linux

package stores

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/group"
	"github.com/rebalancer-go/rebalancer/internal/testserver"
)

// fleet is the nodes of one group over one system.
type fleet struct {
	t      *testing.T
	sys    *system
	global bool
	setup  func(*group.Config)                                // what else a test wants of a node; nil: nothing
	common backends.Store                                     // of all nodes; nil: each has its own
	dial   func(name, addr string) string                     // gives the address by which a node reaches the server; nil: over a link of its own
	wrap   func(name string, s backends.Store) backends.Store // nil: not
	ledger *ledger
	log    *buffer
	moved  chan struct{} // signalled when a worker begins or ends

	nodes map[string]*node
}

// node is one, with a store of its own, and a link of its own where the store is reached over a network.
type node struct {
	*group.Group
	name  string
	store backends.Store
	link  *testserver.Link
	stop  context.CancelFunc
	done  chan error
}

func newFleet(t *testing.T, sys *system, global bool) *fleet {
	f := &fleet{t: t, sys: sys, global: global, ledger: newLedger(t), log: &buffer{}, moved: make(chan struct{}, 1), nodes: map[string]*node{}}
	t.Cleanup(func() {
		f.stopAll()
		if t.Failed() {
			t.Logf("the nodes said:\n%s", f.log)
		}
	})
	return f
}

func (f *fleet) names() []string {
	var names []string
	for name := range f.nodes {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// start adds a node.
func (f *fleet) start(name string, resources group.Resources) *node {
	f.t.Helper()
	n := &node{name: name, done: make(chan error, 1)}
	addr := f.sys.addr
	if f.dial != nil {
		addr = f.dial(name, addr)
	} else if addr != "" && f.common == nil {
		n.link = testserver.Proxy(f.t, addr)
		addr = n.link.Addr()
	}
	if n.store = f.common; n.store == nil {
		n.store = f.sys.open(f.t, addr)
	}
	store := n.store
	if f.wrap != nil {
		store = f.wrap(name, store)
	}
	cfg := group.Config{
		Name: f.sys.group, Node: name, Store: store, Resources: resources, GlobalBarrier: f.global, TTL: f.sys.ttl, Drain: time.Second,
		Logger: slog.New(slog.NewTextHandler(f.log, nil)),
	}
	if f.setup != nil {
		f.setup(&cfg)
	}
	g, err := group.New(cfg)
	if err != nil {
		f.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	n.Group, n.stop = g, cancel
	f.nodes[name] = n
	go func() {
		n.done <- g.Run(ctx, func(ctx context.Context, c *rebalancer.Claim) error {
			f.ledger.begin(name, c.Resource, c.Fence)
			f.signal()
			<-ctx.Done() // at the revoke, the stop and the loss
			f.ledger.end(name, c.Resource, c.Fence)
			f.signal()
			return nil
		})
	}()
	return n
}

func (f *fleet) signal() {
	select {
	case f.moved <- struct{}{}:
	default:
	}
}

// stop lets a node leave, as well as it can.
func (f *fleet) stop(name string) {
	f.t.Helper()
	n := f.nodes[name]
	delete(f.nodes, name)
	n.stop()
	select {
	case err := <-n.done:
		if err != nil {
			f.t.Errorf("node %s: %v", name, err)
		}
	case <-time.After(time.Minute):
		f.t.Errorf("node %s did not end within a minute", name)
	}
	if f.common != nil {
		return
	}
	if err := n.store.Close(); err != nil {
		f.t.Errorf("the store of node %s: %v", name, err)
	}
	if n.link != nil {
		n.link.Cut()
	}
}

// stopAll lets all nodes leave at once.
func (f *fleet) stopAll() {
	f.t.Helper()
	for _, n := range f.nodes {
		n.stop()
	}
	for _, name := range f.names() {
		f.stop(name)
	}
}

// until waits for a state of the ledger, and says how long it took.
func (f *fleet) until(what string, within time.Duration, ok func() bool) time.Duration {
	f.t.Helper()
	began := time.Now()
	end := time.NewTimer(within)
	defer end.Stop()
	tick := time.NewTicker(100 * time.Millisecond) // states of the store are not signalled
	defer tick.Stop()
	for !ok() {
		select {
		case <-f.moved:
		case <-tick.C:
		case <-end.C:
			f.t.Fatalf("not within %v: %s; worked: %v", within, what, f.ledger.counts())
		}
	}
	return time.Since(began)
}

// shares waits until the nodes work so many resources each, in any order of nodes.
func (f *fleet) shares(what string, want ...int) {
	f.t.Helper()
	slices.Sort(want)
	f.until(fmt.Sprintf("%s: shares of %v", what, want), time.Minute, func() bool {
		counts := f.ledger.counts()
		var got []int
		for name := range f.nodes {
			got = append(got, counts[name])
			delete(counts, name)
		}
		slices.Sort(got)
		return len(counts) == 0 && slices.Equal(got, want)
	})
}

// evenly waits until everything is worked, with counts that differ by one at most, and says how long it took.
func (f *fleet) evenly(what string, within time.Duration, resources int) time.Duration {
	f.t.Helper()
	return f.until(what+": everything is worked, in balance", within, func() bool {
		counts := f.ledger.counts()
		sum, low, high := 0, resources, 0
		for name := range f.nodes {
			n := counts[name]
			sum, low, high = sum+n, min(low, n), max(high, n)
		}
		return sum == resources && high-low <= 1
	})
}

// buffer keeps the end of what is written to it.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.b.Len() > 400<<10 {
		kept := slices.Clone(b.b.Bytes()[200<<10:])
		b.b.Reset()
		b.b.Write(kept)
	}
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

//go:build linux

package linear

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/internal/programtest"
	"github.com/rebalancer-go/rebalancer/internal/testserver"
)

var (
	seed      = flag.Uint64("seed", 0, "of the histories; 0: another one for each run")
	soak      = flag.Bool("soak", false, "record 100 histories for each store and version instead of a few")
	histories = flag.Int("histories", 0, "so many for each store; 0: 3, with -soak 100")
	only      = flag.String("store", "", "only stores whose name begins so")
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == asClient {
		os.Exit(runClient(os.Args[2:]))
	}
	os.Exit(testserver.ExitCode(m.Run(), 20*time.Second))
}

// Whatever happens to server, network and clients, what the clients were told has an explanation.
func TestHistories(t *testing.T) {
	t.Parallel()
	ran, skipped := 0, []version{older, newer}[random(t).IntN(2)]
	for _, k := range kinds() {
		if !strings.HasPrefix(k.name, *only) || !*soak && *only == "" && k.of == skipped {
			continue // of two versions of a server the short run takes one, by chance
		}
		ran++
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			rnd := random(t)
			record, r := k.start(t)
			for i := range count() {
				record(t, fmt.Sprintf("history %d", i), rnd).check(t, r)
				if t.Failed() {
					return
				}
			}
		})
	}
	if ran == 0 {
		t.Fatalf("no store has a name that begins with %q", *only)
	}
}

func count() int {
	switch {
	case *histories > 0:
		return *histories
	case *soak:
		return 100
	}
	return 3
}

// random is the chance of one store, and says how to have it again. The moments of the faults are by chance too, and cannot be had again.
func random(t *testing.T) *rand.Rand {
	t.Helper()
	return programtest.Random(t, *seed, func(test string, seed uint64) string {
		top, store, _ := strings.Cut(test, "/")
		return fmt.Sprintf("go test ./integration/linear -run '^%s$' -args -seed=%d -store=%s -histories=%d", top, seed, store, max(20, count()))
	})
}

// run is clients that make calls while faults happen.
type run struct {
	t     *testing.T
	sys   *system
	rnd   *rand.Rand
	h     *history
	links []*testserver.Link
	nodes []string
}

const clients = 4

// record lets clients make calls while faults happen, and at the end reads what is left.
func record(t *testing.T, sys *system, group string, rnd *rand.Rand) *history {
	t.Helper()
	r := &run{t: t, sys: sys, rnd: rnd, h: newHistory()}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var working sync.WaitGroup
	locks := map[string]*sync.Mutex{}
	newClient := func(number int, addr string) *client {
		node := fmt.Sprintf("node %d", number%3) // the first and the last have one name
		if locks[node] == nil {
			locks[node] = new(sync.Mutex)
		}
		return &client{group: group, number: number, node: node, store: sys.open(t, addr), ttl: sys.ttl, to: r.h, opening: locks[node],
			rnd: rand.New(rand.NewPCG(rnd.Uint64(), uint64(number)))}
	}
	var stores []backends.Store
	for i := range clients {
		addr := sys.addr
		if addr != "" {
			r.links = append(r.links, testserver.Proxy(t, addr))
			addr = r.links[i].Addr()
		}
		c := newClient(i, addr)
		r.nodes = append(r.nodes, c.node)
		stores = append(stores, c.store)
		working.Go(func() { c.run(ctx, 20*time.Millisecond) })
	}
	r.faults()
	stop()
	working.Wait()
	reader := newClient(clients, sys.addr)
	r.h.readRest(t, reader)
	for _, s := range append(stores, reader.store) {
		if err := s.Close(); err != nil {
			t.Errorf("closing a store: %v", err)
		}
	}
	for _, l := range r.links {
		l.Cut()
	}
	return r.h
}

// readRest lets a client read everything when all faults are over.
func (h *history) readRest(t *testing.T, c *client) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if !c.last(ctx) {
		t.Error("after all faults were over, nothing could be read for two minutes")
	}
}

// faults happen one after the other.
func (r *run) faults() {
	for range 2 + r.rnd.IntN(2) {
		r.h.progress(r.t, between)
		r.pause(0, 300*time.Millisecond)
		if r.links != nil && r.rnd.IntN(2) == 0 { // so that calls are under way when it happens
			for _, l := range r.links {
				l.Latency(60 * time.Millisecond)
			}
			r.pause(100*time.Millisecond, 300*time.Millisecond)
		}
		undo := r.fault()
		r.pause(30*time.Millisecond, r.sys.ttl/2)
		if r.rnd.IntN(4) == 0 { // long enough that sessions end
			r.pause(r.sys.ttl/2, r.sys.ttl)
		}
		undo()
		for _, l := range r.links {
			l.Heal()
		}
	}
	r.h.progress(r.t, between)
}

// between two faults so many transactions are applied, however slow the machine is.
const between = 25

func (r *run) pause(from, to time.Duration) {
	time.Sleep(from + time.Duration(r.rnd.Int64N(int64(to-from)))) // the schedule of the faults, not a synchronisation
}

// fault does something to server, network or clients, and returns what undoes it.
func (r *run) fault() (undo func()) {
	var all []func() func()
	n := r.rnd.IntN(clients)
	if r.links != nil {
		l := r.links[n]
		for _, f := range []func(){l.Cut, l.Blackhole, l.Deaf} {
			all = append(all, func() func() { f(); return l.Heal })
		}
	}
	if r.sys.kill != nil {
		kill := func() func() { r.sys.kill(); return r.sys.restart }
		all = append(all, kill, kill)
	}
	if r.sys.freeze != nil {
		all = append(all, func() func() { r.sys.freeze(); return r.sys.thaw })
	}
	if r.sys.cut != nil {
		for _, answers := range []bool{true, false} {
			all = append(all, func() func() { return r.sys.cut(r.nodes[n], answers) })
		}
	}
	return all[r.rnd.IntN(len(all))]()
}

//go:build linux

package stores

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/group"
)

// tripKinds are the stores of the table of round trips, with the most trips on the wire that one renewal of an idle node takes.
var tripKinds = map[string]float64{"sqlite": 0, "redis-7.0": 2, "postgres-15": 2, "zookeeper-3.8": 6}

// What a group asks of its store, counted and not timed: at rest, when a node leaves, and when one crashes.
func TestRoundTrips(t *testing.T) {
	t.Parallel()
	eachCounted(t, func(t *testing.T, k kind) { trips(t, k, tripKinds[k.name]) })
}

// eachCounted runs a test for each store of the table.
func eachCounted(t *testing.T, test func(t *testing.T, k kind)) {
	t.Helper()
	for _, k := range kinds() {
		if _, ok := tripKinds[k.name]; ok && strings.HasPrefix(k.name, *only) {
			t.Run(k.name, func(t *testing.T) { t.Parallel(); test(t, k) })
		}
	}
}

func trips(t *testing.T, k kind, most float64) {
	const resources = 6
	sys := k.start(t)
	sys.ttl = 6 * time.Second
	f := newFleet(t, sys, false)
	c := count(f)
	row := func(what string, d map[string]map[string]int) {
		t.Logf("| %-14s | %-22s | renewals %3d | reads %3d, of the group %2d | commits %2d | round trips %3d |",
			k.name, what, sum(d, "renew"), sum(d, "read"), sum(d, "read of the group"), sum(d, "commit"), sum(d, "trip"))
	}
	for i := range 3 {
		f.start(fmt.Sprintf("n%d", i), group.Static(names(resources)...))
	}
	f.shares("three nodes", 2, 2, 2)
	f.calm(c)

	before := c.now()
	f.until("each node has renewed six times", time.Minute, func() bool {
		for _, calls := range c.since(before) {
			if calls["renew"] < 6 {
				return false
			}
		}
		return true
	})
	rest := c.since(before)
	row("at rest, 3 nodes", rest)
	if n := sum(rest, "commit", "read", "other"); n > 0 {
		t.Errorf("at rest: %v", rest)
	}
	if n := float64(sum(rest, "trip")) / float64(sum(rest, "renew")); n > most {
		t.Errorf("at rest a renewal takes %.1f round trips, want %.0f at most: %v", n, most, rest)
	}

	coordinator := f.nodes["n0"].Status().Coordinator
	followers := slices.DeleteFunc(f.names(), func(name string) bool { return name == coordinator })
	if len(followers) != 2 {
		t.Fatalf("the coordinator is %q", coordinator)
	}
	before = c.now()
	f.stop(followers[0])
	f.shares("one left", 3, 3)
	left := c.since(before)
	row("a node leaves", left)
	if n := sum(left, "commit"); n > 12 {
		t.Errorf("%d commits until the work of a node that left was taken over: %v", n, left)
	}
	if n := left[followers[1]]["read of the group"]; n > 0 {
		t.Errorf("a follower has read the group %d times", n)
	}

	f.calm(c)
	before = c.now()
	c[followers[1]].dead.Store(true)
	f.until("the work of the dead one was taken over", time.Minute, func() bool { return f.ledger.counts()[coordinator] == resources })
	crashed := c.since(before)
	row("a node crashes", crashed)
	if n := sum(crashed, "commit"); n > 6 {
		t.Errorf("%d commits until the work of a node that crashed was taken over: %v", n, crashed)
	}
	c[followers[1]].dead.Store(false)
	f.shares("it is back", 3, 3)
}

// calm waits until no node has asked for anything but renewals, and polls, for two renewal intervals.
func (f *fleet) calm(c counts) {
	f.t.Helper()
	last, since := -1, time.Now()
	f.until("nothing happens", time.Minute, func() bool {
		if n := sum(c.now(), "commit", "read of the group"); n != last {
			last, since = n, time.Now()
		}
		return time.Since(since) > f.sys.ttl/3
	})
}

// The join of the 100th node makes nobody read the group but the coordinator, and wakes those alone that give something up.
func TestTheHundredthNode(t *testing.T) {
	t.Parallel()
	eachCounted(t, hundredth)
}

func hundredth(t *testing.T, k kind) {
	const nodes, resources = 100, 200
	sys := k.start(t)
	sys.ttl = 20 * time.Second
	f := newFleet(t, sys, false)
	f.common = sys.open(t, sys.addr)
	defer f.common.Close()
	defer f.stopAll()
	c := count(f)
	for i := range nodes - 1 {
		f.start(fmt.Sprintf("n%d", i), group.Static(names(resources)...))
	}
	f.evenly("99 nodes", 3*time.Minute, resources)
	f.calm(c)
	before := c.now()
	f.start("joins", group.Static(names(resources)...))
	f.evenly("100 nodes", time.Minute, resources)
	f.calm(c)
	d := c.since(before)
	delete(d, "joins")
	var readers, woken []string
	for name, calls := range d {
		if calls["read of the group"] > 0 {
			readers = append(readers, name)
		}
		if calls["read"]+calls["commit"] > 0 {
			woken = append(woken, name)
		}
	}
	slices.Sort(woken)
	t.Logf("| %-14s | the 100th node joins | read the group: %d of 99 | read or wrote anything: %d |", k.name, len(readers), len(woken))
	if len(readers) > 1 {
		t.Errorf("these have read the group: %s", strings.Join(readers, ", "))
	}
	if most := 6; len(woken) > most { // the coordinator, and who gives up one of 200 that 99 shared
		t.Errorf("%d nodes did something, want %d at most: %s", len(woken), most, strings.Join(woken, ", "))
	}
}

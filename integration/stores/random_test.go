//go:build linux

package stores

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/group"
)

// chaos is a random run: nodes come, go and lose their network, the server dies and freezes.
type chaos struct {
	*fleet
	rnd       *rand.Rand
	resources group.Resources
	count     int // resources
	next      int // node
	most      int // nodes
}

// Whatever happens to nodes, network and server, no resource is ever worked by two nodes, and after the last fault everything is owned again.
func TestRandomRuns(t *testing.T) {
	t.Parallel()
	overAll(t, func(t *testing.T, sys *system, global bool) {
		rnd := random(t)
		rounds, most, resources := 12, 3+rnd.IntN(4), 5+rnd.IntN(30)
		if *soak {
			rounds, most, resources = 100, 3+rnd.IntN(28), 5+rnd.IntN(296)
		}
		c := &chaos{fleet: newFleet(t, sys, global), rnd: rnd, resources: group.Static(names(resources)...), count: resources, most: most}
		for range 3 {
			c.join()
		}
		c.settle("at first")
		for i := range rounds {
			what, undo := c.fault()
			c.pause(200*time.Millisecond, sys.ttl)
			if rnd.IntN(3) == 0 { // long enough that others take over
				c.pause(sys.ttl, 2*sys.ttl)
			}
			undo()
			t.Logf("%s; %v", what, c.ledger)
			if i < rounds-1 {
				c.pause(0, sys.ttl/2)
			}
		}
		t.Logf("%d resources owned again %v after the last fault; ttl %v", resources, c.settle("after the last fault"), sys.ttl)
	})
}

func (c *chaos) pause(from, to time.Duration) {
	time.Sleep(from + time.Duration(c.rnd.Int64N(int64(to-from)))) // the schedule of the faults, not a synchronisation
}

func (c *chaos) join() {
	c.t.Helper()
	c.next++
	c.start(fmt.Sprintf("n%d", c.next), c.resources)
}

// settle waits until everything is worked, in balance.
func (c *chaos) settle(what string) time.Duration {
	c.t.Helper()
	return c.evenly(what, time.Minute, c.count)
}

// fault does something to the group, and says what it was and how it is undone.
func (c *chaos) fault() (what string, undo func()) {
	c.t.Helper()
	nothing := func() {}
	all := c.names()
	one := c.nodes[all[c.rnd.IntN(len(all))]]
	faults := []func() (string, func()){
		func() (string, func()) { c.join(); return "a node joins", nothing },
		func() (string, func()) { c.stop(one.name); return one.name + " leaves", nothing },
	}
	switch {
	case len(all) <= 2:
		faults = faults[:1]
	case len(all) >= c.most:
		faults = faults[1:]
	}
	if one.link != nil {
		heal := func() { one.link.Heal() }
		for _, f := range []struct {
			what string
			do   func()
		}{
			{"is cut off", one.link.Cut}, {"loses its packets", one.link.Blackhole}, {"hears no answers", one.link.Deaf},
			{"has 300 ms of latency", func() { one.link.Latency(300 * time.Millisecond) }},
		} {
			faults = append(faults, func() (string, func()) { f.do(); return one.name + " " + f.what, heal })
		}
	}
	if c.sys.kill != nil {
		faults = append(faults, func() (string, func()) { c.sys.kill(); return "the server is killed", c.sys.restart })
	}
	if c.sys.freeze != nil {
		faults = append(faults, func() (string, func()) { c.sys.freeze(); return "the server is frozen", c.sys.thaw })
	}
	return faults[c.rnd.IntN(len(faults))]()
}

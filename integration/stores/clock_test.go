//go:build linux

package stores

import (
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/group"
	"github.com/rebalancer-go/rebalancer/internal/testserver"
)

// The server's clock is stepped under nodes that work. To the server, sessions then end at once, or much later; nothing is worked twice at once, fences grow
// (the ledger sees to both), and the work goes on by itself.
func TestServersClockIsStepped(t *testing.T) {
	t.Parallel()
	for mode, global := range modes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			clock := testserver.NewClock(t)
			s := testserver.StartPostgresBy(t, clock)
			sys := &system{group: "g", ttl: 6 * time.Second, addr: s.Addr(), open: openPostgres(s)}
			stepped(t, sys, global, clock)
		})
	}
}

func stepped(t *testing.T, sys *system, global bool, clock *testserver.Clock) {
	f, six := newFleet(t, sys, global), group.Static(names(6)...)
	for _, name := range []string{"a", "b", "c"} {
		f.start(name, six)
	}
	f.shares("at first", 2, 2, 2)

	clock.Step(10 * sys.ttl)
	f.stay("set on: all sessions ended at once", 2, 2, 2)

	// Who is cut off does not learn that its session has ended, and trusts it for as long as it may: the others, whose sessions go on since they were renewed
	// a moment ago, must not begin before.
	f.nodes["b"].link.Cut()
	cutOff := time.NewTimer(sys.ttl * 35 / 100)
	<-cutOff.C
	clock.Step(sys.ttl * 7 / 10)
	f.until("the others have taken over", time.Minute, func() bool {
		counts := f.ledger.counts()
		return counts["a"] == 3 && counts["c"] == 3 && counts["b"] == 0
	})
	f.nodes["b"].link.Heal()
	f.stay("it came back", 2, 2, 2)

	clock.Step(-5 * sys.ttl)
	f.stay("set back", 2, 2, 2)
	f.start("d", six) // whose fences are greater, although the clock is not
	f.shares("one more", 1, 1, 2, 2)
	f.stop("a")
	f.stay("one left", 2, 2, 2)
}

// stay waits until the nodes work so many resources each, and went on so for a ttl and a half.
func (f *fleet) stay(what string, want ...int) {
	f.t.Helper()
	for end := time.Now().Add(2 * time.Minute); ; {
		f.shares(what, want...)
		began := f.ledger.begun()
		calm := time.NewTimer(f.sys.ttl * 3 / 2)
		<-calm.C
		if f.ledger.begun() == began {
			return
		}
		if time.Now().After(end) {
			f.t.Fatalf("%s: work begins again and again", what)
		}
	}
}

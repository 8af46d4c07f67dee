//go:build linux

package zookeeper

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/internal/testserver"
	"github.com/rebalancer-go/rebalancer/internal/waittest"
)

// keepRenewing renews as a node does until the store answered so often, and gives the longest time that it did not.
func keepRenewing(t *testing.T, h *session, times int) (longest time.Duration) {
	t.Helper()
	last := time.Now()
	for n := 0; n < times; {
		err := renew(within(t, h.TTL()/12), h)
		switch {
		case errors.Is(err, backends.ErrSessionLost):
			t.Fatalf("the session ended %v after it was renewed", time.Since(last))
		case err == nil:
			longest, last = max(longest, time.Since(last)), time.Now()
			n++
			<-time.After(h.TTL() / 12)
		case time.Since(last) > h.TTL():
			t.Fatalf("not renewed for %v: %v", time.Since(last), err)
		}
	}
	return longest
}

func TestAnEnsembleThatLosesAServer(t *testing.T) {
	t.Parallel()
	e := testserver.StartEnsemble(t, "", patient) // an election takes its time on a busy machine
	s := openStore(t, "zk://"+e.Addr())
	h := openSession(t, s, "n", 2*long)
	version := mustCommit(t, h, bind("k"))[0].Versions["k"]
	mustRenew(t, h)

	leader := e.Leader()
	e.Servers[leader].Kill()
	longest := keepRenewing(t, h, 3)
	t.Logf("the leader killed: not renewed for %v", longest)
	next := mustCommit(t, h, bind("k", backends.Check{Key: "k", Version: version}))[0].Versions["k"]
	if next-version < 1<<31 {
		t.Fatalf("version %d, then %d: another leader counts from another number", version, next)
	}
	alive := keepAlive(t, h)
	e.Servers[leader].Restart()
	e.Leader()
	alive()

	own := slices.IndexFunc(e.Servers, func(z *testserver.ZooKeeper) bool { return z.Addr() == h.l.current().server })
	e.Servers[own].Freeze()
	longest = keepRenewing(t, h, 3)
	t.Logf("the server frozen: not renewed for %v", longest)
	e.Servers[own].Thaw()
	e.Leader()
	if !has(t, h, "k") || h.Opened().Incarnation != s.stamp().Incarnation {
		t.Fatal("the ensemble lost something")
	}
}

// A follower that is cut off from its leader acknowledges no renewal, and the session ends elsewhere no sooner than a TTL after the last renewal
// that it acknowledged was sent.
func TestAFollowerThatIsCutOffFromItsLeader(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	e := testserver.StartEnsemble(t, "", patient)
	leader := e.Leader()
	follower := (leader + 1) % 3
	behind, before := openStore(t, "zk://"+e.Servers[follower].Addr()), openStore(t, "zk://"+e.Servers[leader].Addr())
	watcher := openSession(t, before, "w", long)
	alive := keepAlive(t, watcher)
	defer alive()
	for round := 0; round < 4; round++ {
		h := openSession(t, behind, "n", 10*tick)
		mustCommit(t, h, bind("k"))
		last := time.Now() // when the last renewal was sent that was acknowledged
		mustRenew(t, h)
		cut := last.Add(h.TTL()/4 + time.Duration(rng.Int64N(int64(h.TTL()/2))))
		for isCut := false; has(t, watcher, "k"); {
			start := time.Now()
			if err := renew(within(t, h.TTL()/6), h); err == nil {
				last = start
				if isCut && start.After(cut.Add(tick)) {
					t.Fatalf("round %d: renewed %v after the cut", round, start.Sub(cut))
				}
			}
			if !isCut && time.Now().After(cut) {
				e.Link(follower, leader).Blackhole()
				isCut, cut = true, time.Now()
			}
			<-time.After(time.Until(start.Add(h.TTL() / 6)))
		}
		lived := time.Since(last)
		t.Logf("round %d: it ended at most %v after the last renewal was sent; TTL %v, timeout %v", round, lived, h.TTL(), h.lease.timeout)
		if lived < h.TTL() {
			t.Fatalf("round %d: the session ended %v after its last renewal was sent, before its TTL of %v", round, lived, h.TTL())
		}
		e.Link(follower, leader).Heal()
		h.lost()
		waittest.Until(t, "the follower follows", func() bool {
			answer, err := e.Servers[follower].Ask(t.Context(), "srvr")
			return err == nil && strings.Contains(answer, "Mode: follower")
		})
	}
}

//go:build linux

package zookeeper

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/internal/testserver"
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
	h := openSession(t, s, "n", 40*time.Second)
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
	e.Servers[leader].Restart()

	own := slices.IndexFunc(e.Servers, func(z *testserver.ZooKeeper) bool { return z.Addr() == h.l.current().server })
	e.Leader()
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
	e := testserver.StartEnsemble(t, "")
	leader := e.Leader()
	follower := (leader + 1) % 3
	behind, before := openStore(t, "zk://"+e.Servers[follower].Addr()), openStore(t, "zk://"+e.Servers[leader].Addr())
	watcher := openSession(t, before, "w", 10*time.Second)
	for round := range 4 {
		eventually(t, "the follower follows", func() bool {
			answer, err := e.Servers[follower].Ask(t.Context(), "srvr")
			return err == nil && len(answer) > 50
		})
		h := openSession(t, behind, "n", 5*tick)
		mustCommit(t, h, bind("k"))
		cut := time.Now().Add(h.TTL() + time.Duration(rng.Int64N(int64(h.TTL()))))
		var last time.Time // when the last renewal was sent that was acknowledged
		for isCut := false; !h.over() && time.Since(last) < 2*h.TTL() || last.IsZero(); {
			start := time.Now()
			if err := renew(within(t, h.TTL()/12), h); err == nil {
				last = start
				if isCut && time.Since(cut) > tick {
					t.Fatalf("round %d: renewed %v after the cut", round, time.Since(cut))
				}
			}
			if !isCut && time.Now().After(cut) {
				e.Link(follower, leader).Blackhole()
				isCut, cut = true, time.Now()
			}
			<-time.After(time.Until(start.Add(h.TTL() / 6)))
			if isCut && !has(t, watcher, "k") {
				break
			}
			mustRenew(t, watcher)
		}
		eventually(t, "the session ended", func() bool { mustRenew(t, watcher); return !has(t, watcher, "k") })
		lived := time.Since(last)
		t.Logf("round %d: it ended at most %v after the last renewal was sent; TTL %v, timeout %v", round, lived, h.TTL(), h.lease.timeout)
		if lived < h.TTL() {
			t.Fatalf("round %d: the session ended %v after its last renewal was sent, before its TTL of %v", round, lived, h.TTL())
		}
		e.Link(follower, leader).Heal()
		h.lost()
	}
}

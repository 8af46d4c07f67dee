package redis

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/internal/testserver"
)

// A replica that lags is promoted while nodes still reach the old master. With WithReplicas nothing counts there any more; versions grow on
// the new one, whose incarnation is another.
func TestLaggingReplicaIsPromoted(t *testing.T) {
	onEach(t, func(t *testing.T, kind testserver.RedisKind) {
		master := testserver.StartRedis(t, kind)
		link := testserver.Proxy(t, master.Addr())
		_, port, _ := strings.Cut(link.Addr(), ":")
		replica := testserver.StartReplica(t, master, "--replicaof", "127.0.0.1 "+port)
		h := begin(t, connect(t, master.Addr(), WithReplicas(1)), time.Minute)
		first := mustPut(t, h, "k", true)
		link.Cut() // what comes now does not reach the replica
		last := mustPutUnsafely(t, master, h, "k")
		if last <= first {
			t.Fatal("nothing was written to the old master alone")
		}
		if _, err := renewIn(t, h, h.Opened().Incarnation); err == nil {
			t.Fatal("a renewal counted that no replica has")
		}
		res := commitOne(t, h, h.Opened().Incarnation, backends.Txn{Puts: []backends.Put{{Key: "l"}}})
		wantErr(t, "a commit that no replica has", res.Err, backends.ErrUnknown)
		replica.Must("REPLICAOF", "NO", "ONE")
		testserver.StartReplica(t, replica)
		again := begin(t, connect(t, replica.Addr(), WithReplicas(1)), time.Minute)
		if o := again.Opened(); o.Incarnation == h.Opened().Incarnation || o.Since.IsZero() {
			t.Fatalf("stamp of the promoted one: %+v, before %+v", o, h.Opened())
		}
		if v := versionOf(t, again, "k"); v != first {
			t.Fatalf("version %d at the promoted one: it was to lag, at %d", v, first)
		}
		if after := mustPut(t, again, "k", true); after <= last {
			t.Fatalf("version %d after %d", after, last)
		}
		if _, err := renewIn(t, h, h.Opened().Incarnation); err == nil {
			t.Fatal("a renewal at the old master counted")
		}
	})
}

// mustPutUnsafely writes through a store that waits for no replica.
func mustPutUnsafely(t *testing.T, server *testserver.RedisServer, h backends.Session, key string) int64 {
	t.Helper()
	by := begin(t, connect(t, server.Addr()), time.Minute)
	if by.Opened().Incarnation != h.Opened().Incarnation {
		t.Fatalf("another incarnation")
	}
	return mustPut(t, by, key, true)
}

// With WithReplicas an incarnation begins when enough replicas have it: before, the old master may go on with one of them.
func TestIncarnationBeginsWithItsReplicas(t *testing.T) {
	onEach(t, func(t *testing.T, kind testserver.RedisKind) {
		master := testserver.StartRedis(t, kind)
		s := connect(t, master.Addr(), WithReplicas(1))
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		if _, err := s.Open(ctx, backends.SessionOptions{Group: "g", TTL: time.Minute}); err == nil {
			t.Fatal("a session was opened that no replica has")
		}
		alone := begin(t, connect(t, master.Addr()), time.Minute) // makes no difference: the record says that it waits
		young, err := renewIn(t, alone, alone.Opened().Incarnation)
		if err != nil || young.Since.Before(young.Time) {
			t.Fatalf("it began without its replicas: %+v, %v", young.Stamp, err)
		}
		testserver.StartReplica(t, master)
		var h backends.Session
		eventually(t, 20*time.Second, func() (err error) {
			h, err = s.Open(short(t), backends.SessionOptions{Group: "g", TTL: time.Minute})
			return err
		})
		began := h.Opened()
		if began.Since.Before(young.Time) {
			t.Fatalf("it began at %v, and at %v it had not", began.Since, young.Time)
		}
		if r := mustRenew(t, h); !r.Since.Equal(began.Since) || r.Incarnation != began.Incarnation {
			t.Fatalf("it began again: %+v, then %+v", began, r.Stamp)
		}
	})
}

// A server that was a replica in between may have lost writes, even if nobody wrote to the other one.
func TestMasterThatWasReplicaInBetween(t *testing.T) {
	onEach(t, func(t *testing.T, kind testserver.RedisKind) {
		master := testserver.StartRedis(t, kind)
		replica := testserver.StartReplica(t, master)
		h := begin(t, connect(t, master.Addr()), time.Minute)
		mustPut(t, h, "k", true)
		replica.Until("EXISTS "+spaceOf(DefaultPrefix, "g").keys[10], "1")
		replica.Must("REPLICAOF", "NO", "ONE")
		master.Must("REPLICAOF", "127.0.0.1", strconv.Itoa(replica.Port))
		master.Until("INFO replication", "master_link_status:up")
		_, err := renewIn(t, h, h.Opened().Incarnation)
		if err == nil || errors.Is(err, backends.ErrSessionLost) || !strings.Contains(err.Error(), "replica") {
			t.Fatalf("renewal at a replica: %v", err)
		}
		master.Must("REPLICAOF", "NO", "ONE")
		_, err = renewIn(t, h, h.Opened().Incarnation)
		wantErr(t, "renewal at the master that was a replica", err, backends.ErrIncarnation)
	})
}

// With min-replicas-to-write a master stops by itself, but later: a new incarnation begins later by as much.
func TestMinReplicasDelayTheIncarnation(t *testing.T) {
	onEach(t, func(t *testing.T, kind testserver.RedisKind) {
		master := testserver.StartRedis(t, kind)
		replica := testserver.StartReplica(t, master)
		_ = replica
		master.Must("CONFIG", "SET", "min-replicas-to-write", "1", "min-replicas-max-lag", "7")
		master.Until("INFO replication", "min_slaves_good_slaves:1")
		s := connect(t, master.Addr())
		h := begin(t, s, time.Minute)
		o := h.Opened()
		if late := o.Since.Sub(o.Time); late != 7*time.Second+lagMargin {
			t.Fatalf("the incarnation begins %v later", late)
		}
		if w := warnings(t, s); strings.Contains(w, "unsafe under failover") {
			t.Fatal(w)
		}
		replica.Kill()
		eventually(t, 30*time.Second, func() error {
			if _, err := renewIn(t, h, o.Incarnation); err == nil || !strings.Contains(err.Error(), "min-replicas-to-write") {
				return errors.New("it still acknowledges")
			}
			return nil
		})
	})
}

func TestUnsafeUnderFailoverIsSaid(t *testing.T) {
	onEach(t, func(t *testing.T, kind testserver.RedisKind) {
		master := testserver.StartRedis(t, kind, "--appendonly", "yes", "--appendfsync", "always")
		s := connect(t, master.Addr())
		begin(t, s, time.Minute)
		if w := warnings(t, s); w != "" {
			t.Fatalf("warnings for a single server: %s", w)
		}
		testserver.StartReplica(t, master)
		if w := warnings(t, s); !strings.Contains(w, "unsafe under failover") {
			t.Fatalf("warnings with a replica: %q", w)
		}
		if w := warnings(t, connect(t, master.Addr(), WithReplicas(1))); w != "" {
			t.Fatalf("warnings with WithReplicas(1): %s", w)
		}
		testserver.StartReplica(t, master)
		testserver.StartReplica(t, master)
		if w := warnings(t, connect(t, master.Addr(), WithReplicas(1))); !strings.Contains(w, "WithReplicas(2)") {
			t.Fatalf("warnings with one of three replicas: %q", w)
		}
	})
}

func warnings(t *testing.T, s *Store) string {
	t.Helper()
	w, err := s.Warnings(short(t))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(w, "\n")
}

// Sentinel promotes the replica when the master is gone, or frozen; the store follows, in a new incarnation.
func TestSentinelFailover(t *testing.T) {
	onEach(t, func(t *testing.T, kind testserver.RedisKind) {
		master := testserver.StartRedis(t, kind)
		replica := testserver.StartReplica(t, master)
		sentinel := testserver.StartSentinel(t, master, 500*time.Millisecond)
		sentinel.Until("SENTINEL REPLICAS master", strconv.Itoa(replica.Port))
		client := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "master", SentinelAddrs: []string{sentinel.Addr()}, ContextTimeoutEnabled: true})
		s := over(t, client)
		h := begin(t, s, time.Minute)
		before := mustPut(t, h, "k", true)
		if w := warnings(t, s); !strings.Contains(w, "unsafe under failover") {
			t.Fatalf("warnings: %q", w)
		}
		replica.Until("EXISTS "+spaceOf(DefaultPrefix, "g").keys[10], "1")
		hints := make(chan struct{}, 100)
		if err := h.Listen(t.Context(), "a", func() { hints <- struct{}{} }); err != nil {
			t.Fatal(err)
		}
		master.Freeze()
		var r backends.RenewReply
		eventually(t, 40*time.Second, func() (err error) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			r, err = h.Renew(ctx, backends.RenewRequest{Incarnation: h.Opened().Incarnation})
			if errors.Is(err, backends.ErrIncarnation) {
				return nil
			}
			return errors.Join(errors.New("no other incarnation"), err)
		})
		if _, err := renewIn(t, h, r.Incarnation); err != nil {
			t.Fatalf("renewal at the promoted one: %v", err)
		}
		res := commitOne(t, h, r.Incarnation, backends.Txn{Puts: []backends.Put{{Key: "k", Bound: true}}, Wake: []string{"a"}})
		if res.Err != nil || res.Versions["k"] <= before {
			t.Fatalf("commit at the promoted one: %+v, the version before was %d", res, before)
		}
		select {
		case <-hints:
		case <-time.After(20 * time.Second):
			t.Fatal("no hint came from the promoted one")
		}
		master.Thaw() // Sentinel makes it a replica
		master.Until("INFO replication", "role:slave")
		if _, err := renewIn(t, h, r.Incarnation); err != nil {
			t.Fatalf("renewal after the old master came back: %v", err)
		}
	})
}

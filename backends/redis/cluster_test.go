package redis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/backends/storetest"
	"github.com/rebalancer-go/rebalancer/internal/testserver"
)

func clusterClient(nodes []*testserver.RedisServer) *redis.ClusterClient {
	o := &redis.ClusterOptions{ContextTimeoutEnabled: true}
	for _, n := range nodes {
		o.Addrs = append(o.Addrs, n.Addr())
	}
	return redis.NewClusterClient(o)
}

// The contract on a Cluster of three. Its cases share the servers, so each has a prefix of its own.
func TestContractOnACluster(t *testing.T) {
	t.Parallel()
	nodes := testserver.StartRedisCluster(t, testserver.Redis, 3)
	var places atomic.Int64
	t.Run("contract", func(t *testing.T) {
		storetest.Run(t, storetest.Driver{TTL: 3 * time.Second, Rounds: 5, Place: func(t *testing.T) storetest.Place {
			prefix := fmt.Sprintf("place%d:", places.Add(1))
			const why = "the servers are shared by all cases; the contract on a single server shows it"
			return storetest.Place{
				Open: func(t *testing.T) backends.Store { return over(t, clusterClient(nodes), WithPrefix(prefix)) },
				Cannot: map[storetest.Ability]string{
					storetest.Lose: why, storetest.RollBack: why, storetest.StepBack: why, storetest.Rows: why,
				},
			}
		}})
	})
}

func TestClusterSpreadsGroupsAndListsThem(t *testing.T) {
	onEach(t, func(t *testing.T, kind testserver.RedisKind) {
		nodes := testserver.StartRedisCluster(t, kind, 3)
		s := over(t, clusterClient(nodes))
		var want []string
		for i := range 12 {
			group := fmt.Sprintf("group %d {x}%%", i)
			want = append(want, group)
			h, err := s.Open(short(t), backends.SessionOptions{Group: group, TTL: time.Minute})
			if err != nil {
				t.Fatal(err)
			}
			mustPut(t, h, "k", false)
			mustPut(t, h, "l", true)
			if v := versionOf(t, h, "l"); v == 0 {
				t.Fatal("nothing was put")
			}
		}
		slices.Sort(want)
		got, err := s.Groups(short(t))
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("groups %q, %v; want %q", got, err, want)
		}
		used := 0
		for _, n := range nodes {
			if strings.TrimSpace(n.Must("DBSIZE")) != "0" {
				used++
			}
		}
		if used != 3 {
			t.Fatalf("the groups are on %d of 3 nodes", used)
		}
	})
}

// A slot that moves to another node takes the group with it: another server, another incarnation.
func TestClusterSlotMoves(t *testing.T) {
	for _, replicas := range []int{0, 1} {
		t.Run(fmt.Sprintf("replicas%d", replicas), func(t *testing.T) {
			onEach(t, func(t *testing.T, kind testserver.RedisKind) { slotMoves(t, kind, replicas) })
		})
	}
}

func slotMoves(t *testing.T, kind testserver.RedisKind, replicas int) {
	nodes := testserver.StartRedisCluster(t, kind, 2)
	if replicas > 0 {
		for _, n := range nodes {
			testserver.StartClusterReplica(t, nodes, n)
		}
	}
	s := over(t, clusterClient(nodes), WithReplicas(replicas))
	h := begin(t, s, time.Minute)
	before := mustPut(t, h, "k", true)
	sp := spaceOf(DefaultPrefix, "g")
	slot := strings.TrimSpace(nodes[0].Must("CLUSTER", "KEYSLOT", sp.keys[0]))
	from, to := nodes[0], nodes[1]
	if strings.TrimSpace(from.Must("CLUSTER", "COUNTKEYSINSLOT", slot)) == "0" {
		from, to = to, from
	}
	to.Must("CLUSTER", "SETSLOT", slot, "IMPORTING", strings.TrimSpace(from.Must("CLUSTER", "MYID")))
	from.Must("CLUSTER", "SETSLOT", slot, "MIGRATING", strings.TrimSpace(to.Must("CLUSTER", "MYID")))
	for _, key := range strings.Fields(from.Must("CLUSTER", "GETKEYSINSLOT", slot, "100")) {
		from.Must("MIGRATE", "127.0.0.1", fmt.Sprint(to.Port), key, "0", "5000")
	}
	for _, n := range []*testserver.RedisServer{to, from} {
		n.Must("CLUSTER", "SETSLOT", slot, "NODE", strings.TrimSpace(to.Must("CLUSTER", "MYID")))
	}
	r, err := renewIn(t, h, h.Opened().Incarnation) // it follows by itself
	wantErr(t, "renewal at the other node", err, backends.ErrIncarnation)
	eventually(t, 10*time.Second, func() error { _, err := renewIn(t, h, r.Incarnation); return err })
	if v := versionOf(t, h, "k"); v != before {
		t.Fatalf("version %d, it was %d", v, before)
	}
}

// A master of a Cluster is killed, and its replica takes its place.
func TestClusterFailover(t *testing.T) {
	t.Parallel()
	nodes := testserver.StartRedisCluster(t, testserver.Redis, 3)
	s := over(t, clusterClient(nodes))
	h := begin(t, s, 5*time.Minute)
	var master *testserver.RedisServer
	for _, n := range nodes {
		if strings.TrimSpace(n.Must("DBSIZE")) != "0" {
			master = n
		}
	}
	testserver.StartClusterReplica(t, nodes, master)
	inc := h.Opened().Incarnation
	if r, err := renewIn(t, h, inc); errors.Is(err, backends.ErrIncarnation) {
		inc = r.Incarnation // its replication id changed with the first replica
	} else if err != nil {
		t.Fatal(err)
	}
	res := commitOne(t, h, inc, backends.Txn{Puts: []backends.Put{{Key: "k", Bound: true}}})
	if res.Err != nil {
		t.Fatal(res.Err)
	}
	if w := warnings(t, s); !strings.Contains(w, "unsafe under failover") {
		t.Fatalf("warnings: %q", w)
	}
	master.Kill()
	var r backends.RenewReply
	eventually(t, 2*time.Minute, func() (err error) {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		if r, err = h.Renew(ctx, backends.RenewRequest{Incarnation: inc}); errors.Is(err, backends.ErrIncarnation) {
			return nil
		}
		return errors.Join(errors.New("no other incarnation"), err)
	})
	again := commitOne(t, h, r.Incarnation, backends.Txn{Puts: []backends.Put{{Key: "k", Bound: true}}})
	if again.Err != nil || again.Versions["k"] <= res.Versions["k"] {
		t.Fatalf("commit at the promoted one: %+v after %+v", again, res)
	}
}

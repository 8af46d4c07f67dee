//go:build linux

package zookeeper

import (
	"maps"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/internal/testserver"
	"github.com/rebalancer-go/rebalancer/internal/waittest"
)

// opcodes that are looked at here.
var opcodes = map[int32]string{1: "create", 2: "delete", 3: "exists", 4: "get", 5: "set", 9: "sync", 12: "list", 14: "multi"}

// What a call asks of the servers, counted: writes are multi, set, create and delete.
func TestRequestsAreCounted(t *testing.T) {
	t.Parallel()
	server := testserver.StartZooKeeper(t, "", patient)
	s := openStore(t, "zk://"+server.Addr())
	h, other := openSession(t, s, "n", long), openSession(t, openStore(t, "zk://"+server.Addr()), "m", long)
	mustCommit(t, other, bind("leader"), bind("member/m"))
	mustCommit(t, h, put("settings"), put("assign/n/"), bind("member/n"))
	if err := other.Listen(t.Context(), "node/n", func() {}); err != nil {
		t.Fatal(err)
	}
	inc := h.Opened().Incarnation
	renewal := func(r backends.RenewRequest) func() error {
		r.Incarnation = inc
		return func() error { _, err := h.Renew(t.Context(), r); return err }
	}
	commit := func(txns ...backends.Txn) func() error {
		return func() error {
			results, err := commitAll(t.Context(), h, txns...)
			for _, r := range results {
				if r.Err != nil {
					return r.Err
				}
			}
			return err
		}
	}
	claim := func(name string) backends.Txn {
		key := "claim/=" + name
		return backends.Txn{Checks: []backends.Check{{Key: key}}, Puts: []backends.Put{{Key: key, Bound: true}}, Wake: []string{"node/n"}}
	}
	for _, first := range []string{"a", "b", "c", "d"} { // so that the buckets are there
		for _, x := range "0123456789abcdef" {
			mustCommit(t, h, claim(first+string(x)))
		}
	}
	mustRenew(t, h)
	coordinate := renewal(backends.RenewRequest{Digests: []string{"member/"}})
	for what, c := range map[string]struct {
		call func() error
		want map[string]int
	}{
		"a renewal":                    {renewal(backends.RenewRequest{}), map[string]int{"multi": 1}},
		"a renewal of an idle node":    {renewal(backends.RenewRequest{Keys: []string{"settings", "assign/n/", "leader"}}), map[string]int{"multi": 1, "get": 3, "exists": 1}},
		"a renewal of the coordinator": {coordinate, map[string]int{"multi": 1, "exists": buckets + 2}},
		"a claim, which wakes one":     {commit(claim("one")), map[string]int{"multi": 1, "get": 2}},
		"three claims":                 {commit(claim("x"), claim("y"), claim("z")), map[string]int{"multi": 3, "get": 6}},
		"a read of a node's own assignment": {func() error {
			_, err := h.Read(t.Context(), backends.ReadRequest{Prefixes: []string{"assign/n/"}})
			return err
		}, map[string]int{"sync": 1, "list": 2, "get": 2}},
	} {
		if err := coordinate(); err != nil { // from then on only what changes is read
			t.Fatal(err)
		}
		var mu sync.Mutex
		got := map[string]int{}
		f := func(opcode int32) {
			mu.Lock()
			defer mu.Unlock()
			if name := opcodes[opcode]; name != "" {
				got[name]++
			}
		}
		s.counted.Store(&f)
		err := c.call()
		s.counted.Store(nil)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		mu.Lock()
		if !maps.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", what, got, c.want)
		}
		mu.Unlock()
	}
}

// A renewal after a long silence is sent twice, since the leader need not have heard of the session when the first one is acknowledged.
func TestARenewalAfterALongSilenceIsSentTwice(t *testing.T) {
	t.Parallel()
	s := openStore(t, "zk://"+testserver.StartZooKeeper(t, "", patient).Addr())
	h := openSession(t, s, "n", 30*time.Second)
	renewals := func() int {
		var multis atomic.Int64
		f := func(opcode int32) {
			if opcodes[opcode] == "multi" {
				multis.Add(1)
			}
		}
		s.counted.Store(&f)
		defer s.counted.Store(nil)
		mustRenew(t, h)
		return int(multis.Load())
	}
	once := func() bool { return renewals() == 1 } // soon, or the machine was busy and the silence long
	waittest.Until(t, "one write for a renewal of a new session", once)
	waittest.Until(t, "nothing was sent for long", func() bool { return !h.lease.assured(time.Now(), h.l.heardAt()) && h.lease.silent(h.lease.early()) })
	start := time.Now()
	if n := renewals(); n != 2 || time.Since(start) < h.lease.relay() {
		t.Fatalf("%d writes in %v, want 2 and a wait of %v", n, time.Since(start), h.lease.relay())
	}
	waittest.Until(t, "the leader has heard of it", func() bool { return h.lease.assured(time.Now(), time.Time{}) })
	waittest.Until(t, "one write for a renewal after another", once)
}

// silent tells whether the last request was answered at least d ago.
func (l *lease) silent(d time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.touches) == 0 || time.Since(l.touches[len(l.touches)-1].heard) >= d
}

//go:build linux

package zookeeper

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/internal/testserver"
	"github.com/rebalancer-go/rebalancer/internal/waittest"
)

// Nothing comes near the packet limit: 20,000 resources with names of 150 bytes are 3 MB of names.
func TestManyResources(t *testing.T) {
	t.Parallel()
	const n = 20_000
	server := testserver.StartZooKeeper(t, "", patient)
	s := openStore(t, "zk://"+server.Addr())
	h, other := openSession(t, s, "n", long), openSession(t, s, "m", long)
	key := func(i int) string { return fmt.Sprintf("claim/=%s/%d", strings.Repeat("name", 35), i) }
	start := time.Now()
	for from := 0; from < n; from += 500 {
		var txns []backends.Txn
		for i := from; i < from+500; i++ {
			txns = append(txns, bind(key(i), backends.Check{Key: key(i)}))
		}
		mustCommit(t, h, txns...)
		mustRenew(t, h)
		mustRenew(t, other)
	}
	t.Logf("claimed in %v", time.Since(start))
	alive := keepAlive(t, h, other)
	start = time.Now()
	r, err := other.Read(t.Context(), backends.ReadRequest{Prefixes: []string{"claim/"}})
	if err != nil || len(r.Entries) != n {
		t.Fatalf("read %d entries, %v", len(r.Entries), err)
	}
	t.Logf("read in %v", time.Since(start))
	for _, what := range []string{"digested", "digested again"} {
		start = time.Now()
		d, err := other.digests(t.Context(), []string{"claim/"})
		if err != nil || d["claim/"].Sum != r.Digests["claim/"].Sum || d["claim/"].Count != n {
			t.Fatalf("digest %+v, want %+v, %v", d["claim/"], r.Digests["claim/"], err)
		}
		t.Logf("%s in %v", what, time.Since(start))
	}
	if took := time.Since(start); took > 2*time.Second {
		t.Errorf("what did not change was read again: %v", took)
	}
	alive()
	if err := h.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if d, err := other.digests(t.Context(), []string{"claim/"}); err != nil || d["claim/"].Count != 0 {
		t.Fatalf("after the end of the session: %+v, %v", d, err)
	}
	start = time.Now()
	defer keepAlive(t, other)()
	other.sweepFor(t.Context(), time.Minute)
	t.Logf("swept in %v", time.Since(start))
	left, err := other.cached(t.Context(), other.via(), other.dir.below("claim/", nil))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range flatten(left) {
		if !e.deleted() {
			t.Fatalf("%q is left", e.key)
		}
	}
}

// A digest of more than can be read in the time of a renewal is left out, and read by and by.
func TestADigestDoesNotMakeARenewalLate(t *testing.T) {
	t.Parallel()
	server := testserver.StartZooKeeper(t, "", patient)
	link := testserver.Proxy(t, server.Addr())
	h, w := openSession(t, openStore(t, "zk://"+link.Addr()), "n", long), openSession(t, openStore(t, "zk://"+server.Addr()), "w", long)
	alive := keepAlive(t, h, w)
	for from := 0; from < 800; from += 200 {
		var txns []backends.Txn
		for i := from; i < from+200; i++ {
			txns = append(txns, put(fmt.Sprintf("resource/=%d", i)), put(fmt.Sprintf("member/=%d", i)))
		}
		mustCommit(t, w, txns...)
	}
	alive()
	link.Latency(60 * time.Millisecond)
	late := 0
	for n := 0; ; n++ {
		start := time.Now()
		r, err := h.Renew(within(t, 1200*time.Millisecond), backends.RenewRequest{Incarnation: h.Opened().Incarnation, Digests: []string{"resource/", "member/"}})
		if err != nil {
			t.Fatalf("renewal %d failed after %v: %v", n, time.Since(start), err)
		}
		if r.Digests["resource/"].Count == 800 && r.Digests["member/"].Count == 800 {
			break
		}
		for prefix, d := range r.Digests {
			if d.Count != 800 {
				t.Fatalf("a digest of a part of %q: %+v", prefix, d)
			}
		}
		if late++; late > 20 {
			t.Fatal("the digests are never read")
		}
		mustRenew(t, w)
	}
	if late == 0 {
		t.Log("everything was read at once: the machine is too fast for this test to show anything")
	}
	t.Logf("%d renewals without a digest", late)
}

// keepAlive renews sessions until its result is called.
func keepAlive(t *testing.T, sessions ...*session) (stop func()) {
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			for _, h := range sessions {
				if err := renew(t.Context(), h); err != nil {
					t.Errorf("renewal: %v", err)
					return
				}
			}
			select {
			case <-quit:
				return
			case <-time.After(time.Second):
			}
		}
	}()
	return func() { close(quit); <-done }
}

func TestATransactionAboveThePacketLimitIsRefused(t *testing.T) {
	t.Parallel()
	server := testserver.StartZooKeeper(t, "", patient)
	h := openSession(t, openStore(t, "zk://"+server.Addr()), "n", long)
	large := func(n int) backends.Txn {
		var x backends.Txn
		for i := range n {
			x.Puts = append(x.Puts, backends.Put{Key: fmt.Sprintf("checkpoint/%d", i), Value: make([]byte, 64<<10)})
		}
		return x
	}
	mustCommit(t, h, large(15))
	if _, err := commitAll(t.Context(), h, put("small"), large(16)); !errors.Is(err, backends.ErrInvalid) {
		t.Fatalf("a transaction of 1 MB: %v", err)
	}
	if has(t, h, "small") {
		t.Fatal("an error says that nothing was applied")
	}
	mustRenew(t, h)
}

// Watches are set again when the connection comes back, in requests that are not too long, and what was missed is told.
func TestWatchesOutliveTheirConnection(t *testing.T) {
	t.Parallel()
	const n, length = 3000, 400 // 1.2 MB of paths
	server := testserver.StartZooKeeper(t, "", patient)
	link := testserver.Proxy(t, server.Addr())
	h := openSession(t, openStore(t, "zk://"+link.Addr()), "n", long)
	w := openSession(t, openStore(t, "zk://"+server.Addr()), "w", long)
	address := func(i int) string { return fmt.Sprintf("node/%s%d", strings.Repeat("x", length), i) }
	heard := make([]atomic.Int64, n)
	stop := keepAlive(t, h, w)
	if err := each(n, func(i int) error { return h.Listen(t.Context(), address(i), func() { heard[i].Add(1) }) }); err != nil {
		t.Fatal(err)
	}
	stop()
	link.Cut()
	wake := func(i int) {
		mustCommit(t, w, backends.Txn{Puts: []backends.Put{{Key: "k"}}, Wake: []string{address(i)}})
	}
	for i := 0; i < n; i += 100 {
		wake(i)
	}
	link.Heal()
	defer keepAlive(t, h, w)()
	for i := 0; i < n; i += 100 {
		waittest.Until(t, "a hint that was missed arrived", func() bool { return heard[i].Load() > 0 })
	}
	for i := 50; i < n; i += 100 {
		wake(i)
		waittest.Until(t, "a hint arrived", func() bool { return heard[i].Load() > 0 })
	}
	total := int64(0)
	for i := range heard {
		total += heard[i].Load()
	}
	if total > 2*n/50 {
		t.Errorf("%d hints for %d", total, n/50)
	}
}

//go:build linux

package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/internal/testserver"
	"github.com/rebalancer-go/rebalancer/internal/waittest"
)

func TestTheGrantedTimeoutIsReadFromTheAnswer(t *testing.T) {
	t.Parallel()
	s := openStore(t, "zk://"+testserver.StartZooKeeper(t, "").Addr())
	for wished, granted := range map[time.Duration]time.Duration{
		time.Millisecond: 2 * tick, 3 * time.Second: 3 * time.Second, time.Hour: 20 * tick, 100 * 24 * time.Hour: 20 * tick,
	} {
		if got := openSession(t, s, "n", wished).TTL(); got != granted*4/5 {
			t.Errorf("a TTL of %v for a wish of %v, want four fifths of %v", got, wished, granted)
		}
	}
}

// A key that is deleted and put again has the data version again that it had. A release that comes late must not take it for the same.
func TestALateReleaseDoesNotFreeWhatOthersTook(t *testing.T) {
	t.Parallel()
	s := openStore(t, "zk://"+testserver.StartZooKeeper(t, "", patient).Addr())
	a, b := openSession(t, s, "a", long), openSession(t, s, "b", long)
	first := mustCommit(t, a, bind("claim/=r"))[0].Versions["claim/=r"]
	late := &commit{h: a, incarnation: a.Opened().Incarnation, results: make([]backends.Result, 1)}
	release := backends.Txn{Checks: []backends.Check{{Key: "claim/=r", Version: first}}, Deletes: []string{"claim/=r"}}
	prepared, err := late.prepare(t.Context(), &release, 0)
	if err != nil || prepared.refused() {
		t.Fatal(prepared, err)
	}
	mustCommit(t, b, backends.Txn{Deletes: []string{"claim/=r"}}, put("other"))
	mustCommit(t, b, bind("claim/=r", backends.Check{Key: "claim/=r"}))
	if _, _, err := a.via().multi(t.Context(), prepared.ops); !errors.Is(err, zk.ErrBadVersion) {
		t.Fatalf("the late release: %v", err)
	}
	if r := late.carryOut(t.Context(), &release); !errors.Is(r.Err, backends.ErrConflict) || r.Versions["claim/=r"] <= first {
		t.Fatalf("the release, tried again: %+v", r)
	}
	if !has(t, b, "claim/=r") {
		t.Fatal("the claim is gone")
	}
}

// What a check relies on is that the session behind the entry is alive; it may end after the entry was read.
func TestACheckFailsWhenTheSessionBehindItEnds(t *testing.T) {
	t.Parallel()
	s := openStore(t, "zk://"+testserver.StartZooKeeper(t, "", patient).Addr())
	a, b := openSession(t, s, "a", long), openSession(t, s, "b", long)
	version := mustCommit(t, b, bind("leader"))[0].Versions["leader"]
	mustCommit(t, a, put("assign/n/")) // so that its place is there
	x := put("assign/n/", backends.Check{Key: "leader", Version: version})
	c := &commit{h: a, incarnation: a.Opened().Incarnation, results: make([]backends.Result, 1)}
	prepared, err := c.prepare(t.Context(), &x, 0)
	if err != nil || prepared.refused() {
		t.Fatal(prepared, err)
	}
	if err := b.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, _, err := a.via().multi(t.Context(), prepared.ops); !errors.Is(err, zk.ErrNoNode) {
		t.Fatalf("a write that relies on a session that has ended: %v", err)
	}
	if r := c.carryOut(t.Context(), &x); !errors.Is(r.Err, backends.ErrConflict) || r.Versions["leader"] != 0 {
		t.Fatalf("tried again: %+v", r)
	}
}

// The znode of a deleted key stays as long as a request may be under way that was made when it was not deleted.
func TestTheSweepRemovesWhatWasDeletedLongAgo(t *testing.T) {
	t.Parallel()
	s := openStore(t, "zk://"+testserver.StartZooKeeper(t, "", patient).Addr())
	h, other := openSession(t, s, "n", long), openSession(t, s, "m", long)
	mustCommit(t, h, put("stays"), put("a/deleted"))
	mustCommit(t, h, backends.Txn{Deletes: []string{"a/deleted"}})
	if err := other.Listen(t.Context(), "listened", func() {}); err != nil {
		t.Fatal(err)
	}
	there := func(path string) bool {
		z, err := h.via().stat(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		return z.there
	}
	_, deleted := h.dir.where("a/deleted")
	later := func(d time.Duration) {
		s.clock.set(time.Now().Add(d).UnixMilli())
		h.sweepAll(t.Context())
	}
	later(graveTime - long)
	if !there(deleted) || !there(h.dir.hint("listened")) {
		t.Fatal("it was removed too soon")
	}
	later(graveTime + long)
	if there(deleted) || !there(h.dir.hint("listened")) {
		t.Fatal("the deleted key is there still, or the address is gone")
	}
	later(hintTime + long)
	waittest.Until(t, "who listens made the address again", func() bool { return there(h.dir.hint("listened")) })
	mustRenew(t, h)
	if !has(t, h, "stays") || has(t, h, "a/deleted") {
		t.Fatal("the sweep changed something")
	}
}

// Versions grow across a wipe also where they were ahead of the server's clock.
func TestVersionsGrowAcrossAWipeWhoseClockIsBehind(t *testing.T) {
	t.Parallel()
	server := testserver.StartZooKeeper(t, "", patient)
	s := openStore(t, "zk://"+server.Addr())
	openSession(t, s, "n", long)
	s.mu.Lock()
	ahead := *s.rec
	ahead.Base += int64(time.Hour)
	s.rec = &ahead
	s.mu.Unlock()
	old := mustCommit(t, openSession(t, s, "n", long), put("k"))[0].Versions["k"]
	server.Lose()
	if again := mustCommit(t, openSession(t, s, "n", long), put("k"))[0].Versions["k"]; again <= old {
		t.Fatalf("version %d after %d", again, old)
	}
}

// The library queues requests while it is not connected, begins a new session when the old one has expired, and sends them under that.
// A session's watchdog comes before that, but for a process that was frozen; so this is about the link alone.
func TestNothingRunsUnderAnotherSessionAfterAnExpiry(t *testing.T) {
	t.Parallel()
	server := testserver.StartZooKeeper(t, "", patient)
	link := testserver.Proxy(t, server.Addr())
	s := openStore(t, "zk://"+link.Addr())
	watcher := openSession(t, openStore(t, "zk://"+server.Addr()), "w", long)
	l, err := s.newLink(2 * tick)
	if err != nil {
		t.Fatal(err)
	}
	v := via{l, l.ready}
	if err := v.make(t.Context(), "/rebalancer/ghosts"); err != nil {
		t.Fatal(err)
	}
	ephemeral := func(name string) error {
		_, err := l.conn.Create("/rebalancer/"+name, nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
		return err
	}
	if err := ephemeral("bound"); err != nil {
		t.Fatal(err)
	}
	link.Cut()
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() { // past all that the driver does against it, and again and again, so that something waits all the time
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
			}
			if ephemeral("ghost") == nil {
				t.Error("a request ran under another session")
				return
			}
		}
	}()
	there := func(name string) bool {
		mustRenew(t, watcher)
		z, err := watcher.via().stat(t.Context(), "/rebalancer/"+name)
		if err != nil {
			t.Fatal(err)
		}
		return z.there
	}
	waittest.Until(t, "the session expired", func() bool { return !there("bound") })
	link.Heal()
	if err := l.ready(within(t, 20*time.Second)); !errors.Is(err, errOver) {
		t.Errorf("a link whose session has expired: %v", err)
	}
	for end := time.Now().Add(2 * time.Second); time.Now().Before(end); <-time.After(20 * time.Millisecond) { // the library tries once a second
		if there("ghost") {
			t.Fatal("there is a znode of another session")
		}
	}
	close(stop)
	<-stopped
}

// A server that is killed and started again keeps sessions and what they hold.
func TestAServerThatIsKilledKeepsSessions(t *testing.T) {
	t.Parallel()
	server := testserver.StartZooKeeper(t, "", patient)
	s := openStore(t, "zk://"+server.Addr())
	h := openSession(t, s, "n", long)
	version := mustCommit(t, h, bind("k"))[0].Versions["k"]
	server.Kill()
	if results, err := commitAll(within(t, 300*time.Millisecond), h, bind("l")); err == nil && !errors.Is(results[0].Err, backends.ErrUnknown) {
		t.Fatalf("a commit without a server: %+v", results)
	}
	if err := renew(within(t, 300*time.Millisecond), h); err == nil || errors.Is(err, backends.ErrSessionLost) {
		t.Fatalf("a renewal without a server: %v", err)
	}
	server.Restart()
	if err := renew(within(t, time.Minute), h); err != nil {
		t.Fatal(err)
	}
	r, err := h.Read(t.Context(), backends.ReadRequest{Keys: []string{"k"}})
	if err != nil || len(r.Entries) != 1 || r.Entries[0].Version != version || r.Incarnation != h.Opened().Incarnation {
		t.Fatalf("after the restart: %+v, %v", r, err)
	}
}

// A frozen server ends sessions when it thaws, or not: the answers must fit.
func TestAServerThatFreezesForLongerThanTheTTL(t *testing.T) {
	t.Parallel()
	server := testserver.StartZooKeeper(t, "", patient)
	s := openStore(t, "zk://"+server.Addr())
	h := openSession(t, s, "n", 2*time.Second)
	mustCommit(t, h, bind("k"))
	server.Freeze()
	for deadline := time.Now().Add(h.TTL() + 2*tick); time.Now().Before(deadline); {
		start := time.Now()
		if err := renew(within(t, 200*time.Millisecond), h); err == nil {
			t.Fatal("a frozen server renewed")
		}
		if took := time.Since(start); took > 2*time.Second {
			t.Fatalf("a call with a deadline of 200 ms took %v", took)
		}
	}
	server.Thaw()
	if err := renew(within(t, 20*time.Second), h); !errors.Is(err, backends.ErrSessionLost) {
		t.Fatalf("renewal of a session that was given up: %v", err)
	}
	next := openSession(t, s, "n", long)
	waittest.Until(t, "what the old session held is free", func() bool { mustRenew(t, next); return !has(t, next, "k") })
}

// A connection that carries nothing is left at the end of a renewal's patience, not at that of the session's timeout.
func TestARenewalThatHangsIsTriedOverAnotherConnection(t *testing.T) {
	t.Parallel()
	server := testserver.StartZooKeeper(t, "", patient)
	hole := testserver.Proxy(t, server.Addr())
	s := openStore(t, "", WithServers(hole.Addr(), server.Addr()))
	var h *session
	for h == nil || h.l.current().server != hole.Addr() {
		h = openSession(t, s, "n", long)
	}
	mustRenew(t, h)
	hole.Blackhole()
	start := time.Now()
	if err := renew(within(t, time.Second), h); err == nil {
		t.Fatal("renewed through a hole")
	}
	if err := renew(within(t, 20*time.Second), h); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(start); took > h.lease.timeout*2/3 {
		t.Fatalf("renewed %v after the connection had died", took)
	}
	mustCommit(t, h, bind("k"))
}

// Answers that are lost leave outcomes unknown; what a read after that shows stands.
func TestACommitWithoutAnAnswerIsUnknown(t *testing.T) {
	t.Parallel()
	server := testserver.StartZooKeeper(t, "", patient)
	link := testserver.Proxy(t, server.Addr())
	s := openStore(t, "zk://"+link.Addr())
	h := openSession(t, s, "n", long)
	mustCommit(t, h, bind("k/x/first")) // so that the place of the others is there
	link.Latency(300 * time.Millisecond)
	unknown, applied := 0, 0
	for i := range 8 {
		key := fmt.Sprintf("k/x/%d", i)
		results, err := commitAll(within(t, time.Duration(350+40*i)*time.Millisecond), h, bind(key))
		there := has(t, h, key)
		switch {
		case err != nil && there:
			t.Fatalf("%s: %v, and it was applied", key, err)
		case err != nil:
		case results[0].Err == nil && !there:
			t.Fatalf("%s was applied, and is not there", key)
		case errors.Is(results[0].Err, backends.ErrUnknown):
			unknown++
			if there {
				applied++
			}
		case results[0].Err != nil:
			t.Fatal(results[0].Err)
		}
		mustRenew(t, h)
	}
	if unknown == 0 || applied == 0 {
		t.Fatalf("%d outcomes were unknown, %d of them applied: nothing is shown", unknown, applied)
	}
	t.Logf("%d unknown, %d of them applied", unknown, applied)
}

// Somebody deletes everything below the chroot while nodes work.
func TestDeletingEverythingBeginsAnIncarnation(t *testing.T) {
	t.Parallel()
	server := testserver.StartZooKeeper(t, "", patient)
	s := openStore(t, "zk://"+server.Addr())
	h := openSession(t, s, "n", long)
	old := mustCommit(t, h, bind("k"))[0].Versions["k"]
	rawConn(t, server.Addr(), func(c *zk.Conn) { deleteAll(t, c, DefaultRoot) })
	r, err := h.Renew(t.Context(), backends.RenewRequest{Incarnation: h.Opened().Incarnation})
	if !errors.Is(err, backends.ErrSessionLost) || r.Incarnation == h.Opened().Incarnation || r.Incarnation == "" {
		t.Fatalf("renewal after everything was deleted: %+v, %v", r, err)
	}
	next := openSession(t, s, "n", long)
	if next.Opened().Incarnation != r.Incarnation {
		t.Fatalf("incarnation %q, then %q", r.Incarnation, next.Opened().Incarnation)
	}
	if again := mustCommit(t, next, bind("k"))[0].Versions["k"]; again <= old {
		t.Fatalf("version %d after %d", again, old)
	}
}

func deleteAll(t *testing.T, c *zk.Conn, path string) {
	t.Helper()
	for {
		names, _, err := c.Children(path)
		if errors.Is(err, zk.ErrNoNode) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			deleteAll(t, c, path+"/"+name)
		}
		if err := c.Delete(path, -1); !errors.Is(err, zk.ErrNotEmpty) {
			return
		}
	}
}

// A process that is frozen for longer than its session has: nothing that it does then counts.
func TestASessionThatNobodyRenewsEndsThoughItsConnectionIsWell(t *testing.T) {
	t.Parallel()
	server := testserver.StartZooKeeper(t, "", patient)
	s := openStore(t, "zk://"+server.Addr())
	other := openSession(t, s, "w", long)
	start := time.Now()
	h := openSession(t, s, "n", 2*time.Second)
	mustCommit(t, h, bind("k"))
	waittest.Until(t, "the session ended", func() bool { mustRenew(t, other); return !has(t, other, "k") })
	if took := time.Since(start); took < h.TTL() {
		t.Fatalf("it ended after %v, its TTL is %v", took, h.TTL())
	}
	if _, err := commitAll(t.Context(), h, bind("k")); err != nil {
		t.Fatal(err)
	}
	if has(t, other, "k") {
		t.Fatal("a session that was given up bound something")
	}
}

func TestCallsReturnSoonAfterTheirContextAndLeaveNothing(t *testing.T) {
	t.Parallel()
	server := testserver.StartZooKeeper(t, "", patient)
	s := openStore(t, "zk://"+server.Addr())
	h := openSession(t, s, "n", long)
	server.Freeze()
	defer server.Thaw()
	inc := h.Opened().Incarnation
	for what, f := range map[string]func(context.Context) error{
		"Renew": func(ctx context.Context) error { return renew(ctx, h) },
		"Read": func(ctx context.Context) error {
			_, err := h.Read(ctx, backends.ReadRequest{Prefixes: []string{""}})
			return err
		},
		"Supersede": func(ctx context.Context) error { _, err := h.Supersede(ctx, "n"); return err },
		"Listen":    func(ctx context.Context) error { return h.Listen(ctx, "a", func() {}) },
		"Groups":    func(ctx context.Context) error { _, err := s.Groups(ctx); return err },
		"Open": func(ctx context.Context) error {
			_, err := s.Open(ctx, backends.SessionOptions{Group: "g", TTL: time.Second})
			return err
		},
		"Commit": func(ctx context.Context) error {
			r, err := h.Commit(ctx, backends.CommitRequest{Incarnation: inc, Txns: []backends.Txn{put("k")}})
			if err == nil {
				err = r.Results[0].Err
			}
			return err
		},
		"Close": h.Close, // the last but for what the map likes
	} {
		start := time.Now()
		err := f(within(t, 200*time.Millisecond))
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("%s took %v with a deadline of 200 ms", what, took)
		}
		if err == nil && what != "Close" {
			t.Errorf("%s of a frozen server succeeded", what)
		}
	}
	start := time.Now()
	if err := s.Close(); err != nil || time.Since(start) > 5*time.Second {
		t.Errorf("Close of the store: %v after %v", err, time.Since(start))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.links); n != 0 {
		t.Errorf("%d connections are left", n)
	}
}

package redis

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/internal/testserver"
)

// counted is a store whose client counts what it sends, to a server that knows the scripts.
func counted(t *testing.T, server *testserver.RedisServer) (*Store, *counter) {
	t.Helper()
	everything(t, connect(t, server.Addr()))
	server.Must("FLUSHALL")
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), ContextTimeoutEnabled: true, MaxRetries: -1})
	c := &counter{}
	client.AddHook(c)
	return over(t, client), c
}

func wantSent(t *testing.T, c *counter, what string, n int) {
	t.Helper()
	if sent := c.take(); len(sent) != n {
		t.Errorf("%s: %d round trips (%q), want %d", what, len(sent), sent, n)
	}
}

// Every call is one round trip, once the server knows the scripts.
func TestRoundTrips(t *testing.T) {
	onEach(t, func(t *testing.T, kind testserver.RedisKind) {
		server := testserver.StartRedis(t, kind)
		s, c := counted(t, server)
		h := begin(t, s, time.Minute)
		c.take() // the connection, what the server is, and the session
		begin(t, s, time.Minute)
		wantSent(t, c, "one more session", 1)
		mustPut(t, h, "k", true)
		wantSent(t, c, "a commit", 1)
		var txns []backends.Txn
		for i := range 500 {
			txns = append(txns, backends.Txn{Puts: []backends.Put{{Key: fmt.Sprint("member/", i), Bound: true}}, Wake: []string{"a", "b"}})
		}
		if _, err := h.Commit(short(t), backends.CommitRequest{Incarnation: h.Opened().Incarnation, Txns: txns}); err != nil {
			t.Fatal(err)
		}
		wantSent(t, c, "a commit of 500 transactions", 1)
		if _, err := h.Read(short(t), backends.ReadRequest{Keys: []string{"k"}, Prefixes: []string{"none/", "k"}}); err != nil {
			t.Fatal(err)
		}
		wantSent(t, c, "a read", 1)
		mustRenew(t, h)
		wantSent(t, c, "a renewal", 1)
		if _, err := h.Supersede(short(t), "nobody"); err != nil {
			t.Fatal(err)
		}
		wantSent(t, c, "a supersede", 1)
		if err := begin(t, s, time.Minute).Close(short(t)); err != nil {
			t.Fatal(err)
		}
		wantSent(t, c, "a session opened and closed", 2)
	})
}

// An idle coordinator's renewal is one round trip, whatever the size of what it asks the digests of, and what it tells stays right.
func TestRenewalWithDigestsOfManyEntries(t *testing.T) {
	onEach(t, func(t *testing.T, kind testserver.RedisKind) {
		server := testserver.StartRedis(t, kind)
		s, c := counted(t, server)
		h, dying := begin(t, s, time.Minute), begin(t, s, time.Minute)
		put := func(by backends.Session, from, to int, bound bool) {
			var txns []backends.Txn
			for i := from; i < to; i++ {
				txns = append(txns, backends.Txn{Puts: []backends.Put{{Key: fmt.Sprintf("resource/%05d", i), Bound: bound}}})
			}
			r, err := by.Commit(short(t), backends.CommitRequest{Incarnation: h.Opened().Incarnation, Txns: txns})
			if err != nil || slices.ContainsFunc(r.Results, func(r backends.Result) bool { return r.Err != nil }) {
				t.Fatalf("commit: %v", err)
			}
		}
		put(h, 0, 2500, false)
		put(dying, 2500, 3300, true)
		ask := backends.RenewRequest{Incarnation: h.Opened().Incarnation, Digests: []string{"resource/", "member/", ""}}
		renew := func() map[string]backends.Digest {
			t.Helper()
			r, err := h.Renew(short(t), ask)
			if err != nil {
				t.Fatal(err)
			}
			return r.Digests
		}
		check := func(what string, got map[string]backends.Digest) {
			t.Helper()
			r, err := h.Read(short(t), backends.ReadRequest{Prefixes: ask.Digests, NamesOnly: true})
			if err != nil {
				t.Fatal(err)
			}
			for _, prefix := range ask.Digests {
				want := r.Digests[prefix]
				if got[prefix].Sum != want.Sum || got[prefix].Count != want.Count || (got[prefix].Left < 0) != (want.Left < 0) {
					t.Errorf("%s: digest of %q is %+v, want %+v", what, prefix, got[prefix], want)
				}
			}
		}
		check("the first", renew())
		c.take()
		idle := renew()
		wantSent(t, c, "an idle renewal", 1)
		check("idle", idle)
		mustPut(t, h, "other/1", false)
		ask.Digests = []string{"resource/", "member/"}
		c.take()
		renew()
		wantSent(t, c, "a renewal after a change elsewhere", 1)
		if err := dying.Close(short(t)); err != nil {
			t.Fatal(err)
		}
		check("after a session's end", renew())
		put(h, 3299, 3301, true)
		check("after a put", renew())
		commitOne(t, h, h.Opened().Incarnation, backends.Txn{Deletes: []string{"resource/00007"}})
		check("after a delete", renew())
	})
}

// A script with more keys than Lua can unpack.
func TestOneTransactionOf20000Keys(t *testing.T) {
	onEach(t, func(t *testing.T, kind testserver.RedisKind) {
		s, c := counted(t, testserver.StartRedis(t, kind))
		h := begin(t, s, time.Minute)
		var txn backends.Txn
		var keys []string
		for i := range 20_000 {
			keys = append(keys, fmt.Sprintf("k%05d", i))
			txn.Checks = append(txn.Checks, backends.Check{Key: keys[i]})
			txn.Puts = append(txn.Puts, backends.Put{Key: keys[i], Value: []byte("v"), Bound: true})
		}
		if r := commitOne(t, h, h.Opened().Incarnation, txn); r.Err != nil || len(r.Versions) != len(keys) {
			t.Fatalf("commit: %v, %d versions", r.Err, len(r.Versions))
		}
		if r := commitOne(t, h, h.Opened().Incarnation, txn); len(r.Versions) != len(keys) {
			t.Fatalf("the same again: %v", r.Err)
		}
		c.take()
		r, err := h.Renew(short(t), backends.RenewRequest{Incarnation: h.Opened().Incarnation, Keys: keys})
		if err != nil || len(r.Keys) != len(keys) {
			t.Fatalf("renewal: %v, %d states", err, len(r.Keys))
		}
		wantSent(t, c, "a renewal that asks for 20,000 keys, 500 per script", 40+1)
		read, err := h.Read(short(t), backends.ReadRequest{Prefixes: []string{"k"}})
		if err != nil || len(read.Entries) != len(keys) {
			t.Fatalf("read: %v, %d entries", err, len(read.Entries))
		}
		if err := h.Close(short(t)); err != nil {
			t.Fatal(err)
		}
	})
}

// What is too much for one script is several, each of whole transactions.
func TestLongCommitsAreSplit(t *testing.T) {
	onEach(t, func(t *testing.T, kind testserver.RedisKind) {
		s, c := counted(t, testserver.StartRedis(t, kind))
		h := begin(t, s, time.Minute)
		mustPut(t, h, "k", false)
		c.take()
		var txns []backends.Txn
		for i := range 2100 {
			txns = append(txns, backends.Txn{Puts: []backends.Put{{Key: fmt.Sprint(i)}}})
		}
		r, err := h.Commit(short(t), backends.CommitRequest{Incarnation: h.Opened().Incarnation, Txns: txns})
		if err != nil || len(r.Results) != len(txns) {
			t.Fatalf("commit: %v, %d results", err, len(r.Results))
		}
		for i, res := range r.Results {
			if res.Err != nil || res.Versions[fmt.Sprint(i)] == 0 {
				t.Fatalf("transaction %d: %+v", i, res)
			}
		}
		wantSent(t, c, "2,100 transactions, 500 per script", 5)
		value := bytes.Repeat([]byte("v"), backends.MaxValue)
		txns = nil
		for i := range 9 {
			txns = append(txns, backends.Txn{Puts: []backends.Put{{Key: fmt.Sprint("big/", i), Value: value}}})
		}
		if r, err := h.Commit(short(t), backends.CommitRequest{Incarnation: h.Opened().Incarnation, Txns: txns}); err != nil || r.Results[8].Err != nil {
			t.Fatalf("commit: %v", err)
		}
		wantSent(t, c, "9 great values, 1 MB per script", 3)
		read, err := h.Read(short(t), backends.ReadRequest{Prefixes: []string{"big/"}})
		if err != nil || len(read.Entries) != 9 || slices.ContainsFunc(read.Entries, func(e backends.Entry) bool { return !bytes.Equal(e.Value, value) }) {
			t.Fatalf("read: %v, %d entries", err, len(read.Entries))
		}
		wantSent(t, c, "reading 9 great values, 1 MB per script", 3)
	})
}

// What belongs to sessions expires after a week, what does not stays.
func TestSessionsExpireAfterAWeek(t *testing.T) {
	onEach(t, func(t *testing.T, kind testserver.RedisKind) {
		server := testserver.StartRedis(t, kind)
		h := begin(t, connect(t, server.Addr()), time.Minute)
		mustPut(t, h, "bound/1", true)
		mustPut(t, h, "free/1", false)
		const week = 7 * 24 * time.Hour
		for i, key := range spaceOf(DefaultPrefix, "g").keys {
			ms, err := strconv.Atoi(strings.TrimSpace(server.Must("PTTL", key)))
			if err != nil {
				t.Fatal(err)
			}
			left := time.Duration(ms) * time.Millisecond
			if i < 5 && ms != -1 {
				t.Errorf("%s expires in %v: it may hold checkpoints", keyNames[i], left)
			}
			if i >= 5 && (left > week || left < week-time.Minute) {
				t.Errorf("%s expires in %v (%d ms)", keyNames[i], left, ms)
			}
		}
		// A renewal an hour later puts it off again: an hour that the record is told of.
		sessions := spaceOf(DefaultPrefix, "g").keys[5]
		server.Must("HINCRBY", spaceOf(DefaultPrefix, "g").keys[0], "kept", "-3601000000")
		server.Must("PEXPIRE", sessions, "1000000")
		mustRenew(t, h)
		if ms, _ := strconv.Atoi(strings.TrimSpace(server.Must("PTTL", sessions))); time.Duration(ms)*time.Millisecond < week-time.Minute {
			t.Errorf("it was not put off: %d ms", ms)
		}
	})
}

// All listeners of a store share one connection, and it is given what it wants to hear alone.
func TestListenersShareAConnection(t *testing.T) {
	onEach(t, func(t *testing.T, kind testserver.RedisKind) {
		server := testserver.StartRedis(t, kind)
		s := connect(t, server.Addr())
		for range 5 {
			h := begin(t, s, time.Minute)
			for i := range 10 {
				if err := h.Listen(t.Context(), fmt.Sprint("node/", i), func() {}); err != nil {
					t.Fatal(err)
				}
			}
			if n := strings.Count(server.Must("CLIENT", "LIST", "TYPE", "pubsub"), "id="); n != 1 {
				t.Fatalf("%d connections listen", n)
			}
		}
		if n := len(strings.Fields(server.Must("PUBSUB", "CHANNELS"))); n != 10 {
			t.Fatalf("%d channels, want 10", n)
		}
		gone := begin(t, s, time.Minute)
		if err := gone.Listen(t.Context(), "gone", func() {}); err != nil {
			t.Fatal(err)
		}
		if err := gone.Close(short(t)); err != nil {
			t.Fatal(err)
		}
		server.Until("PUBSUB NUMSUB "+spaceOf(DefaultPrefix, "g").channel+"gone", "0")
	})
}

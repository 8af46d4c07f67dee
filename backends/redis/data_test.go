package redis

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/internal/testserver"
)

// A session that the server saw end stays ended, also when its clock is set back.
func TestEndedStaysEndedWhenTheClockIsSetBack(t *testing.T) {
	onEach(t, func(t *testing.T, kind testserver.RedisKind) {
		server := testserver.StartRedis(t, kind)
		s := connect(t, server.Addr())
		h, by := begin(t, s, shortestTTL), begin(t, s, time.Hour)
		mustPut(t, h, "k", true)
		eventually(t, 10*time.Second, func() error {
			if versionOf(t, by, "k") != 0 {
				return fmt.Errorf("it has not ended")
			}
			return nil
		})
		s.scripts = newScripts(strconv.Itoa(int(time.Minute.Microseconds())))
		if versionOf(t, by, "k") != 0 {
			t.Error("its claim is there again")
		}
		_, err := renewIn(t, h, h.Opened().Incarnation)
		wantErr(t, "renewal", err, backends.ErrSessionLost)
	})
}

// Entries of both kinds come in the order of their bytes, page by page, each once.
func TestPagesOfBothKinds(t *testing.T) {
	onEach(t, func(t *testing.T, kind testserver.RedisKind) {
		seed := uint64(time.Now().UnixNano())
		t.Logf("seed %d", seed)
		rng := rand.New(rand.NewPCG(seed, 0))
		h := begin(t, connect(t, testserver.StartRedis(t, kind).Addr()), time.Minute)
		var want []string
		var txns []backends.Txn
		run := 0
		bound := false
		for i := range 3000 {
			if run == 0 { // runs of one kind, longer and shorter than a page
				run, bound = 1+rng.IntN(700), !bound
			}
			run--
			key := fmt.Sprintf("p/%c%05d", rune(0x21+i/100), i)
			want = append(want, key)
			txns = append(txns, backends.Txn{Puts: []backends.Put{{Key: key, Value: []byte(key), Bound: bound}}})
		}
		if _, err := h.Commit(short(t), backends.CommitRequest{Incarnation: h.Opened().Incarnation, Txns: txns}); err != nil {
			t.Fatal(err)
		}
		slices.Sort(want)
		r, err := h.Read(short(t), backends.ReadRequest{Prefixes: []string{"p/", "p/!"}})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, e := range r.Entries {
			got = append(got, e.Key)
			if string(e.Value) != e.Key {
				t.Fatalf("%q holds %q", e.Key, e.Value)
			}
		}
		if !slices.Equal(got, want) || r.Digests["p/"] != backends.DigestOf(r.Entries) || r.Digests["p/!"].Count != 100 {
			t.Fatalf("%d entries of %d, digests %+v", len(got), len(want), r.Digests)
		}
	})
}

// An entry that changes what it is bound to, again and again, is in every listing of more than one page.
func TestNothingIsMissedBetweenPages(t *testing.T) {
	onEach(t, func(t *testing.T, kind testserver.RedisKind) {
		s := connect(t, testserver.StartRedis(t, kind).Addr())
		h := begin(t, s, time.Minute)
		var txns []backends.Txn
		for i := range 1500 {
			txns = append(txns, backends.Txn{Puts: []backends.Put{{Key: fmt.Sprintf("p/%04d", i), Bound: i%2 == 0}}})
		}
		if _, err := h.Commit(short(t), backends.CommitRequest{Incarnation: h.Opened().Incarnation, Txns: txns}); err != nil {
			t.Fatal(err)
		}
		stop, done := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(done)
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				var flips []backends.Txn
				for k := range 30 {
					flips = append(flips, backends.Txn{Puts: []backends.Put{{Key: fmt.Sprintf("p/%04d", 50*k), Bound: i%2 == 0}}})
				}
				if _, err := h.Commit(t.Context(), backends.CommitRequest{Incarnation: h.Opened().Incarnation, Txns: flips}); err != nil {
					t.Errorf("commit: %v", err)
					return
				}
			}
		}()
		for range 15 {
			r, err := h.Read(short(t), backends.ReadRequest{Prefixes: []string{"p/"}})
			if err != nil || len(r.Entries) != 1500 {
				t.Errorf("%d entries of 1500, %v", len(r.Entries), err)
			}
			d, err := h.Renew(short(t), backends.RenewRequest{Incarnation: h.Opened().Incarnation, Digests: []string{"p/"}})
			if err != nil || d.Digests["p/"].Count != 1500 {
				t.Errorf("a digest of %d entries, %v", d.Digests["p/"].Count, err)
			}
		}
		close(stop)
		<-done
	})
}

// What a session with many entries leaves is not seen from its end on, and is removed part by part.
func TestManyEntriesOfAnEndedSession(t *testing.T) {
	onEach(t, func(t *testing.T, kind testserver.RedisKind) {
		server := testserver.StartRedis(t, kind)
		s := connect(t, server.Addr())
		open := func() backends.Session {
			h, err := s.Open(short(t), backends.SessionOptions{Group: "group", Node: "\xff", TTL: time.Minute})
			if err != nil {
				t.Fatal(err)
			}
			return h
		}
		by := open()
		before := rows(t, server)
		h := open()
		var txns []backends.Txn
		for i := range 500*closeParts + 700 {
			txns = append(txns, backends.Txn{Puts: []backends.Put{{Key: fmt.Sprintf("\xff%d", i), Bound: true}}})
		}
		if _, err := h.Commit(short(t), backends.CommitRequest{Incarnation: h.Opened().Incarnation, Txns: txns}); err != nil {
			t.Fatal(err)
		}
		if err := h.Close(short(t)); err != nil {
			t.Fatal(err)
		}
		if r, err := by.Read(short(t), backends.ReadRequest{Prefixes: []string{""}}); err != nil || len(r.Entries) != 0 {
			t.Fatalf("%d entries are seen, %v", len(r.Entries), err)
		}
		if rows(t, server) == before {
			t.Fatal("it was removed at once: the test is too small")
		}
		ask := backends.RenewRequest{Incarnation: by.Opened().Incarnation, Sweep: true}
		for range 3 { // the coordinator asks once
			if _, err := by.Renew(short(t), ask); err != nil {
				t.Fatal(err)
			}
			ask.Sweep = false
		}
		if after := rows(t, server); after != before {
			t.Fatalf("%d rows are left, there were %d", after, before)
		}
	})
}

// A server that was told to forget its scripts gets them again.
func TestScriptsAreGivenAgain(t *testing.T) {
	onEach(t, func(t *testing.T, kind testserver.RedisKind) {
		server := testserver.StartRedis(t, kind)
		testserver.StartReplica(t, server)
		for _, replicas := range []int{0, 1} {
			s := connect(t, server.Addr(), WithReplicas(replicas))
			h := begin(t, s, time.Minute)
			server.Must("SCRIPT", "FLUSH")
			mustRenew(t, h)
			mustPut(t, h, "k", true)
			mustRenew(t, h)
		}
	})
}

func TestGroupsAreNamedByAnyBytes(t *testing.T) {
	t.Parallel()
	for _, group := range []string{"g", "{", "}", "{}", "%", "%7B", "a b", "\x00", "\xff", "é", strings.Repeat("x", backends.MaxKey), "}:names", "{a}:names"} {
		sp := spaceOf("p:", group)
		got, ok := groupOf("p:", sp.keys[namesKey])
		if !ok || got != group {
			t.Errorf("%q came back as %q, %v", group, got, ok)
		}
		if strings.Count(sp.keys[0], "{") != 1 || strings.Count(sp.keys[0], "}") != 1 {
			t.Errorf("the hash tag of %q: %q", group, sp.keys[0])
		}
	}
	for _, key := range []string{"", "p:", "p:{}:names", "p:{%}:names", "p:{%zz}:names", "p:{%41}:names", "p:{a}:meta", "q:{a}:names"} {
		if group, ok := groupOf("p:", key); ok {
			t.Errorf("%q is taken for the names of %q", key, group)
		}
	}
}

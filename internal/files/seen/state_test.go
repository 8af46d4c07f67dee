package seen

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/internal/checkpointtest"
)

func TestRemembersAcrossOwners(t *testing.T) {
	t.Parallel()
	store := checkpointtest.New()
	a := open1(t, store)
	want := map[string]Record{}
	for i := range 20 {
		batch := numbered(i*100, 100)
		batch[7].Record = Record{ID: 7, Outcome: Failed}
		batch[8].Record = Record{ID: 8, Attempts: 3, Next: later(time.Hour)}
		batch[9].Record = Record{ID: 9, Attempts: 1}
		settle(t, a, batch...)
		for _, x := range batch {
			want[x.Name] = x.Record
		}
		same(t, "the store", contents(t, store), want)
		same(t, "memory", inMemory(t, a), want)
	}
	b := open1(t, store)
	same(t, "the next owner", inMemory(t, b), want)
	if got, err := Read(context.Background(), store.Claim()); err != nil {
		t.Fatal(err)
	} else {
		same(t, "Read", got, want)
	}
}

// TestAnotherFileUnderTheName: the record is replaced, in the journal and in the chunks.
func TestAnotherFileUnderTheName(t *testing.T) {
	t.Parallel()
	store := checkpointtest.New()
	s := open1(t, store)
	settle(t, s, numbered(0, 600)...)
	name := numbered(300, 1)[0].Name
	for id := range uint64(3) {
		settle(t, s, Settlement{name, Record{ID: 1 << 40, Attempts: uint32(id)}}, Settlement{name, done(id)})
		if r, _ := s.Look(name); r != done(id) {
			t.Fatalf("record %v", r)
		}
		settle(t, s, numbered(600+300*int(id), 300)...) // into the chunks
		if r := contents(t, store)[name]; r != done(id) {
			t.Fatalf("record %v in the store", r)
		}
	}
}

func TestIdentity(t *testing.T) {
	t.Parallel()
	at := time.Unix(1_800_000_000, 123)
	ids := map[uint64]string{}
	for what, id := range map[string]uint64{
		"plain": Identity(5, at, ""), "longer": Identity(6, at, ""), "later": Identity(5, at.Add(1), ""), "tagged": Identity(5, at, "v1"),
		"other tag": Identity(5, at, "v2"), "no time": Identity(5, time.Time{}, ""), "epoch": Identity(5, time.Unix(0, 0), ""),
		"no time, tagged": Identity(5, time.Time{}, "v1"), "far": Identity(5, time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), ""),
	} {
		if other, ok := ids[id]; ok {
			t.Errorf("%s is %s", what, other)
		}
		ids[id] = what
	}
	if Identity(5, at, "") != Identity(5, at.In(time.FixedZone("x", 3600)), "") {
		t.Error("a time zone makes another file")
	}
	if got := Identity(5, at, "v1"); got != 0x30865333f7f3a033 {
		t.Errorf("the identity of a known file is %#x: every file would be worked again", got)
	}
}

func TestOldOwnerWakes(t *testing.T) {
	t.Parallel()
	store := checkpointtest.New()
	a := open1(t, store)
	settle(t, a, numbered(0, 250)...)
	b := open1(t, store)
	settle(t, b, numbered(250, 300)...)
	want := contents(t, store)
	for what, n := range map[string]int{"journal": 1, "rewrite": 400} {
		wantErr(t, what+" of the old owner", a.Settle(t.Context(), numbered(1000, n)), rebalancer.ErrLost, `"in"`)
		same(t, "after the old owner's "+what, contents(t, store), want)
	}
	if _, err := Open(t.Context(), store.Claim(), Options{Fence: 1}); !errors.Is(err, rebalancer.ErrLost) {
		t.Errorf("open under a fence below the stored one: %v", err)
	}
}

// TestTwoStatesUnderOneClaim: the claim cannot tell them apart, the head does. Late writes of the first change nothing either.
func TestTwoStatesUnderOneClaim(t *testing.T) {
	t.Parallel()
	for what, n := range map[string]int{"journal": 10, "rewrite": 400} {
		store := checkpointtest.New()
		cp := store.Claim()
		a := openUnder(t, cp, Options{})
		settle(t, a, numbered(0, 100)...)
		store.Plan(func(call string) checkpointtest.Fault { return checkpointtest.Fault{Late: call == "save"} })
		wantErr(t, what, a.Settle(t.Context(), numbered(1000, n)), checkpointtest.ErrInjected)
		store.Plan(nil)
		b := openUnder(t, cp, Options{})
		settle(t, b, numbered(100, 100)...)
		want := contents(t, store)
		store.Arrive()
		same(t, "after the late "+what, contents(t, store), want)
		for range 2 {
			wantErr(t, what, a.Settle(t.Context(), numbered(2000, n)), rebalancer.ErrStale, "another reader")
			wantErr(t, what, a.Err(), rebalancer.ErrStale)
		}
		same(t, "after the first one's "+what, contents(t, store), want)
		settle(t, b, numbered(200, 500)...)
		same(t, "memory", inMemory(t, b), contents(t, store))
		if b.Err() != nil {
			t.Error(b.Err())
		}
	}
}

func TestFull(t *testing.T) {
	t.Parallel()
	store := checkpointtest.New()
	s := openUnder(t, store.Claim(), Options{Most: 500})
	settle(t, s, numbered(0, 400)...)
	if n := s.Room(); n != 100 {
		t.Errorf("room for %d", n)
	}
	wantErr(t, "one too many", s.Settle(t.Context(), numbered(400, 101)), ErrFull, `"in"`, "400", "move, delete or tag")
	settle(t, s, numbered(350, 150)...)
	settle(t, s, numbered(0, 500)...) // known ones need no room
	wantErr(t, "full", s.Settle(t.Context(), numbered(500, 1)), ErrFull)
	if s.Room() != 0 || s.Len() != 500 {
		t.Errorf("room for %d beside %d", s.Room(), s.Len())
	}
	same(t, "the store", contents(t, store), inMemory(t, s))
}

// TestHeadIsFull: what Room says can be settled is, whatever the names are and however they come; then what is known still is.
func TestHeadIsFull(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	store := checkpointtest.New()
	s := open1(t, store)
	s.chunksMost = 24
	var known []string
	for room := s.Room(); room > 0; room = s.Room() {
		var batch []Settlement
		for i := range min(room, 1+rng.IntN(200)) {
			at := fmt.Sprintf("%09d", rng.IntN(1e9)) + strings.Repeat("x", 800)
			batch = append(batch, Settlement{at + "1", done(uint64(i))}, Settlement{at + "2", done(1)})
		}
		batch = batch[:min(room, len(batch))]
		for _, x := range batch {
			known = append(known, x.Name)
		}
		settle(t, s, batch...)
		if len(s.leaves) > s.chunksMost {
			t.Fatalf("%d chunks", len(s.leaves))
		}
	}
	if len(known) < 24*fill/2/900-journalMost {
		t.Errorf("full after %d names", len(known))
	}
	for range 20 {
		var batch []Settlement
		for range 300 {
			batch = append(batch, Settlement{known[rng.IntN(len(known))], Record{ID: 1, Attempts: rng.Uint32(), Next: later(time.Hour)}})
		}
		settle(t, s, batch...)
	}
	same(t, "the store", contents(t, store), inMemory(t, s))
}

// TestHalfEmptyChunks: before the head has no room for more chunks, those that are far from full are filled.
func TestHalfEmptyChunks(t *testing.T) {
	t.Parallel()
	store := checkpointtest.New()
	s := open1(t, store)
	at := 100_000
	descend := func() {
		batch := make([]Settlement, 120) // more than a journal takes
		for i := range batch {
			at--
			batch[i] = Settlement{fmt.Sprintf("%06d", at) + strings.Repeat("y", 600), done(uint64(i))}
		}
		settle(t, s, batch...)
	}
	for range 20 {
		descend()
	}
	size := 0
	for _, l := range s.leaves {
		size += l.size
	}
	if s.chunksMost = size/fill + 3; s.chunksMost >= len(s.leaves) {
		t.Fatalf("%d chunks are as full as they can be", len(s.leaves))
	}
	descend()
	if len(s.leaves) > s.chunksMost {
		t.Errorf("%d chunks, at most %d are possible", len(s.leaves), s.chunksMost)
	}
	same(t, "the store", contents(t, store), inMemory(t, s))
	wantErr(t, "more than there can be", func() error {
		s.chunksMost = 3
		return s.Settle(t.Context(), numbered(0, 300))
	}(), ErrFull)
	same(t, "the store", contents(t, store), inMemory(t, s))
}

// TestLongPrefixes: a head does not have names, so those that share a lot by twos and nothing beside that take no more of it.
func TestLongPrefixes(t *testing.T) {
	t.Parallel()
	store := checkpointtest.New()
	s := open1(t, store)
	for n := 0; n < 16_000; n += 4000 {
		var batch []Settlement
		for i := n; i < n+4000; i++ {
			batch = append(batch, Settlement{fmt.Sprintf("%06d%s%d", i/2, strings.Repeat("x", 800), i), done(uint64(i))})
		}
		settle(t, s, batch...)
	}
	if size := len(store.Values()[keyHead]); size > maxHead || s.Len() != 16_000 || s.Room() == 0 {
		t.Errorf("%d names, a head of %d bytes", s.Len(), size)
	}
	if len((&head{fence: math.MaxInt64, nonce: 1, seq: math.MaxUint64, listed: math.MaxUint32, names: math.MaxUint32, next: math.MaxUint32,
		chunks: slices.Repeat([]chunkRef{{math.MaxUint32, maxValue, 1}}, maxChunks)}).bytes()) > maxHead {
		t.Error("a head with all chunks is too long")
	}
}

func TestRefusesWhatItCannotRemember(t *testing.T) {
	t.Parallel()
	s := open1(t, checkpointtest.New())
	for what, x := range map[string]Settlement{
		"no name": {"", done(1)}, "a long name": {strings.Repeat("x", maxName+1), done(1)}, "no outcome": {"a", Record{Outcome: 3}},
	} {
		if err := s.Settle(t.Context(), []Settlement{{"ok", done(1)}, x}); err == nil || s.Len() != 0 {
			t.Errorf("%s: %v, %d names", what, err, s.Len())
		}
	}
	settle(t, s, Settlement{strings.Repeat("x", maxName), done(1)})
	if _, err := Open(t.Context(), plain{}, Options{Resource: "in"}); err == nil || !strings.Contains(err.Error(), "no versions") {
		t.Errorf("open over a checkpoint without versions: %v", err)
	}
}

type plain struct{ rebalancer.Checkpoint }

func TestPace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hurry := make(chan struct{})
		s := openUnder(t, checkpointtest.New().Claim(), Options{Pace: DefaultPace, Hurry: hurry})
		start := time.Now()
		after := func(what string, want time.Duration) {
			t.Helper()
			if d := time.Since(start); d != want {
				t.Errorf("%s: after %v, want %v", what, d, want)
			}
			start = time.Now()
		}
		settle(t, s, numbered(0, 1)...)
		after("the first", 0)
		settle(t, s, numbered(1, 1)...)
		after("one soon after", DefaultPace)
		settle(t, s, numbered(2, paceMost)...)
		after("a hundred", 0)
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		wantErr(t, "a context that ends", s.Settle(ctx, numbered(200, 1)), context.DeadlineExceeded)
		after("it", time.Millisecond)
		close(hurry)
		settle(t, s, numbered(201, 1)...)
		after("in a hurry", 0)
	})
}

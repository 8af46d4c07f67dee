package files

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/internal/checkpointtest"
	"github.com/rebalancer-go/rebalancer/internal/files/seen"
	"github.com/rebalancer-go/rebalancer/sources"
)

// keeper makes a Reader that leaves files where they are, under a new claim.
func keeper(t testing.TB, p *fake, store *checkpointtest.Store, o Options) *Reader {
	t.Helper()
	o.Keep = true
	return keeperUnder(t, p, store.Claim(), o)
}

func keeperUnder(t testing.TB, p Place, cp *checkpointtest.Checkpoint, o Options) *Reader {
	t.Helper()
	if err := o.Complete(); err != nil {
		t.Fatal(err)
	}
	r := New(p, o, &rebalancer.Claim{Resource: "in", Fence: cp.Fence(), Checkpoint: cp})
	t.Cleanup(func() { _ = r.Close(context.Background()) })
	return r
}

// bothListings runs a test for places whose listings tell what files are, and for those that only name them.
func bothListings(t *testing.T, f func(t *testing.T, p *fake)) {
	for _, exact := range []bool{false, true} {
		t.Run(fmt.Sprintf("exact %v", exact), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := newFake()
				p.exact = exact
				f(t, p)
			})
		})
	}
}

func TestKeptFilesComeOnce(t *testing.T) {
	t.Parallel()
	bothListings(t, func(t *testing.T, p *fake) {
		store := checkpointtest.New()
		r := keeper(t, p, store, Options{})
		for i := range 10 {
			p.put(fmt.Sprint(i), "x")
		}
		ms, _ := fetch(t, r, 10)
		settle(t, r, sources.Done, ms[:7]...)
		if err := r.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		r = keeper(t, p, store, Options{})
		ms, keys := fetch(t, r, 3)
		if !slices.Equal(keys, []string{"7", "8", "9"}) {
			t.Fatalf("the next owner got %q", keys)
		}
		settle(t, r, sources.Done, ms...)
		nothing(t, r, time.Hour)
		if p.names() != 10 {
			t.Errorf("%d files are left", p.names())
		}
	})
}

// TestKeptNameComesAgain: another file under a name that was worked is delivered: written over, away for a listing, by rename.
func TestKeptNameComesAgain(t *testing.T) {
	t.Parallel()
	bothListings(t, func(t *testing.T, p *fake) {
		store := checkpointtest.New()
		r := keeper(t, p, store, Options{})
		for i := range 3000 {
			p.put(fmt.Sprintf("%04d", i), "x")
		}
		ms, _ := fetch(t, r, 3000)
		settle(t, r, sources.Done, ms...)
		nothing(t, r, time.Minute)
		p.grow("0100", "y")
		p.put("0200", "z")
		ms, keys := fetch(t, r, 2)
		if slices.Sort(keys); !slices.Equal(keys, []string{"0100", "0200"}) {
			t.Fatalf("got %q", keys)
		}
		if ms[0].Attempt != 1 {
			t.Errorf("attempt %d of another file", ms[0].Attempt)
		}
		settle(t, r, sources.Done, ms...)
		old := p.files["0300"]
		p.set(func(p *fake) { delete(p.files, "0300") })
		nothing(t, r, time.Minute)
		p.put("0300", "new")
		p.stats = 0
		start := time.Now()
		ms, _ = fetch(t, r, 1)
		if d := time.Since(start); d > 10*time.Second {
			t.Errorf("a name that was away came after %v", d)
		}
		settle(t, r, sources.Done, ms...)
		p.set(func(p *fake) { delete(p.files, "0300") })
		nothing(t, r, time.Minute)
		p.set(func(p *fake) { p.files["0300"] = old })
		ms, _ = fetch(t, r, 1) // what was worked before last is another file too
		settle(t, r, sources.Done, ms...)
	})
}

// TestKeptCosts: what was worked costs no look where listings tell what it is; otherwise a share of the time.
func TestKeptCosts(t *testing.T) {
	t.Parallel()
	bothListings(t, func(t *testing.T, p *fake) {
		store := checkpointtest.New()
		const n = 4000
		r := keeper(t, p, store, Options{Interval: time.Second, IdleInterval: 4 * time.Second})
		for i := range n {
			p.put(fmt.Sprintf("%05d", i), "x")
		}
		ms, _ := fetch(t, r, n)
		settle(t, r, sources.Done, ms...)
		nothing(t, r, time.Minute)
		p.stats, p.lists = 0, 0
		before, _ := store.Saves()
		nothing(t, r, 5*time.Minute)
		if p.exact && p.stats != 0 {
			t.Errorf("%d looks at files that the listing tells", p.stats)
		}
		if most := (p.lists + 3) * n / 2; p.stats > most { // two turns
			t.Errorf("%d looks in %d listings, want at most %d", p.stats, p.lists, most)
		}
		if p.lists > 80 {
			t.Errorf("%d listings in five idle minutes: looking again is no news", p.lists)
		}
		if after, _ := store.Saves(); after > before+1 {
			t.Errorf("%d writes while nothing came", after-before)
		}
		if len(r.items) > recheckMost {
			t.Errorf("%d files in memory beside what is known of them", len(r.items))
		}
	})
}

// TestSlowLooksAreFew: the slower a place answers, the fewer files that were worked are looked at again.
func TestSlowLooksAreFew(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newFake()
		r := keeper(t, p, checkpointtest.New(), Options{StableFor: -1, Interval: 10 * time.Second})
		for i := range 3000 {
			p.put(fmt.Sprintf("%05d", i), "x")
		}
		ms, _ := fetch(t, r, 3000)
		settle(t, r, sources.Done, ms...)
		p.set(func(p *fake) {
			p.fail = func(op, _ string) error {
				if op == "stat" {
					time.Sleep(10 * time.Millisecond)
				}
				return nil
			}
		})
		nothing(t, r, 10*time.Minute)
		p.stats = 0
		nothing(t, r, 10*time.Minute)
		if spent := time.Duration(p.stats) * 10 * time.Millisecond; spent > time.Minute || spent < 10*time.Second {
			t.Errorf("%v of 10 minutes were spent on files that were worked", spent)
		}
	})
}

// TestKeptFailures: outcomes and attempts outlive the owner.
func TestKeptFailures(t *testing.T) {
	t.Parallel()
	bothListings(t, func(t *testing.T, p *fake) {
		store := checkpointtest.New()
		r := keeper(t, p, store, Options{FailedKeep: true})
		for _, name := range []string{"failed", "released", "retried", "tried"} {
			p.put(name, "x")
		}
		ms, _ := fetch(t, r, 4)
		s := settlements(sources.Reject, ms...)
		s[1].Outcome, s[2].Outcome, s[3].Outcome = sources.Release, sources.Retry, sources.Release
		s[2].Delay = time.Hour
		ms[3].Attempt = 5 // the runtime has tried it
		if err := r.Settle(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		if err := r.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		r = keeper(t, p, store, Options{FailedKeep: true})
		ms, keys := fetch(t, r, 2)
		if !slices.Equal(keys, []string{"released", "tried"}) || ms[0].Attempt != 1 || ms[1].Attempt != 5 {
			t.Fatalf("got %q, attempts %d and %d", keys, ms[0].Attempt, ms[1].Attempt)
		}
		settle(t, r, sources.Done, ms...)
		ms, keys = fetch(t, r, 1)
		if d := time.Since(start); keys[0] != "retried" || ms[0].Attempt != 2 || d < 59*time.Minute || d > 61*time.Minute {
			t.Fatalf("got %q, attempt %d, after %v", keys, ms[0].Attempt, d)
		}
		p.put("failed", "better")
		settle(t, r, sources.Done, ms...)
		if ms, keys = fetch(t, r, 1); keys[0] != "failed" || ms[0].Attempt != 1 {
			t.Fatalf("got %q, attempt %d", keys, ms[0].Attempt)
		}
	})
}

// TestKeptAndMoved: what succeeded goes, what failed stays, and the other way round.
func TestKeptAndMoved(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newFake()
		r := keeperUnder(t, p, checkpointtest.New().Claim(), Options{Success: "done", FailedKeep: true})
		p.put("a", "x")
		p.put("b", "x")
		ms, _ := fetch(t, r, 2)
		settle(t, r, sources.Done, ms[0])
		settle(t, r, sources.Reject, ms[1])
		nothing(t, r, time.Minute)
		if p.moved["done/a"] == "" || p.files["b"] == nil || p.files["a"] != nil {
			t.Errorf("moved %q", p.moved)
		}
		p = newFake()
		r = keeper(t, p, checkpointtest.New(), Options{Failed: "failed"})
		p.put("a", "x")
		p.put("b", "x")
		ms, _ = fetch(t, r, 2)
		settle(t, r, sources.Done, ms[0])
		settle(t, r, sources.Reject, ms[1])
		nothing(t, r, time.Minute)
		if p.files["a"] == nil || p.moved["failed/b"] == "" || p.moved["failed/b.reason.txt"] == "" {
			t.Errorf("moved %q", p.moved)
		}
		p = newFake()
		r = keeper(t, p, checkpointtest.New(), Options{})
		p.put("a", "x")
		ms, _ = fetch(t, r, 1)
		if err := r.Settle(t.Context(), settlements(sources.Reject, ms...)); !errors.Is(err, sources.ErrNoDeadLetter) {
			t.Errorf("a reject without a place for it: %v", err)
		}
		settle(t, r, sources.Done, ms...)
	})
}

// TestKeptNameTooLong: a file that could not be remembered is left alone, and told; a settlement of one fails alone.
func TestKeptNameTooLong(t *testing.T) {
	t.Parallel()
	bothListings(t, func(t *testing.T, p *fake) {
		var log strings.Builder
		o := Options{Deep: true, Logger: slog.New(slog.NewTextHandler(&log, nil))}
		r := keeper(t, p, checkpointtest.New(), o)
		long := strings.Repeat("folder/", seen.MaxName/7) + "name"
		p.put(long, "x")
		p.put("a", "x")
		p.put(long[:seen.MaxName], "x")
		ms, keys := fetch(t, r, 2)
		if len(keys[1]) != seen.MaxName {
			t.Fatalf("got %q", keys)
		}
		m, f := &rebalancer.Message{Key: long}, &file{part: part{name: long}, attempt: 1}
		r.mu.Lock()
		r.hand[m], r.owned[long] = f, f
		r.mu.Unlock()
		var some *sources.SettleError
		if err := r.Settle(t.Context(), settlements(sources.Done, append(ms, m)...)); !errors.As(err, &some) || len(some.Failed) != 1 || some.Failed[2] == nil {
			t.Errorf("Settle: %v", err)
		}
		nothing(t, r, time.Minute)
		if !strings.Contains(log.String(), long) {
			t.Errorf("it is not told: %s", log.String())
		}
	})
}

// TestKeptStoreTrouble: what cannot be remembered is not settled; a resource that another took is told by Settle and Fetch.
func TestKeptStoreTrouble(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, store := newFake(), checkpointtest.New()
		store.Plan(func(string) checkpointtest.Fault { return checkpointtest.Fault{Before: true} })
		r := keeper(t, p, store, Options{})
		p.put("a", "x")
		p.put("b", "x")
		if _, err := r.Fetch(t.Context(), 1); !errors.Is(err, checkpointtest.ErrInjected) {
			t.Fatalf("Fetch without a store: %v", err)
		}
		store.Plan(nil)
		ms, _ := fetch(t, r, 2)
		store.Plan(func(string) checkpointtest.Fault { return checkpointtest.Fault{Before: true} })
		s := settlements(sources.Done, ms...)
		s[1].Outcome = sources.Release
		ms[1].Attempt = 2
		var some *sources.SettleError
		if err := r.Settle(t.Context(), s); !errors.As(err, &some) || len(some.Failed) != 1 || !errors.Is(some.Failed[0], checkpointtest.ErrInjected) {
			t.Fatalf("Settle without a store: %v", err)
		}
		store.Plan(nil)
		settle(t, r, sources.Done, ms[0])
		other := keeperUnder(t, p, store.Claim(), Options{Keep: true})
		again, _ := fetch(t, other, 1)
		ms, _ = fetch(t, r, 1)
		if err := r.Settle(t.Context(), settlements(sources.Done, ms...)); !errors.Is(err, rebalancer.ErrLost) {
			t.Fatalf("Settle of an old owner: %v", err)
		}
		settle(t, other, sources.Done, again...)
	})
}

// TestKeptUnderOneClaim: a Reader after which another was opened under the claim ends.
func TestKeptUnderOneClaim(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, cp := newFake(), checkpointtest.New().Claim()
		a := keeperUnder(t, p, cp, Options{Keep: true})
		p.put("a", "x")
		ms, _ := fetch(t, a, 1)
		b := keeperUnder(t, p, cp, Options{Keep: true})
		fetch(t, b, 1)
		if err := a.Settle(t.Context(), settlements(sources.Done, ms...)); !errors.Is(err, rebalancer.ErrStale) {
			t.Errorf("Settle: %v", err)
		}
		if _, err := a.Fetch(t.Context(), 1); !errors.Is(err, rebalancer.ErrStale) {
			t.Errorf("Fetch: %v", err)
		}
	})
}

// TestKeptByItsOwnTag: a tag that is of one machine is no part of what is remembered.
func TestKeptByItsOwnTag(t *testing.T) {
	t.Parallel()
	for _, local := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			p, store := newFake(), checkpointtest.New()
			r := keeper(t, p, store, Options{LocalTags: local})
			p.put("a", "x")
			ms, _ := fetch(t, r, 1)
			settle(t, r, sources.Done, ms...)
			p.set(func(p *fake) { p.files["a"].inode += 1000 }) // as another machine shows it
			r = keeper(t, p, store, Options{LocalTags: local})
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if ms, err := r.Fetch(ctx, 1); (err == nil) == local {
				t.Errorf("local %v: %d files, %v", local, len(ms), err)
			}
		})
	}
}

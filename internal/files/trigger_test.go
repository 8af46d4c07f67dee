package files

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rebalancer-go/rebalancer/sources"
)

func TestTriggerFile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newFake()
		r := reader(t, p, Options{Trigger: "GO", Failed: "failed", StableFor: -1})
		p.put("a", "")
		p.put("b", "")
		p.put("c", "")
		nothing(t, r, time.Minute)
		p.put("GO", "")
		ms, keys := fetch(t, r, 3)
		if !slices.Equal(keys, []string{"a", "b", "c"}) {
			t.Fatalf("got %q", keys)
		}
		p.put("d", "") // of the next round
		settle(t, r, sources.Done, ms[0])
		settle(t, r, sources.Reject, ms[1])
		settle(t, r, sources.Retry, ms[2])
		ms, keys = fetch(t, r, 1)
		if keys[0] != "c" {
			t.Fatalf("got %q", keys)
		}
		nothing(t, r, time.Minute)
		if !p.has("GO") {
			t.Fatal("the trigger file was removed before all was settled")
		}
		settle(t, r, sources.Done, ms...)
		nothing(t, r, time.Minute)
		if p.has("GO") || !p.has("d") {
			t.Fatal("the trigger file was not removed after the round, or the next round was worked")
		}
		// A sender that writes the trigger anew before it is gone begins the next round.
		p.put("GO", "1")
		ms, _ = fetch(t, r, 1)
		p.put("e", "")
		p.put("GO", "2")
		settle(t, r, sources.Done, ms...)
		ms, keys = fetch(t, r, 1)
		if keys[0] != "e" {
			t.Fatalf("got %q", keys)
		}
		settle(t, r, sources.Done, ms...)
		nothing(t, r, time.Minute)
		if p.names() != 0 {
			t.Errorf("%d files left", p.names())
		}
		// An empty round is one, too.
		p.put("GO", "3")
		nothing(t, r, time.Minute)
		if p.names() != 0 {
			t.Error("a trigger of nothing stays")
		}
	})
}

// TestTriggerAfterACrash: what was not settled is found with the trigger that released it.
func TestTriggerAfterACrash(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newFake()
		o := Options{Trigger: "GO"}
		r := reader(t, p, o)
		for _, n := range []string{"a", "b", "GO"} {
			p.put(n, "")
		}
		ms, _ := fetch(t, r, 2)
		settle(t, r, sources.Done, ms[0])
		if err := r.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		r = reader(t, p, o)
		ms, keys := fetch(t, r, 1)
		if keys[0] != "b" {
			t.Fatalf("got %q", keys)
		}
		settle(t, r, sources.Done, ms...)
		nothing(t, r, time.Minute)
		if p.names() != 0 {
			t.Errorf("%d files left", p.names())
		}
	})
}

// TestTriggerIsTakenAway: a sender that takes its trigger back stops what is not handed out yet.
func TestTriggerIsTakenAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newFake()
		r := reader(t, p, Options{Trigger: "GO"})
		for _, n := range []string{"a", "b", "GO"} {
			p.put(n, "")
		}
		ms, _ := fetch(t, r, 1)
		p.remove("GO")
		settle(t, r, sources.Done, ms...)
		time.Sleep(time.Minute) // virtual: a listing is due
		nothing(t, r, time.Minute)
		if !p.has("b") {
			t.Error("b was lost")
		}
	})
}

// TestShortListing: a listing that lacks what is there ends no round.
func TestShortListing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newFake()
		r := reader(t, p, Options{Trigger: "GO"})
		for _, n := range []string{"a", "b", "GO"} {
			p.put(n, "")
		}
		ms, _ := fetch(t, r, 2)
		later := settlements(sources.Retry, ms[1])
		later[0].Delay = 15 * time.Minute
		if err := r.Settle(t.Context(), later); err != nil {
			t.Fatal(err)
		}
		settle(t, r, sources.Done, ms[0])
		p.set(func(p *fake) { p.hidden = map[string]bool{"b": true} })
		nothing(t, r, 10*time.Minute)
		if !p.has("GO") {
			t.Fatal("the trigger was removed while a file of its round was only not listed")
		}
		p.set(func(p *fake) { p.hidden = map[string]bool{"b": true, "GO": true} })
		nothing(t, r, 10*time.Minute)
		p.set(func(p *fake) { p.hidden = nil })
		ms, keys := fetch(t, r, 1)
		if keys[0] != "b" || ms[0].Attempt != 2 {
			t.Fatalf("got %q, attempt %d", keys, ms[0].Attempt)
		}
		// A file of the round that others take away is looked for, and is no reason to wait.
		p.remove("b")
		settle(t, r, sources.Retry, ms...)
		nothing(t, r, time.Minute)
		if p.names() != 0 {
			t.Error("the trigger waits for a file that others took away")
		}
	})
}

// TestTriggerErrors: nothing is taken for gone because it cannot be looked at.
func TestTriggerErrors(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newFake()
		r := reader(t, p, Options{Trigger: "GO"})
		p.put("a", "")
		p.put("GO", "")
		broken := errors.New("input/output error")
		fails := func(on, file string) {
			p.set(func(p *fake) {
				p.fail = func(op, name string) error {
					if op == on && name == file {
						return broken
					}
					return nil
				}
			})
		}
		fails("stat", "GO")
		if _, err := r.Fetch(t.Context(), 1); !errors.Is(err, broken) {
			t.Fatalf("Fetch: %v", err)
		}
		fails("remove", "GO")
		ms, _ := fetch(t, r, 1)
		settle(t, r, sources.Done, ms...)
		time.Sleep(time.Minute) // virtual
		if _, err := r.Fetch(t.Context(), 1); !errors.Is(err, broken) {
			t.Fatalf("Fetch: %v", err)
		}
		fails("", "")
		nothing(t, r, time.Minute)
		if p.names() != 0 {
			t.Error("the trigger is left")
		}
		if _, err := p.Stat(context.Background(), "GO"); !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
	})
}

// TestTriggerInTwoSteps: a trigger file that is created and then written releases one round.
func TestTriggerInTwoSteps(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newFake()
		r := reader(t, p, Options{Trigger: "GO", StableFor: 10 * time.Second})
		p.put("a", "")
		p.put("GO", "")
		nothing(t, r, 9*time.Second)
		p.grow("GO", "go")
		start := time.Now()
		ms, _ := fetch(t, r, 1)
		if d := time.Since(start); d < 10*time.Second || d > 25*time.Second {
			t.Errorf("released after %v", d)
		}
		p.put("b", "half") // of the next round
		settle(t, r, sources.Done, ms...)
		nothing(t, r, 5*time.Hour)
		if p.has("GO") || !p.has("b") {
			t.Errorf("left %q", p.list())
		}
	})
}

// TestClaimedFileOfARound that a listing lacks is not gone.
func TestClaimedFileOfARound(t *testing.T) {
	t.Parallel()
	for _, crash := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			p := newFake()
			r := fencedReader(t, p, Options{Trigger: "GO", Claim: true}, "g", 7)
			p.put("a", "")
			p.put("GO", "")
			ms, _ := fetch(t, r, 1)
			as := claimsOf("g", 7).as("a")
			if crash {
				r = fencedReader(t, p, Options{Trigger: "GO", Claim: true, StableFor: time.Hour}, "g", 8)
				nothing(t, r, 2*time.Hour-time.Minute) // the trigger is stable, and the file is not yet
			} else {
				later := settlements(sources.Retry, ms...)
				later[0].Delay = 10 * time.Hour
				if err := r.Settle(t.Context(), later); err != nil {
					t.Fatal(err)
				}
			}
			p.set(func(p *fake) { p.hidden = map[string]bool{as: true} })
			nothing(t, r, time.Minute)
			if !p.has("GO") || !p.has(as) {
				t.Errorf("left %q", p.list())
			}
		})
	}
}

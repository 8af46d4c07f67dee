package files

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rebalancer-go/rebalancer/internal/checkpointtest"
	"github.com/rebalancer-go/rebalancer/internal/files/seen"
	"github.com/rebalancer-go/rebalancer/sources"
)

// TestFullBesideRetries: what needs no room is delivered though as many files as are asked for wait for room before it.
func TestFullBesideRetries(t *testing.T) {
	t.Parallel()
	bothListings(t, func(t *testing.T, p *fake) {
		r := keeper(t, p, checkpointtest.New(), Options{})
		r.keep.conf.Most = 3
		for _, name := range []string{"x1", "x2", "x3"} {
			p.put(name, "x")
		}
		ms, _ := fetch(t, r, 3)
		settle(t, r, sources.Done, ms[:2]...)
		later := settlements(sources.Retry, ms[2])
		later[0].Delay = time.Minute
		if err := r.Settle(t.Context(), later); err != nil {
			t.Fatal(err)
		}
		for i := range 20 {
			p.put(fmt.Sprintf("a%d", i), "x") // before it in the order
		}
		full, start := 0, time.Now()
		for {
			ms, err := r.Fetch(t.Context(), 2)
			if err == nil {
				if len(ms) != 1 || ms[0].Key != "x3" {
					t.Fatalf("got %d files, %q", len(ms), ms[0].Key)
				}
				settle(t, r, sources.Done, ms...)
				break
			}
			if !errors.Is(err, seen.ErrFull) || !r.Keep() || time.Since(start) > 10*time.Minute {
				t.Fatalf("after %v: %v, keep %v", time.Since(start), err, r.Keep())
			}
			full++
			time.Sleep(time.Second)
		}
		if full == 0 {
			t.Error("never full")
		}
	})
}

func TestKeptIsFull(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, store := newFake(), checkpointtest.New()
		r := keeper(t, p, store, Options{})
		r.keep.conf.Most = 10
		for i := range 12 {
			p.put(fmt.Sprintf("%02d", i), "x")
		}
		ms, _ := fetch(t, r, 8)
		more, _ := fetch(t, r, 2)
		if _, err := r.Fetch(t.Context(), 5); !errors.Is(err, seen.ErrFull) {
			t.Fatalf("Fetch beyond the room: %v", err)
		}
		settle(t, r, sources.Done, append(ms, more...)...)
		if _, err := r.Fetch(t.Context(), 5); !errors.Is(err, seen.ErrFull) {
			t.Fatalf("Fetch of a full resource: %v", err)
		}
		if !r.Keep() {
			t.Error("a Reader that has no room is opened again, which would not help")
		}
		p.put("03", "new") // a known name needs no room
		deadline := time.Now().Add(time.Minute)
		for {
			ms, err := r.Fetch(t.Context(), 5)
			if err == nil && len(ms) == 1 && ms[0].Key == "03" {
				break
			}
			if !errors.Is(err, seen.ErrFull) || time.Now().After(deadline) {
				t.Fatalf("%d files, %v", len(ms), err)
			}
			time.Sleep(100 * time.Millisecond)
		}
		if r.Keep() {
			t.Error("Keep after a Fetch that went well")
		}
	})
}

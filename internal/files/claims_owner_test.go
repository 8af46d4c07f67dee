package files

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rebalancer-go/rebalancer/sources"
)

// TestOldOwnerGivesNothingBack that a new owner has in hand, whether the old one listed it before or after the new one took it.
func TestOldOwnerGivesNothingBack(t *testing.T) {
	t.Parallel()
	for _, again := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			p := newFake()
			p.put("a", "")
			old := fencedReader(t, p, Options{Claim: true}, "g", 7)
			ms, _ := fetch(t, old, 1)
			owner := fencedReader(t, p, Options{Claim: true}, "g", 40)
			taken, keys := fetch(t, owner, 1)
			if keys[0] != "a" {
				t.Fatalf("got %q", keys)
			}
			if again {
				later := settlements(sources.Retry, ms...)
				later[0].Delay = 10 * time.Hour // it lists the file and does not claim it
				if err := old.Settle(t.Context(), later); err != nil {
					t.Fatal(err)
				}
				nothing(t, old, time.Minute)
			}
			if err := old.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := p.list(); !slices.Equal(got, []string{claimsOf("g", 40).as("a")}) {
				t.Errorf("the place holds %q after the old owner closed", got)
			}
			settle(t, owner, sources.Done, taken...)
			if p.names() != 0 {
				t.Errorf("left %q", p.list())
			}
		})
	}
}

// TestCloseGivesAllBack: also what an earlier owner had claimed and what waits still, looked at or not.
func TestCloseGivesAllBack(t *testing.T) {
	t.Parallel()
	for _, stable := range []time.Duration{-1, 10 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			p := newFake()
			o := Options{Claim: true, Set: []string{"*.x", "*.y"}}
			for _, n := range []string{"1.x", "1.y", "2.x", "2.y", "3.x", "3.y"} {
				p.put(n, "")
			}
			fetch(t, fencedReader(t, p, o, "g", 7), 2) // and a crash
			o.StableFor = stable
			r := fencedReader(t, p, o, "g", 8)
			if stable < 0 {
				fetch(t, r, 1)
			} else {
				nothing(t, r, time.Minute)
			}
			if err := r.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := p.list(); !slices.Equal(got, []string{"1.x", "1.y", "2.x", "2.y", "3.x", "3.y"}) {
				t.Errorf("after Close the place holds %q", got)
			}
		})
	}
}

// TestClaimThatIsBrokenOff: a rename that was carried out though it failed, for the context of its Fetch has ended, is undone.
func TestClaimThatIsBrokenOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newFake()
		r := groupReader(t, p, Options{Claim: true}, "g")
		p.put("a", "")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		r.place = &lateRename{p, cancel}
		if _, err := r.Fetch(ctx, 1); !errors.Is(err, context.Canceled) {
			t.Fatalf("Fetch: %v", err)
		}
		if got := p.list(); !slices.Equal(got, []string{"a"}) {
			t.Errorf("the place holds %q", got)
		}
	})
}

// lateRename carries the first claim out and fails.
type lateRename struct {
	*fake
	cancel func()
}

func (p *lateRename) Rename(ctx context.Context, name string, want Info, as string) error {
	err := p.fake.Rename(ctx, name, want, as)
	if err == nil && strings.HasPrefix(as, ours) {
		p.cancel()
		return ctx.Err()
	}
	return err
}

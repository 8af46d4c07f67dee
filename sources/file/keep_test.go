package file

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/internal/checkpointtest"
	"github.com/rebalancer-go/rebalancer/internal/files/seen"
	"github.com/rebalancer-go/rebalancer/internal/keeptest"
	"github.com/rebalancer-go/rebalancer/internal/readertest"
	"github.com/rebalancer-go/rebalancer/sources"
	"github.com/rebalancer-go/rebalancer/sources/pickup"
	"github.com/rebalancer-go/rebalancer/sources/sourcetest"
)

// TestKeepSuite: with files that stay, what is left is what the checkpoint does not have as done.
func TestKeepSuite(t *testing.T) {
	t.Parallel()
	for what, change := range map[string]func(*Config){
		"keep":                 func(c *Config) { c.OnSuccess = pickup.Keep() },
		"keep what failed too": func(c *Config) { c.OnSuccess, c.OnFailure = pickup.Keep(), pickup.Keep() },
		"without a dead-letter place, by time": func(c *Config) {
			c.OnSuccess, c.OnFailure, c.Order = pickup.Keep(), pickup.Action{}, pickup.ByTime
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			sourcetest.Run(t, sourcetest.Harness{New: func(tb testing.TB) *sourcetest.Fixture { return keepFixture(tb, change) }})
		})
	}
}

func keepFixture(tb testing.TB, change func(*Config)) *sourcetest.Fixture {
	root := ""
	var failed pickup.Kind
	f := fixture(tb, func(c *Config) {
		change(c)
		root, failed = c.Root, c.OnFailure.Kind()
	})
	all := &keeptest.Stores{}
	f.Checkpoint = all.Claim
	inPlace := f.Left
	f.Left = func(resource string) int {
		return inPlace(resource) - all.Worked(tb, resource)
	}
	if failed == pickup.Keeps {
		f.Rejected = func(resource string) (bodies []string) {
			for _, name := range all.Names(tb, resource, seen.Failed) {
				b, err := os.ReadFile(filepath.Join(root, resource, name))
				if err != nil {
					tb.Error(err)
				}
				bodies = append(bodies, string(b))
			}
			return bodies
		}
	}
	return f
}

// owner is one Reader of the resource "in" at a time, and what its handler was given.
type owner struct {
	testing.TB
	source *Source
	store  *checkpointtest.Store
	worked map[string]int
}

func newOwner(tb testing.TB, cfg Config) *owner {
	return &owner{TB: tb, source: newSource(tb, cfg), store: checkpointtest.New(), worked: map[string]int{}}
}

func (o *owner) open(cp *checkpointtest.Checkpoint) sources.Reader {
	o.Helper()
	r, err := o.source.Open(context.Background(), &rebalancer.Claim{Group: "g", Resource: "in", Fence: cp.Fence(), Checkpoint: cp})
	if err != nil {
		o.Fatal(err)
	}
	return r
}

// work works what comes, in batches, until nothing comes for a while or a call fails.
func (o *owner) work(r sources.Reader, batch int) error {
	for {
		ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
		ms, err := r.Fetch(ctx, batch)
		late := ctx.Err() != nil
		cancel()
		if err != nil {
			if late {
				return nil
			}
			return err
		}
		for _, m := range ms {
			if _, err := readertest.Read(context.Background(), m); err != nil {
				return err
			}
			o.worked[m.Key]++
		}
		if err := readertest.TrySettle(r, sources.Done, ms...); err != nil {
			return err
		}
	}
}

// TestKeepKilledAtEachStep ends the reader at each of its calls of the store, before the store has it, after, or with the write
// arriving when the next owner works. Each file is worked once, those of the batch under way perhaps twice.
func TestKeepKilledAtEachStep(t *testing.T) {
	t.Parallel()
	const files, batch = 12, 4
	for at := range 2 + files/batch {
		for _, fault := range []checkpointtest.Fault{{Before: true}, {After: true}, {Late: true}} {
			t.Run(fmt.Sprintf("call %d %+v", at, fault), func(t *testing.T) {
				t.Parallel()
				top := root(t)
				cfg := quick(top)
				cfg.OnSuccess, cfg.StableFor = pickup.Keep(), -1
				for i := range files {
					write(t, filepath.Join(top, "in", fmt.Sprintf("%03d", i)), "body %d", i)
				}
				o := newOwner(t, cfg)
				calls := 0
				o.store.Plan(func(string) checkpointtest.Fault {
					if calls++; calls == at+1 {
						return fault
					}
					return checkpointtest.Fault{}
				})
				cp := o.store.Claim()
				if err := o.work(o.open(cp), batch); err == nil {
					t.Fatal("the fault was not met")
				}
				o.store.Plan(nil)
				r := o.open(cp) // as after a crash that the store has not noticed: the claim is the same
				if err := o.work(r, batch); err != nil {
					t.Fatal(err)
				}
				o.store.Arrive()
				if err := o.work(r, batch); err != nil {
					t.Fatal(err)
				}
				if err := o.work(o.open(o.store.Claim()), batch); err != nil {
					t.Fatal(err)
				}
				twice := 0
				for i := range files {
					switch n := o.worked[fmt.Sprintf("%03d", i)]; n {
					case 1:
					case 2:
						twice++
					default:
						t.Errorf("file %d was worked %d times", i, n)
					}
				}
				if twice > batch {
					t.Errorf("%d files were worked twice, the batch under way has %d", twice, batch)
				}
			})
		}
	}
}

// TestKeepTwoOwners: the old owner's Reader goes on after another has taken the resource. Nothing that it does counts.
func TestKeepTwoOwners(t *testing.T) {
	t.Parallel()
	top := root(t)
	cfg := quick(top)
	cfg.OnSuccess, cfg.StableFor = pickup.Keep(), -1
	in := filepath.Join(top, "in")
	for i := range 6 {
		write(t, filepath.Join(in, fmt.Sprint(i)), "old")
	}
	o := newOwner(t, cfg)
	old := o.open(o.store.Claim())
	frozen := readertest.Fetch(t, old, 6)
	next := o.open(o.store.Claim())
	readertest.Settle(t, next, sources.Done, readertest.Fetch(t, next, 6)[:3]...)
	if err := readertest.TrySettle(old, sources.Done, frozen...); err == nil {
		t.Fatal("the old owner could settle")
	}
	last := o.open(o.store.Claim())
	ms := readertest.Fetch(t, last, 3)
	if ms[0].Key != "3" {
		t.Fatalf("got %q first", ms[0].Key)
	}
	readertest.Settle(t, last, sources.Done, ms...)
	readertest.Nothing(t, last)
	write(t, filepath.Join(in, "2"), "another file under the name")
	ms = readertest.Fetch(t, last, 1)
	if body, err := readertest.Read(context.Background(), ms[0]); ms[0].Key != "2" || body != "another file under the name" {
		t.Fatalf("got %q, %q, %v", ms[0].Key, body, err)
	}
	readertest.Settle(t, last, sources.Done, ms...)
	readertest.Nothing(t, last)
	want(t, in, "old", "old", "another file under the name", "old", "old", "old")
}

//go:build linux

package stores

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/admin"
	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/group"
)

// What operators do, over each store: with wrong names, of a group that is not there, twice, and beside rebalances.
func TestAdministration(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, k kind) {
		sys := k.start(t)
		t.Run("by itself", func(t *testing.T) { t.Parallel(); byItself(t, sys) })
		for mode, global := range modes {
			if !*soak && global == (k.newer || k.name == "sqlite") {
				continue
			}
			t.Run("beside rebalances/"+mode, func(t *testing.T) {
				t.Parallel()
				own := *sys
				own.group = "administered with " + mode
				besideRebalances(t, &own, global)
			})
		}
	})
}

// named is what operators do with something that has a name.
var named = map[string]func(ctx context.Context, s backends.Store, group, name string) ([]string, error){
	"add": func(ctx context.Context, s backends.Store, g, n string) ([]string, error) {
		return admin.AddResources(ctx, s, g, n)
	},
	"remove": func(ctx context.Context, s backends.Store, g, n string) ([]string, error) {
		return admin.RemoveResources(ctx, s, g, n)
	},
	"register": func(ctx context.Context, s backends.Store, g, n string) ([]string, error) {
		return admin.Register(ctx, s, g, admin.Registration{Name: n, Weight: 2})
	},
	"weight": func(ctx context.Context, s backends.Store, g, n string) ([]string, error) {
		return admin.SetWeight(ctx, s, g, 2, n)
	},
	"pause": func(ctx context.Context, s backends.Store, g, n string) ([]string, error) {
		return admin.Pause(ctx, s, g, false, n)
	},
	"resume": func(ctx context.Context, s backends.Store, g, n string) ([]string, error) {
		return admin.Resume(ctx, s, g, n)
	},
	"pin": func(ctx context.Context, s backends.Store, g, n string) ([]string, error) {
		return admin.Pin(ctx, s, g, "n", n)
	},
	"unpin": func(ctx context.Context, s backends.Store, g, n string) ([]string, error) {
		return admin.Unpin(ctx, s, g, n)
	},
	"move": func(ctx context.Context, s backends.Store, g, n string) ([]string, error) {
		return admin.Move(ctx, s, g, "n", n)
	},
	"drain": func(ctx context.Context, s backends.Store, g, n string) ([]string, error) {
		return admin.Drain(ctx, s, g, n)
	},
	"undrain": func(ctx context.Context, s backends.Store, g, n string) ([]string, error) {
		return admin.Undrain(ctx, s, g, n)
	},
	"evict": func(ctx context.Context, s backends.Store, g, n string) ([]string, error) {
		return admin.Evict(ctx, s, g, n)
	},
	"reset": func(ctx context.Context, s backends.Store, g, n string) ([]string, error) {
		list, err := admin.ResetCheckpoints(ctx, s, g, true, n)
		var names []string
		for _, c := range list {
			names = append(names, c.Resource)
		}
		return names, err
	},
	"export": func(ctx context.Context, s backends.Store, g, n string) ([]string, error) {
		_, err := admin.ReadCheckpoint(ctx, s, g, n)
		return nil, err
	},
}

// whole is what they do with a group.
var whole = map[string]func(ctx context.Context, s backends.Store, group string) error{
	"describe": func(ctx context.Context, s backends.Store, g string) error {
		_, err := admin.Describe(ctx, s, g)
		return err
	},
	"resources": func(ctx context.Context, s backends.Store, g string) error {
		_, err := admin.Resources(ctx, s, g)
		return err
	},
	"history": func(ctx context.Context, s backends.Store, g string) error {
		_, err := admin.History(ctx, s, g)
		return err
	},
	"checkpoints": func(ctx context.Context, s backends.Store, g string) error {
		_, err := admin.Checkpoints(ctx, s, g)
		return err
	},
	"step down": func(ctx context.Context, s backends.Store, g string) error {
		_, err := admin.StepDown(ctx, s, g)
		return err
	},
	"pause": func(ctx context.Context, s backends.Store, g string) error {
		_, err := admin.PauseGroup(ctx, s, g, true)
		return err
	},
	"resume": func(ctx context.Context, s backends.Store, g string) error {
		_, err := admin.ResumeGroup(ctx, s, g)
		return err
	},
	"delete": func(ctx context.Context, s backends.Store, g string) error {
		_, err := admin.Delete(ctx, s, g)
		return err
	},
}

// wrongly asks for all of it where it cannot be.
func wrongly(t *testing.T, store backends.Store) {
	t.Helper()
	ctx := t.Context()
	for what, do := range whole {
		if err := do(ctx, store, "missing"); !errors.Is(err, admin.ErrNotFound) {
			t.Errorf("%s of a missing group: %v", what, err)
		}
		if err := do(ctx, store, "a/b"); !errors.Is(err, admin.ErrInvalid) {
			t.Errorf("%s of a group with a wrong name: %v", what, err)
		}
	}
	for what, do := range named {
		if _, err := do(ctx, store, "missing", "a"); !errors.Is(err, admin.ErrNotFound) {
			t.Errorf("%s in a missing group: %v", what, err)
		}
		if _, err := do(ctx, store, "by itself", ""); !errors.Is(err, admin.ErrInvalid) {
			t.Errorf("%s of a wrong name: %v", what, err)
		}
	}
}

func byItself(t *testing.T, sys *system) {
	store := sys.open(t, sys.addr)
	defer store.Close()
	wrongly(t, store)
	ctx := t.Context()
	const g = "by itself"
	if _, err := admin.Create(ctx, store, g, admin.Settings{Origin: "registered", TTL: sys.ttl}); err != nil {
		t.Fatal(err)
	}
	operator := admin.As(store, "ann", "a test")
	for _, what := range []string{"add", "weight", "register", "pause", "resume", "pin", "unpin", "drain", "undrain", "remove"} {
		want := 1
		if what == "register" {
			want = 0 // it has this weight by now
		}
		for i := range 2 {
			if changed, err := named[what](ctx, operator, g, "a"); err != nil || len(changed) != want*(1-i) {
				t.Errorf("%s, time %d: %q, %v", what, i+1, changed, err)
			}
		}
	}
	for _, what := range []string{"weight", "move"} {
		if _, err := named[what](ctx, store, g, "none"); !errors.Is(err, admin.ErrRefused) {
			t.Errorf("%s of what is not there: %v", what, err)
		}
	}
	for _, what := range []string{"evict", "reset"} {
		if changed, err := named[what](ctx, store, g, "none"); err != nil || len(changed) > 0 {
			t.Errorf("%s of what is not there: %q, %v", what, changed, err)
		}
	}
	list, err := admin.History(ctx, store, g)
	var kinds []string
	for _, r := range list {
		kinds = append(kinds, r.Kind)
	}
	slices.Reverse(kinds)
	if want := []string{"create", "register", "weight", "pause", "resume", "pin", "unpin", "drain", "undrain", "remove"}; err != nil || !slices.Equal(kinds, want) {
		t.Errorf("history %q, %v; want %q", kinds, err, want)
	}
	for i, want := range []bool{true, false} {
		if deleted, err := admin.Delete(ctx, store, g); err != nil || deleted != want {
			t.Errorf("delete, time %d: %v, %v", i+1, deleted, err)
		}
	}
	if gs, err := admin.Groups(ctx, store); err != nil || slices.Contains(gs, g) {
		t.Errorf("groups %q, %v", gs, err)
	}
}

// besideRebalances: operators act while nodes come and go. Nothing is worked twice (which the ledger sees to), all that they ask for is done, and the
// history tells of it.
func besideRebalances(t *testing.T, sys *system, global bool) {
	const resources = 9
	f := newFleet(t, sys, global)
	store := sys.open(t, sys.addr)
	t.Cleanup(func() { _ = store.Close() })
	ctx := t.Context()
	set := admin.Settings{Origin: "registered", TTL: sys.ttl}
	if global {
		set.Barrier = "global"
	}
	if _, err := admin.Create(ctx, store, sys.group, set); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.AddResources(ctx, store, sys.group, names(resources)...); err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		f.start(fmt.Sprint("n", i), group.Registered())
	}
	f.evenly("two nodes", time.Minute, resources)
	f.start("n2", group.Registered()) // and while it joins
	atOnce(t, admin.As(store, "ann", "a test"), sys.group, names(resources)[0])
	f.until("all is worked by three", time.Minute, func() bool {
		counts, sum := f.ledger.counts(), 0
		for _, n := range counts {
			sum += n
		}
		return sum == resources && len(counts) == 3
	})
	if _, err := admin.Delete(ctx, store, sys.group); !errors.Is(err, admin.ErrRefused) {
		t.Errorf("a live group is deleted: %v", err)
	}
	evicted(t, f, store, "n1")
	f.until("the others work all", time.Minute, func() bool {
		counts := f.ledger.counts()
		return counts["n0"]+counts["n2"] == resources
	})
	f.stopAll()
	told(t, store, sys.group)
	if deleted, err := admin.Delete(ctx, store, sys.group); err != nil || !deleted {
		t.Errorf("delete: %v, %v", deleted, err)
	}
}

// atOnce asks for many things at the same moment, and takes back what would stay.
func atOnce(t *testing.T, operator backends.Store, group, resource string) {
	t.Helper()
	ctx := t.Context()
	errs := make(chan error)
	ops := []string{"pause", "resume", "pin", "unpin", "weight", "add"}
	for _, what := range ops {
		go func() {
			_, err := named[what](ctx, operator, group, resource)
			errs <- err
		}()
	}
	go func() { errs <- whole["step down"](ctx, operator, group) }()
	for range len(ops) + 1 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	for _, what := range []string{"resume", "unpin"} { // whichever came last
		if _, err := named[what](ctx, operator, group, resource); err != nil {
			t.Error(err)
		}
	}
}

// evicted evicts a node and waits until it has ended.
func evicted(t *testing.T, f *fleet, store backends.Store, name string) {
	t.Helper()
	if gone, err := admin.Evict(t.Context(), store, f.sys.group, name); err != nil || len(gone) != 1 {
		t.Errorf("evict: %q, %v", gone, err)
	}
	n := f.nodes[name]
	delete(f.nodes, name)
	defer n.stop()
	select {
	case err := <-n.done:
		if !errors.Is(err, group.ErrSuperseded) {
			t.Errorf("the evicted node ended with %v", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("the evicted node goes on")
	}
	if err := n.store.Close(); err != nil {
		t.Error(err)
	}
	if n.link != nil {
		n.link.Cut()
	}
}

// told looks for what happened in the history.
func told(t *testing.T, store backends.Store, group string) {
	t.Helper()
	list, err := admin.History(t.Context(), store, group)
	if err != nil {
		t.Fatal(err)
	}
	moved, evicted := 0, false
	for i, r := range list {
		if r.Kind == admin.KindRebalance && r.Resource != "" && r.Reason != "" && r.Actor != "" && r.Epoch != 0 {
			moved++
		}
		evicted = evicted || r.Kind == admin.KindEvict && r.Node == "n1"
		if i > 0 && r.At.After(list[i-1].At) {
			t.Errorf("line %d is newer than the one before it", i)
		}
	}
	if moved < 9 || !evicted {
		t.Errorf("%d moves, evicted %v, in %d lines", moved, evicted, len(list))
	}
}

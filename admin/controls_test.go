package admin

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/backends/memory"
	"github.com/rebalancer-go/rebalancer/coord"
)

// What is asked for is written once, taken back once, and can be asked for again.
func TestControls(t *testing.T) {
	t.Parallel()
	pause := func(keep bool) operation {
		return func(ctx context.Context, s backends.Store, g string, list ...string) ([]string, error) {
			return Pause(ctx, s, g, keep, list...)
		}
	}
	pin := func(node string) operation {
		return func(ctx context.Context, s backends.Store, g string, list ...string) ([]string, error) {
			return Pin(ctx, s, g, node, list...)
		}
	}
	group := func(f func(context.Context, backends.Store, string) (bool, error)) operation {
		return func(ctx context.Context, s backends.Store, g string, list ...string) ([]string, error) {
			if changed, err := f(ctx, s, g); !changed {
				return nil, err
			}
			return list, nil
		}
	}
	pauseGroup := func(keep bool) operation {
		return group(func(ctx context.Context, s backends.Store, g string) (bool, error) {
			return PauseGroup(ctx, s, g, keep)
		})
	}
	for name, c := range map[string]struct {
		do, other, undo operation // other: the same in another way, nil when there is none
		key             string    // for "b"
		want            coord.Control
	}{
		"pause":   {pause(true), pause(false), Resume, coord.PauseKey("b"), coord.Control{Resource: "b", Keep: true}},
		"release": {pause(false), pause(true), Resume, coord.PauseKey("b"), coord.Control{Resource: "b"}},
		"drain":   {Drain, nil, Undrain, coord.DrainKey("b"), coord.Control{Node: "b"}},
		"pin":     {pin("n"), pin("m"), Unpin, coord.PinKey("b"), coord.Control{Resource: "b", Node: "n"}},
		"group":   {pauseGroup(true), pauseGroup(false), group(ResumeGroup), coord.PauseGroupKey, coord.Control{Keep: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := memory.New()
			s := session(t, store)
			want := func(what string, op operation, list, changed []string, stands *coord.Control) {
				t.Helper()
				if got, err := op(t.Context(), store, "g", list...); err != nil || !slices.Equal(got, changed) {
					t.Errorf("%s: %q, %v; want %q", what, got, err, changed)
				}
				if got := controlAt(t, s, c.key); !reflect.DeepEqual(got, stands) {
					t.Errorf("%s: %+v stands there, want %+v", what, got, stands)
				}
			}
			if _, err := c.do(t.Context(), store, "g", "b"); !errors.Is(err, ErrNotFound) {
				t.Errorf("no group: %v", err)
			}
			if _, err := Create(t.Context(), store, "g", registered); err != nil {
				t.Fatal(err)
			}
			want("nothing to undo", c.undo, []string{"b"}, nil, nil)
			want("do", c.do, []string{"b"}, []string{"b"}, &c.want)
			want("again", c.do, []string{"b"}, nil, &c.want)
			if c.other != nil {
				if got, err := c.other(t.Context(), store, "g", "b"); err != nil || len(got) != 1 {
					t.Errorf("otherwise: %q, %v", got, err)
				}
				want("back", c.do, []string{"b"}, []string{"b"}, &c.want)
			}
			if name != "group" {
				want("more", c.do, []string{"c", "b", "a", "c"}, []string{"c", "a"}, &c.want)
			}
			want("undo", c.undo, []string{"b"}, []string{"b"}, nil)
			want("undo again", c.undo, []string{"b"}, nil, nil)
		})
	}
}

func TestControlsInvalid(t *testing.T) {
	t.Parallel()
	store, ctx := memory.New(), t.Context()
	if _, err := Create(ctx, store, "g", registered); err != nil {
		t.Fatal(err)
	}
	for name, f := range map[string]func() ([]string, error){
		"pause":      func() ([]string, error) { return Pause(ctx, store, "g", true, "fine", "") },
		"pause none": func() ([]string, error) { return Pause(ctx, store, "g", true) },
		"resume":     func() ([]string, error) { return Resume(ctx, store, "g", "\xff") },
		"drain":      func() ([]string, error) { return Drain(ctx, store, "g", "fine", "a/b") },
		"drain none": func() ([]string, error) { return Drain(ctx, store, "g") },
		"undrain":    func() ([]string, error) { return Undrain(ctx, store, "g", "") },
		"pin":        func() ([]string, error) { return Pin(ctx, store, "g", "n", "") },
		"pin node":   func() ([]string, error) { return Pin(ctx, store, "g", "", "fine") },
		"unpin":      func() ([]string, error) { return Unpin(ctx, store, "g", "") },
		"move":       func() ([]string, error) { return Move(ctx, store, "g", "", "fine") },
		"group":      func() ([]string, error) { return Drain(ctx, store, "a/b", "fine") },
	} {
		if _, err := f(); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if r, err := session(t, store).Read(ctx, backends.ReadRequest{Prefixes: []string{coord.ControlPrefix}}); err != nil || len(r.Entries) > 0 {
		t.Errorf("something was written: %+v, %v", r.Entries, err)
	}
}

// An operation is void when the settings are replaced meanwhile, and is then done anew; the coordinator is woken.
func TestControlsAreGuarded(t *testing.T) {
	t.Parallel()
	store, ctx := memory.New(), t.Context()
	if _, err := Create(ctx, store, "g", registered); err != nil {
		t.Fatal(err)
	}
	s := session(t, store)
	_, version, _, err := settings(ctx, s)
	if err != nil {
		t.Fatal(err)
	}
	for i, a := range []ask{{"a", coord.DrainKey("a"), &coord.Control{Node: "a"}}, {"b", coord.DrainKey("b"), nil}} {
		if a.want == nil {
			if _, err := Drain(ctx, store, "g", "b"); err != nil {
				t.Fatal(err)
			}
		}
		todo, err := pending(ctx, s, []ask{a}, version, map[string]bool{})
		if err != nil || len(todo) != 1 || !slices.Equal(todo[0].Wake, []string{coord.CoordinatorAddress}) {
			t.Fatalf("%+v, %v", todo, err)
		}
		if _, err := Change(ctx, store, "g", Settings{TTL: time.Duration(40+i) * time.Second}); err != nil {
			t.Fatal(err)
		}
		if err := commit(ctx, s, todo...); !errors.Is(err, backends.ErrConflict) {
			t.Errorf("under other settings: %v", err)
		}
		if _, version, _, err = settings(ctx, s); err != nil {
			t.Fatal(err)
		}
	}
}

// Nodes do what operators ask for, and a description shows it.
func TestNodesFollowControls(t *testing.T) {
	t.Parallel()
	inGroup(t, Settings{Origin: "registered", TTL: 30 * time.Second}, func(t *testing.T, store *memory.Store) {
		ctx := t.Context()
		ok := func(_ any, err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		ok(Register(ctx, store, "g", Registration{Name: "a", Weight: 2, Prefer: []string{"zone=x"}}, Registration{Name: "b"},
			Registration{Name: "c", Require: []string{"zone=y"}}))
		defer startNode(t, store, "one")()
		defer startNode(t, store, "two")()
		d := settledAfter(t, store)
		if a, c := named(d, "a"), named(d, "c"); a.Weight != 2 || !slices.Equal(a.Prefer, []string{"zone=x"}) || a.State != StateHeld ||
			!slices.Equal(c.Require, []string{"zone=y"}) || c.State != StateUnshared || c.Reason != "no node may take it: one lacks zone=y; two lacks zone=y" {
			t.Errorf("%+v\n%+v", a, c)
		}

		other := map[string]string{"one": "two", "two": "one"}[named(d, "b").Owner]
		ok(Move(ctx, store, "g", other, "b"))
		if d, err := Describe(ctx, store, "g"); err != nil || named(d, "b").Move != other && named(d, "b").Owner != other {
			t.Errorf("neither moved nor about to: %+v, %v", named(d, "b"), err)
		}
		if b := named(settledAfter(t, store), "b"); b.Owner != other || b.Move != "" {
			t.Errorf("moved to %s: %+v", other, b)
		}

		ok(Pin(ctx, store, "g", "one", "a", "b", "later"))
		d = settledAfter(t, store)
		if a, b, l := named(d, "a"), named(d, "b"), named(d, "later"); a.Owner != "one" || b.Owner != "one" || b.Pinned != "one" || l.State != StateAbsent {
			t.Errorf("pinned: %+v %+v %+v", a, b, l)
		}
		ok(Drain(ctx, store, "g", "one", "away"))
		d = settledAfter(t, store)
		if !d.Nodes[0].Drained || d.Nodes[0].Holds != 0 || d.Nodes[1].Holds != 2 || !slices.Equal(d.Drained, []string{"away", "one"}) {
			t.Errorf("drained: %+v", d)
		}
		if _, err := Move(ctx, store, "g", "one", "a"); !errors.Is(err, ErrRefused) {
			t.Errorf("move to a drained node: %v", err)
		}
		ok(Undrain(ctx, store, "g", "one"))
		ok(Unpin(ctx, store, "g", "a", "b", "later"))

		ok(Pause(ctx, store, "g", true, "a"))
		ok(Pause(ctx, store, "g", false, "b"))
		d = settledAfter(t, store)
		if a, b := named(d, "a"), named(d, "b"); a.State != StateHeld || a.Paused != PausedKept || a.Reason != "it is paused; its claim is kept" ||
			b.State != StatePaused || b.Paused != PausedReleased || b.Owner != "" {
			t.Errorf("paused: %+v %+v", a, b)
		}
		if _, err := Move(ctx, store, "g", "one", "b"); !errors.Is(err, ErrRefused) {
			t.Errorf("move of what is paused and given up: %v", err)
		}
		ok(PauseGroup(ctx, store, "g", false))
		ok(Resume(ctx, store, "g", "b"))
		d = settledAfter(t, store)
		if a, b := named(d, "a"), named(d, "b"); d.Paused != PausedReleased || a.Paused != PausedKept || b.State != StatePaused {
			t.Errorf("paused group: %+v %+v", a, b)
		}
		ok(ResumeGroup(ctx, store, "g"))
		ok(Resume(ctx, store, "g", "a"))
		d = settledAfter(t, store)
		if a, b := named(d, "a"), named(d, "b"); d.Paused != "" || a.State != StateHeld || a.Reason != "" || b.State != StateHeld || b.Reason != "" {
			t.Errorf("resumed: %+v %+v", a, b)
		}
	})
}

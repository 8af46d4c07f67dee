package admin

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/backends/memory"
	"github.com/rebalancer-go/rebalancer/group"
)

// wedged is a node that holds everything and goes on renewing, and whose handlers do not heed that they are cancelled before they are let go.
func wedged(t *testing.T, store backends.Store, name string) (release func(), ended <-chan error) {
	t.Helper()
	g, err := group.New(group.Config{
		Name: "g", Node: name, Store: store, Resources: group.Registered(), Logger: slog.New(slog.DiscardHandler),
		Drain: time.Second, Grace: time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	let, done := make(chan struct{}), make(chan error, 1)
	go func() {
		done <- g.Run(t.Context(), func(context.Context, *rebalancer.Claim) error {
			<-let
			return nil
		})
	}()
	return func() { close(let) }, done
}

// A node that is well gives everything back and ends; others take over at once, long before its session would have ended.
func TestEvict(t *testing.T) {
	t.Parallel()
	inGroup(t, registered, func(t *testing.T, store *memory.Store) {
		ctx := t.Context()
		if _, err := AddResources(ctx, store, "g", "a", "b"); err != nil {
			t.Fatal(err)
		}
		g, err := group.New(group.Config{Name: "g", Node: "one", Store: store, Resources: group.Registered(), Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() {
			ended <- g.Run(ctx, func(ctx context.Context, _ *rebalancer.Claim) error { <-ctx.Done(); return nil })
		}()
		settledAfter(t, store)
		defer startNode(t, store, "two")()
		settledAfter(t, store)
		evicted, err := Evict(ctx, store, "g", "nobody", "one", "one")
		if err != nil || !slices.Equal(evicted, []string{"one"}) {
			t.Fatalf("%q, %v", evicted, err)
		}
		if r := history(t, store)[0]; r.Kind != KindEvict || r.Node != "one" {
			t.Errorf("%+v", r)
		}
		time.Sleep(10 * time.Second)
		select {
		case err := <-ended:
			if !errors.Is(err, group.ErrSuperseded) {
				t.Errorf("it ended with %v", err)
			}
		default:
			t.Fatal("it goes on")
		}
		d, err := Describe(ctx, store, "g")
		if err != nil || len(d.Nodes) != 1 || named(d, "a").Owner != "two" || named(d, "b").Owner != "two" {
			t.Errorf("%+v, %v", d, err)
		}
		if evicted, err := Evict(ctx, store, "g", "one"); err != nil || len(evicted) > 0 {
			t.Errorf("again: %q, %v", evicted, err)
		}
		defer startNode(t, store, "one")() // it may come back
		if d := settledAfter(t, store); len(d.Nodes) != 2 || d.Nodes[0].Holds != 1 {
			t.Errorf("it does not come back: %+v", d.Nodes)
		}
	})
}

// What a wedged node holds is nobody else's before its session has ended at the store, and is another's then.
func TestEvictWedged(t *testing.T) {
	t.Parallel()
	inGroup(t, registered, func(t *testing.T, store *memory.Store) {
		ctx := t.Context()
		if _, err := AddResources(ctx, store, "g", "a"); err != nil {
			t.Fatal(err)
		}
		release, ended := wedged(t, store, "one")
		settledAfter(t, store)
		defer startNode(t, store, "two")()
		d := settledAfter(t, store)
		if named(d, "a").Owner != "one" {
			t.Fatalf("%+v", d.Resources)
		}
		began := time.Now()
		left := d.Nodes[0].Left // at most a ttl; it renews once more at most
		if _, err := Evict(ctx, store, "g", "one"); err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(time.Minute); named(d, "a").Owner != "two"; time.Sleep(100 * time.Millisecond) {
			var err error
			if d, err = Describe(ctx, store, "g"); err != nil || time.Now().After(end) {
				t.Fatalf("%+v, %v", d.Resources, err)
			}
		}
		if took := time.Since(began); took < left-time.Second || took > registered.TTL+time.Second {
			t.Errorf("the other one has it after %v; the session had %v", took, left)
		}
		release()
		if err := <-ended; err == nil {
			t.Error("it ended without an error")
		}
	})
}

// Another node coordinates after the coordinator was asked to step down, and nothing moves.
func TestStepDown(t *testing.T) {
	t.Parallel()
	inGroup(t, registered, func(t *testing.T, store *memory.Store) {
		ctx := t.Context()
		if node, err := StepDown(ctx, store, "g"); err != nil || node != "" {
			t.Errorf("nobody coordinates: %q, %v", node, err)
		}
		if _, err := AddResources(ctx, store, "g", "a", "b"); err != nil {
			t.Fatal(err)
		}
		defer startNode(t, store, "one")()
		settledAfter(t, store)
		defer startNode(t, store, "two")()
		before := settledAfter(t, store)
		if node, err := StepDown(ctx, As(store, "ann", "to see it"), "g"); err != nil || node != "one" {
			t.Fatalf("%q, %v", node, err)
		}
		if r := history(t, store)[0]; r.Kind != KindStepDown || r.Node != "one" || r.Actor != "ann" || r.Reason != "to see it" {
			t.Errorf("%+v", r)
		}
		after := settledAfter(t, store)
		if after.Coordinator != "two" || after.Epoch == before.Epoch {
			t.Errorf("%q coordinates", after.Coordinator)
		}
		for i, r := range after.Resources {
			if r.Fence != before.Resources[i].Fence {
				t.Errorf("%s moved", r.Name)
			}
		}
		if r := history(t, store)[0]; r.Kind != KindRebalance || r.Actor != "two" || r.Reason != "new coordinator" || r.Resource != "" {
			t.Errorf("%+v", r)
		}
	})
}

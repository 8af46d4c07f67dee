package group

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/coord"
)

func TestCheckpoint(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		claims := make(chan *rebalancer.Claim, 10)
		f := func(ctx context.Context, c *rebalancer.Claim) error { claims <- c; <-ctx.Done(); return ctx.Err() }
		a := w.startRun(w.config("a", "dir/with/slash"), f)
		c := (<-claims)
		ctx := t.Context()
		if m, err := c.Checkpoint.Load(ctx); err != nil || len(m) != 0 || m == nil {
			t.Fatalf("at first: %v %v", m, err)
		}
		if err := c.Checkpoint.Save(ctx, map[string][]byte{"k": []byte("v"), "gone": {}, "odd/key": {1}}); err != nil {
			t.Fatal(err)
		}
		if err := c.Checkpoint.Save(ctx, map[string][]byte{"gone": nil}); err != nil {
			t.Fatal(err)
		}
		for what, bad := range map[string]map[string][]byte{
			"too long a value": {"k": make([]byte, maxCheckpoint+1)}, "empty key": {"": {}}, "long key": {strings.Repeat("x", 1024): {}},
		} {
			if err := c.Checkpoint.Save(ctx, bad); err == nil {
				t.Fatalf("%s was saved", what)
			}
		}
		w.store.Expire("a") // a moves on under a new session
		c2 := <-claims
		if err := c.Checkpoint.Save(ctx, map[string][]byte{"k": []byte("late")}); !errors.Is(err, rebalancer.ErrLost) {
			t.Fatalf("under the old claim: %v", err)
		}
		if _, err := c.Checkpoint.Load(ctx); !errors.Is(err, rebalancer.ErrLost) {
			t.Fatalf("under the old claim: %v", err)
		}
		m, err := c2.Checkpoint.Load(ctx)
		if err != nil || len(m) != 2 || string(m["k"]) != "v" || string(m["odd/key"]) != "\x01" || c2.Fence <= c.Fence {
			t.Fatalf("after the move: %v %v", m, err)
		}
		if err := a.end(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestCheckpointIsRefusedByTheStore(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		claims := make(chan *rebalancer.Claim, 10)
		a := w.startRun(w.config("a", "q"), func(ctx context.Context, c *rebalancer.Claim) error { claims <- c; <-ctx.Done(); return nil })
		c := <-claims
		w.store.Expire("a")
		// The node has not noticed, the store has.
		if err := c.Checkpoint.Save(t.Context(), map[string][]byte{"k": {1}}); !errors.Is(err, rebalancer.ErrLost) {
			t.Fatal(err)
		}
		_ = a.end()
	})
}

// TestCheckpointWithoutAStore: a node that has lost its claim knows that without asking.
func TestCheckpointWithoutAStore(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		claims := make(chan *rebalancer.Claim, 10)
		lost := make(chan error, 1)
		a := w.startRun(w.config("a", "q"), func(ctx context.Context, c *rebalancer.Claim) error {
			claims <- c
			<-ctx.Done()
			lost <- context.Cause(ctx)
			return nil
		})
		c := <-claims
		w.store.Cut("a")
		<-lost
		began := time.Now()
		if err := c.Checkpoint.Save(t.Context(), map[string][]byte{"k": {1}}); !errors.Is(err, rebalancer.ErrLost) || time.Since(began) > 0 {
			t.Fatalf("%v after %v", err, time.Since(began))
		}
		_ = a.end()
	})
}

// TestCheckpointChecksTheClaim: the claim is gone though the session lives, and the node has not noticed.
func TestCheckpointChecksTheClaim(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		claims := make(chan *rebalancer.Claim, 10)
		lost := make(chan error, 1)
		a := w.startRun(w.config("a", "q"), func(ctx context.Context, c *rebalancer.Claim) error {
			claims <- c
			<-ctx.Done()
			lost <- context.Cause(ctx)
			return nil
		})
		c := <-claims
		s, err := w.store.Open(t.Context(), backends.SessionOptions{Group: "g", Node: "vandal", TTL: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Commit(t.Context(), backends.CommitRequest{
			Incarnation: s.Opened().Incarnation, Txns: []backends.Txn{{Deletes: []string{coord.ClaimKey("q")}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if err := c.Checkpoint.Save(t.Context(), map[string][]byte{"k": {1}}); !errors.Is(err, rebalancer.ErrLost) {
			t.Fatal(err)
		}
		// The refusal made the node look at its claim.
		if cause := <-lost; !errors.Is(cause, rebalancer.ErrLost) || time.Since(began) > time.Second {
			t.Fatalf("%v after %v", cause, time.Since(began))
		}
		_ = s.Close(t.Context())
		_ = a.end()
	})
}

// TestCheckpointChecksVersions: a key that another wrote refuses the save without a doubt about the claim, and a claim that
// is gone is told as such whatever the keys are.
func TestCheckpointChecksVersions(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		claims := make(chan *rebalancer.Claim, 10)
		a := w.startRun(w.config("a", "q"), func(ctx context.Context, c *rebalancer.Claim) error { claims <- c; <-ctx.Done(); return ctx.Err() })
		c := <-claims
		v := c.Checkpoint.(rebalancer.VersionedCheckpoint)
		ctx := t.Context()
		first, err := v.SaveIf(ctx, map[string]int64{"a": 0}, map[string][]byte{"a": []byte("1"), "b": []byte("2")})
		if err != nil || len(first) != 2 || first["a"] <= 0 || first["b"] <= 0 {
			t.Fatalf("first: %v, %v", first, err)
		}
		for what, checks := range map[string]map[string]int64{
			"absent, but it is there": {"a": 0}, "another version": {"a": first["a"] - 1}, "there, but it is absent": {"a": first["a"], "c": 7},
		} {
			got, err := v.SaveIf(ctx, checks, map[string][]byte{"a": []byte("no"), "b": nil})
			if !errors.Is(err, rebalancer.ErrStale) || errors.Is(err, rebalancer.ErrLost) || got != nil {
				t.Errorf("%s: %v, %v", what, got, err)
			}
		}
		second, err := v.SaveIf(ctx, map[string]int64{"a": first["a"], "b": first["b"], "c": 0}, map[string][]byte{"a": []byte("3"), "b": nil})
		if err != nil || len(second) != 1 || second["a"] <= first["a"] {
			t.Fatalf("second: %v, %v", second, err)
		}
		if m, err := v.LoadEntries(ctx, "a", "b"); err != nil || len(m) != 1 || string(m["a"].Value) != "3" || m["a"].Version != second["a"] {
			t.Errorf("named: %v, %v", m, err)
		}
		if _, err := v.SaveIf(ctx, nil, map[string][]byte{"z": {}}); err != nil {
			t.Fatal(err)
		}
		if m, err := v.LoadEntries(ctx); err != nil || len(m) != 2 || m["z"].Version <= 0 {
			t.Errorf("all: %v, %v", m, err)
		}
		w.store.Expire("a")
		<-claims
		if _, err := v.SaveIf(ctx, map[string]int64{"a": 0}, map[string][]byte{"a": {}}); !errors.Is(err, rebalancer.ErrLost) || errors.Is(err, rebalancer.ErrStale) {
			t.Errorf("under the old claim: %v", err)
		}
		if _, err := v.LoadEntries(ctx, "a"); !errors.Is(err, rebalancer.ErrLost) {
			t.Errorf("under the old claim: %v", err)
		}
		_ = a.end()
	})
}

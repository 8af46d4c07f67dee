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

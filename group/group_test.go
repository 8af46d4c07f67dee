package group

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rebalancer-go/rebalancer"
)

func TestOneNodeWorksInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var want []string
		for i := range 1000 {
			want = append(want, string(rune('a'+i%26)))
		}
		_ = w.source.Send("q", want...)
		r := w.start(w.config("a", "q"), nil)
		w.idle()
		if got := w.bodies("q"); !slices.Equal(got, want) {
			t.Fatalf("worked %d of %d, or not in order", len(got), len(want))
		}
		if err := r.Ready(); err != nil {
			t.Fatal(err)
		}
		if err := r.Live(); err != nil {
			t.Fatal(err)
		}
		if err := r.Consume(t.Context(), func(context.Context, *rebalancer.Message) error { return nil }); !errors.Is(err, ErrRunning) {
			t.Fatalf("second call: %v", err)
		}
		if err := r.end(); err != nil {
			t.Fatal(err)
		}
		if s := r.Status(); s.State != StateLeft {
			t.Fatalf("state after the end: %q", s.State)
		}
		t.Log(w.kinds("a"))
	})
}

func TestNodesComeAndGo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		all := names(12)
		a := w.start(w.config("a", all...), nil)
		a.holdsCount(12)
		b := w.start(w.config("b", all...), nil)
		c := w.start(w.config("c", all...), nil)
		for _, r := range []*running{a, b, c} {
			r.holdsCount(4)
		}
		for _, n := range all {
			_ = w.source.Send(n, "1", "2", "3")
		}
		w.idle()
		if err := a.end(); err != nil {
			t.Fatal(err)
		}
		b.holdsCount(6)
		c.holdsCount(6)
		w.store.Cut("b")
		began := time.Now()
		c.holdsCount(12)
		if d := time.Since(began); d > DefaultTTL+250*time.Millisecond {
			t.Fatalf("taken over after %v", d)
		}
		for _, n := range all {
			_ = w.source.Send(n, "4")
		}
		w.idle()
		for _, n := range all {
			if got := w.bodies(n); !slices.Equal(got, []string{"1", "2", "3", "4"}) {
				t.Fatalf("%s: worked %q", n, got)
			}
		}
		if n := w.source.Overlaps(); n != 0 {
			t.Fatalf("%d overlaps", n)
		}
		if err := b.Ready(); !errors.Is(err, ErrNotReady) {
			t.Fatalf("cut off node: %v", err)
		}
		if err := errors.Join(b.end(), c.end()); err != nil {
			t.Fatal(err)
		}
		t.Log(w.kinds("b"))
	})
}

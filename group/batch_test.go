package group

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer"
)

// batchLog notes batches as "x1 y1 | y2 z1".
type batchLog struct {
	w    *world
	said []string
}

func (b *batchLog) note(ms []*rebalancer.Message) {
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	var s []string
	for _, m := range ms {
		s = append(s, fmt.Sprintf("%s%d", m.Body, m.Attempt))
	}
	b.said = append(b.said, strings.Join(s, " "))
}

func (w *world) startBatch(cfg Config, h rebalancer.BatchHandler) *running {
	return w.startWith(cfg, func(ctx context.Context, g *Group) error { return g.ConsumeBatch(ctx, h) })
}

func TestBatchFailsInPart(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		_ = w.source.Send("q", "u", "v", "x", "y", "z")
		b := &batchLog{w: w}
		cfg := w.config("a", "q")
		cfg.BatchSize = 4
		n := 0
		r := w.startBatch(cfg, func(_ context.Context, ms []*rebalancer.Message) error {
			b.note(ms)
			switch n++; n {
			case 1:
				return &rebalancer.BatchError{Failed: map[int]error{1: errBad, 2: rebalancer.Permanent(errBad), 3: rebalancer.ErrLost}}
			case 2:
				return errBad
			}
			return nil
		})
		w.idle()
		_ = r.end()
		want := []string{"u1 v1 x1 y1", "v2 y1", "v3 y2", "z1"}
		if !slices.Equal(b.said, want) {
			t.Fatalf("batches %q, want %q", b.said, want)
		}
		if rej := w.source.Rejected("q"); len(rej) != 1 || string(rej[0].Message.Body) != "x" {
			t.Fatalf("rejected: %+v", rej)
		}
	})
}

func TestBatchErrorOfUnknownIndexFailsAll(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		_ = w.source.Send("q", "x", "y")
		b := &batchLog{w: w}
		r := w.startBatch(w.config("a", "q"), func(_ context.Context, ms []*rebalancer.Message) error {
			b.note(ms)
			if ms[0].Attempt == 1 {
				return &rebalancer.BatchError{Failed: map[int]error{2: errBad}}
			}
			return nil
		})
		w.idle()
		_ = r.end()
		if !slices.Equal(b.said, []string{"x1 y1", "x2 y2"}) {
			t.Fatalf("batches %q", b.said)
		}
	})
}

func TestBatchWait(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		b := &batchLog{w: w}
		cfg := w.config("a", "q")
		cfg.BatchSize, cfg.BatchWait = 3, time.Minute
		r := w.startBatch(cfg, func(_ context.Context, ms []*rebalancer.Message) error { b.note(ms); return nil })
		r.holds("q")
		for _, body := range []string{"1", "2", "3", "4"} {
			_ = w.source.Send("q", body)
			time.Sleep(time.Second)
		}
		w.idle()
		_ = r.end()
		if !slices.Equal(b.said, []string{"11 21 31", "41"}) {
			t.Fatalf("batches %q", b.said)
		}
	})
}

func TestBatchPanicStopAndDrain(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		_ = w.source.Send("q", "x", "y")
		b := &batchLog{w: w}
		cfg := w.config("a", "q")
		cfg.Retry = Retry{Attempts: 2, Exhausted: Stop}
		r := w.startBatch(cfg, func(_ context.Context, ms []*rebalancer.Message) error { b.note(ms); panic("oh no") })
		r.wait("standing still", func(s Status) bool {
			return len(s.Resources) == 1 && errors.Is(s.Resources[0].Err, ErrHalted)
		})
		if err := r.end(); err != nil {
			t.Fatal(err)
		}
		if c := w.source.Counts("q"); c.Waiting != 2 || !slices.Equal(b.said, []string{"x1 y1", "x2 y2"}) {
			t.Fatalf("source %+v, batches %q", c, b.said)
		}
	})
}

func TestBatchGivesBackAtARevoke(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		_ = w.source.Send("q", "x", "y", "z")
		r := w.startBatch(w.config("a", "q"), func(ctx context.Context, ms []*rebalancer.Message) error {
			<-rebalancer.Draining(ctx)
			return &rebalancer.BatchError{Failed: map[int]error{1: errBad}}
		})
		r.wait("handling", func(s Status) bool { return len(s.Resources) == 1 && s.Resources[0].InFlight == 1 })
		if err := r.end(); err != nil {
			t.Fatal(err)
		}
		if c := w.source.Counts("q"); c.Done != 2 || c.Waiting != 1 {
			t.Fatalf("source: %+v", c)
		}
	})
}

func TestBatchRefusesConcurrency(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	cfg := w.config("a", "q")
	cfg.Concurrency = 2
	g, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	err = g.ConsumeBatch(t.Context(), func(context.Context, []*rebalancer.Message) error { return nil })
	if !errors.Is(err, ErrInvalid) {
		t.Fatal(err)
	}
}

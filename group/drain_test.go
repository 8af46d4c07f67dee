package group

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer"
)

// blocked is a handler that blocks on messages with the body "block" until told, or until its context ends.
type blocked struct {
	w       *world
	deaf    bool // to its context
	started chan struct{}
	free    chan struct{}
	cause   chan error
}

func newBlocked(w *world) *blocked {
	return &blocked{w: w, started: make(chan struct{}), free: make(chan struct{}), cause: make(chan error, 10)}
}

func (b *blocked) handle(ctx context.Context, m *rebalancer.Message) error {
	if string(m.Body) == "block" {
		b.started <- struct{}{}
		end := ctx.Done()
		if b.deaf {
			end = nil
		}
		select {
		case <-b.free:
		case <-end:
			b.cause <- context.Cause(ctx)
			return ctx.Err()
		}
	}
	b.w.note("a", m)
	return nil
}

func TestStopLetsHandlersFinish(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		b := newBlocked(w)
		_ = w.source.Send("q", "block", "next")
		r := w.start(w.config("a", "q"), b.handle)
		<-b.started
		r.stop()
		r.wait("draining", func(s Status) bool { return len(s.Resources) == 1 && s.Resources[0].Draining })
		if s := r.Status(); s.State != StateDraining || s.Resources[0].InFlight != 1 {
			t.Fatalf("status: %+v", s)
		}
		time.Sleep(DefaultDrain - 10*time.Second)
		b.free <- struct{}{}
		if err := <-r.done; err != nil {
			t.Fatal(err)
		}
		if c := w.source.Counts("q"); c.Done != 1 || c.Waiting != 1 {
			t.Fatalf("source: %+v", c)
		}
	})
}

func TestDrainEndsTheContext(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		b := newBlocked(w)
		_ = w.source.Send("q", "block")
		r := w.start(w.config("a", "q"), b.handle)
		<-b.started
		r.stop()
		r.wait("draining", func(s Status) bool { return len(s.Resources) == 1 && s.Resources[0].Draining })
		began := time.Now()
		if cause := <-b.cause; !errors.Is(cause, rebalancer.ErrStopped) {
			t.Fatalf("cause: %v", cause)
		}
		if d := time.Since(began); d != DefaultDrain {
			t.Fatalf("ended after %v", d)
		}
		if err := <-r.done; err != nil {
			t.Fatal(err)
		}
		// No attempt is burnt.
		s := &script{w: w}
		r = w.start(w.config("b", "q"), s.handle)
		w.idle()
		if got := s.said(); got != "block1" {
			t.Fatalf("calls: %s", got)
		}
		_ = r.end()
	})
}

func TestRevokeCauseAndDraining(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		all := names(2)
		for _, n := range all {
			_ = w.source.Send(n, "x")
		}
		early, ended := make(chan time.Time, 2), make(chan error, 2)
		a := w.start(w.config("a", all...), func(ctx context.Context, m *rebalancer.Message) error {
			<-rebalancer.Draining(ctx)
			early <- time.Now()
			<-ctx.Done()
			ended <- context.Cause(ctx)
			return ctx.Err()
		})
		a.holdsCount(2)
		b := w.start(w.config("b", all...), nil)
		first := <-early
		if cause := <-ended; !errors.Is(cause, rebalancer.ErrRevoked) {
			t.Fatalf("cause: %v", cause)
		}
		if d := time.Since(first); d != DefaultDrain {
			t.Fatalf("the signal came %v before the end", d)
		}
		b.holdsCount(1)
		if err := a.end(); err != nil {
			t.Fatal(err)
		}
		b.holdsCount(2)
		_ = b.end()
	})
}

func TestRevokeEndsRetryWait(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		_ = w.source.Send("q", "x")
		r := w.start(w.config("a", "q"), func(context.Context, *rebalancer.Message) error {
			return rebalancer.RetryAfter(time.Hour, errBad)
		})
		r.wait("failing", func(s Status) bool { return len(s.Resources) == 1 && s.Resources[0].Err != nil })
		began := time.Now()
		if err := r.end(); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(began); d > 5*time.Second {
			t.Fatalf("stopped after %v", d)
		}
		if c := w.source.Counts("q"); c.Waiting != 1 {
			t.Fatalf("source: %+v", c)
		}
	})
}

func TestStuck(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		b := newBlocked(w)
		b.deaf = true
		_ = w.source.Send("q", "block")
		r := w.start(w.config("a", "q"), b.handle)
		<-b.started
		r.stop()
		r.wait("stuck", func(s Status) bool { return len(s.Resources) == 1 && s.Resources[0].Stuck })
		if err := <-r.done; !errors.Is(err, ErrStuck) {
			t.Fatalf("Consume: %v", err)
		}
		// Its claim is left to expire.
		c := w.start(w.config("c", "q"), nil)
		began := time.Now()
		c.holds("q")
		if d := time.Since(began); d < 5*time.Second {
			t.Fatalf("taken over after %v, under a handler that runs", d)
		}
		close(b.free)
		_ = c.end()
		if _, ok := w.event("a", KindStuck); !ok {
			t.Fatal("not reported")
		}
	})
}

func TestStuckAtARevoke(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		all := names(2)
		h := newBlocked(w)
		h.deaf = true
		for _, n := range all {
			_ = w.source.Send(n, "block")
		}
		a := w.start(w.config("a", all...), h.handle)
		<-h.started
		<-h.started
		b := w.start(w.config("b", all...), nil)
		a.wait("stuck", func(s Status) bool {
			return slices.ContainsFunc(s.Resources, func(r ResourceStatus) bool { return r.Stuck })
		})
		if err := a.Live(); !errors.Is(err, ErrStuck) {
			t.Fatalf("Live: %v", err)
		}
		time.Sleep(time.Hour)
		if n := len(b.Status().Resources); n != 0 {
			t.Fatal("a resource moved under a handler that runs")
		}
		h.free <- struct{}{}
		h.free <- struct{}{}
		b.holdsCount(1)
		if err := a.Live(); err != nil {
			t.Fatalf("Live: %v", err)
		}
		if err := errors.Join(a.end(), b.end()); err != nil {
			t.Fatal(err)
		}
	})
}

func TestLossSettlesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		b := newBlocked(w)
		_ = w.source.Send("q", "block")
		cfg := w.config("a", "q")
		released := make(chan error, 1)
		cfg.OnRelease = func(ctx context.Context, c *rebalancer.Claim) { released <- context.Cause(ctx) }
		r := w.start(cfg, b.handle)
		<-b.started
		restore := w.store.Cut("a")
		began := time.Now()
		if cause := <-b.cause; !errors.Is(cause, rebalancer.ErrLost) {
			t.Fatalf("cause: %v", cause)
		}
		if d := time.Since(began); d > DefaultTTL-DefaultTTL/5 {
			t.Fatalf("lost after %v: later than the trust", d)
		}
		if cause := <-released; !errors.Is(cause, rebalancer.ErrLost) {
			t.Fatalf("OnRelease: %v", cause)
		}
		restore()
		<-b.started // again, under a new claim
		b.free <- struct{}{}
		w.idle()
		<-time.After(time.Second)
		w.mu.Lock()
		log := slices.Clone(w.log)
		w.mu.Unlock()
		if len(log) != 1 {
			t.Fatalf("worked: %+v", log)
		}
		_ = r.end()
	})
}

// TestFreeze: the machine was suspended in the middle of a batch. Go's clock stood still; the other one shows it.
func TestFreeze(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		began := time.Now()
		var suspended time.Duration
		var worked []string
		_ = w.source.Send("q", "1", "2", "3")
		stopped := make(chan struct{})
		r := w.startWith(w.config("a", "q"), func(ctx context.Context, g *Group) error {
			return g.Consume(ctx, func(ctx context.Context, m *rebalancer.Message) error {
				time.Sleep(2 * settleLinger) // the first is settled before
				w.mu.Lock()
				defer w.mu.Unlock()
				worked = append(worked, string(m.Body))
				if len(worked) == 2 {
					suspended = DefaultTTL
					time.AfterFunc(0, func() { close(stopped) })
					// Wall and monotonic time drift apart in no bubble, so let time pass for the next look at the clock.
					w.mu.Unlock()
					time.Sleep(time.Duration(bootEvery) + 1)
					w.mu.Lock()
				}
				return nil
			})
		}, func(g *Group) {
			g.hooks.boot = func() (int64, bool) {
				w.mu.Lock()
				defer w.mu.Unlock()
				return int64(time.Since(began) + suspended), true
			}
		})
		<-stopped
		r.wait("fenced", func(s Status) bool { return s.State == StateJoining })
		w.mu.Lock()
		n := len(worked)
		w.mu.Unlock()
		if n != 2 {
			t.Fatalf("%d handlers started under the old claim", n)
		}
		if c := w.source.Counts("q"); c.Done != 1 {
			t.Fatalf("settled under the old claim: %+v", c)
		}
		w.idle()
		w.mu.Lock()
		if !slices.Equal(worked, []string{"1", "2", "2", "3"}) {
			t.Fatalf("worked %q", worked)
		}
		w.mu.Unlock()
		_ = r.end()
	})
}

package group

import (
	"context"
	"errors"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/coord"
	"github.com/rebalancer-go/rebalancer/sources"
)

// TestLossClosesTheSourceUnderAHandler: the source does not stay open for as long as a handler is deaf to its context.
func TestLossClosesTheSourceUnderAHandler(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		b := newBlocked(w)
		b.deaf = true
		_ = w.source.Send("q", "block")
		r := w.start(w.config("a", "q"), b.handle)
		<-b.started
		w.store.Cut("a")
		time.Sleep(DefaultTTL)
		if c := w.source.Counts("q"); c.Waiting != 1 || c.InFlight != 0 {
			t.Fatalf("source: %+v", c)
		}
		close(b.free)
		_ = r.end()
	})
}

// TestLossIsNoFailure: what a handler returns after a loss is nobody's business any more.
func TestLossIsNoFailure(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		_ = w.source.Send("q", "x")
		cfg := w.config("a", "q")
		cfg.Retry = Retry{Exhausted: Skip}
		calls := 0
		r := w.start(cfg, func(ctx context.Context, m *rebalancer.Message) error {
			if calls++; calls > 1 {
				return nil
			}
			<-ctx.Done()
			return rebalancer.Permanent(context.Cause(ctx))
		})
		r.wait("handling", func(s Status) bool { return len(s.Resources) == 1 && s.Resources[0].InFlight == 1 })
		w.store.Expire("a")
		w.idle()
		_ = r.end()
		if calls != 2 || slices.Contains(w.kinds("a"), KindSkipped) || slices.Contains(w.kinds("a"), KindFailed) {
			t.Fatalf("%d calls, events %v", calls, w.kinds("a"))
		}
	})
}

func TestStreamAfterItsHandler(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		n := 0
		_ = w.source.SendMessages("q", rebalancer.Message{Stream: func(context.Context) (io.ReadCloser, error) {
			return closeCounter{strings.NewReader("x"), &n}, nil
		}})
		var late func(context.Context) (io.ReadCloser, error)
		r := w.start(w.config("a", "q"), func(_ context.Context, m *rebalancer.Message) error { late = m.Stream; return nil })
		w.idle()
		_ = r.end()
		if _, err := late(t.Context()); !errors.Is(err, errHandlerReturned) || n != 1 {
			t.Fatalf("%v, closed %d", err, n)
		}
	})
}

// TestThawIsNoticed: the machine was suspended while a handler ran and nothing else happened.
func TestThawIsNoticed(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		began := time.Now()
		var suspended atomic.Int64
		b := newBlocked(w)
		_ = w.source.Send("q", "block")
		r := w.startWith(w.config("a", "q"), func(ctx context.Context, g *Group) error { return g.Consume(ctx, b.handle) },
			func(g *Group) {
				g.hooks.boot = func() (int64, bool) { return int64(time.Since(began)) + suspended.Load(), true }
			})
		<-b.started
		time.Sleep(DefaultTTL/6 + time.Second/2) // just after a renewal
		suspended.Store(int64(time.Hour))
		thawed := time.Now()
		if cause := <-b.cause; !errors.Is(cause, rebalancer.ErrLost) || time.Since(thawed) > time.Second {
			t.Fatalf("%v after %v", cause, time.Since(thawed))
		}
		<-b.started
		close(b.free)
		w.idle()
		_ = r.end()
	})
}

// slowClose is a source whose readers take their time to settle and close.
type slowClose struct{ sources.Source }

func (s slowClose) Open(ctx context.Context, c *rebalancer.Claim) (sources.Reader, error) {
	r, err := s.Source.Open(ctx, c)
	return slowReader{r}, err
}

type slowReader struct{ sources.Reader }

func (r slowReader) Close(ctx context.Context) error {
	time.Sleep(closeTimeout - time.Second)
	return r.Reader.Close(ctx)
}

// TestClosingIsNotStuck: no handler runs, only the source takes its time.
func TestClosingIsNotStuck(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		_ = w.source.Send("q", "x")
		cfg := w.config("a", "q")
		cfg.Source = slowClose{w.source}
		cfg.Drain, cfg.Grace = time.Second, time.Second
		r := w.start(cfg, func(ctx context.Context, m *rebalancer.Message) error { <-ctx.Done(); return ctx.Err() })
		r.wait("handling", func(s Status) bool { return len(s.Resources) == 1 && s.Resources[0].InFlight == 1 })
		if err := r.end(); err != nil {
			t.Fatal(err)
		}
		if slices.Contains(w.kinds("a"), KindStuck) {
			t.Fatalf("events: %v", w.kinds("a"))
		}
	})
}

// TestGoexitFreesItsSlot: others go on.
func TestGoexitFreesItsSlot(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		_ = w.source.Send("bad", "x")
		cfg := w.config("a", "bad", "good")
		cfg.MaxConcurrency = 1
		var once sync.Once
		r := w.start(cfg, func(_ context.Context, m *rebalancer.Message) error {
			once.Do(runtime.Goexit)
			return nil
		})
		time.Sleep(time.Second)
		_ = w.source.Send("good", "y")
		w.idle()
		_ = r.end()
	})
}

func TestHaltedResourceFetchesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		_ = w.source.SendMessages("q", keyed("a", "b")...)
		cfg := w.config("a", "q")
		cfg.Concurrency = 2
		cfg.Retry = Retry{Attempts: 2, Exhausted: Stop, Min: 10 * time.Millisecond, Max: 10 * time.Millisecond}
		b := 0
		r := w.start(cfg, func(_ context.Context, m *rebalancer.Message) error {
			if m.Key == "a" {
				return errBad
			}
			if b++; b == 1 {
				return errBad
			}
			time.Sleep(time.Minute) // it succeeds after the other has halted
			return nil
		})
		time.Sleep(time.Hour)
		_ = w.source.SendMessages("q", keyed("c", "d")...)
		time.Sleep(time.Hour)
		if c := w.source.Counts("q"); c.Waiting == 0 {
			t.Fatalf("source: %+v", c)
		}
		if err := r.Status().Resources[0].Err; !errors.Is(err, ErrHalted) {
			t.Fatalf("status: %v", err)
		}
		_ = r.end()
	})
}

// TestLossDuringOnRelease: its context ends.
func TestLossDuringOnRelease(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		cfg := w.config("a", "q")
		cfg.Grace = time.Hour
		cause := make(chan error, 1)
		running := make(chan struct{})
		cfg.OnRelease = func(ctx context.Context, _ *rebalancer.Claim) {
			close(running)
			<-ctx.Done()
			cause <- context.Cause(ctx)
		}
		r := w.start(cfg, nil)
		r.holds("q")
		r.stop()
		<-running
		w.store.Expire("a")
		if err := <-cause; !errors.Is(err, rebalancer.ErrLost) {
			t.Fatal(err)
		}
		if err := <-r.done; err != nil {
			t.Fatal(err)
		}
	})
}

func TestNoOnReleaseWithoutOnClaim(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		cfg := w.config("a", "q")
		cfg.OnClaim = func(context.Context, *rebalancer.Claim) error { return errBad }
		cfg.OnRelease = func(context.Context, *rebalancer.Claim) { t.Error("OnRelease without OnClaim") }
		r := w.start(cfg, nil)
		time.Sleep(time.Minute)
		_ = r.end()
	})
}

// lateOpen is a source that opens although it was told to stop.
type lateOpen struct {
	sources.Source
	opening chan struct{}
	closed  *atomic.Int32
}

func (s lateOpen) Open(ctx context.Context, c *rebalancer.Claim) (sources.Reader, error) {
	close(s.opening)
	<-ctx.Done()
	r, err := s.Source.Open(context.WithoutCancel(ctx), c)
	return countedClose{r, s.closed}, err
}

type countedClose struct {
	sources.Reader
	n *atomic.Int32
}

func (c countedClose) Close(ctx context.Context) error { c.n.Add(1); return c.Reader.Close(ctx) }

func TestReaderOpenedTooLateIsClosed(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		cfg := w.config("a", "q")
		s := lateOpen{w.source, make(chan struct{}), new(atomic.Int32)}
		cfg.Source = s
		r := w.start(cfg, nil)
		<-s.opening
		if err := r.end(); err != nil {
			t.Fatal(err)
		}
		if n := s.closed.Load(); n != 1 {
			t.Fatalf("closed %d times", n)
		}
	})
}

// TestReadyNeedsTrust: the loop has not turned since the trust ended.
func TestReadyNeedsTrust(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r := w.start(w.config("a", "q"), nil)
		r.wait("ready", func(Status) bool { return r.Ready() == nil })
		n, _ := r.current()
		n.trust.Store(int64(n.clock.now()))
		if err := r.Ready(); !errors.Is(err, ErrNotReady) {
			t.Fatalf("Ready: %v", err)
		}
		_ = r.end()
	})
}

func TestErrLostDoubtsTheClaim(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		wk, _ := loneWorker(w, nil)
		var doubts []coord.Doubt
		wk.env.post = func(ev coord.Event) {
			if d, ok := ev.(coord.Doubt); ok {
				doubts = append(doubts, d)
			}
		}
		wk.env.task.handle = func(context.Context, *rebalancer.Message) error { return rebalancer.ErrLost }
		s := newSettler(wk, &scripted{})
		v, wait := wk.attempt(s, &item{m: done("1")[0].Message})
		if v != again || wait > DefaultRetryMin || len(doubts) != 1 || doubts[0] != (coord.Doubt{Resource: "q", Fence: 7}) {
			t.Fatalf("verdict %v after %v, doubts %v", v, wait, doubts)
		}
		s.stop()
		wk.end(nil)
	})
}

package group

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/sources"
)

// deafSettle is a reader whose Settle returns when its context ends, and not before.
type deafSettle struct {
	sources.Reader
	began, ended chan struct{}
}

func (r *deafSettle) Settle(ctx context.Context, _ []sources.Settlement) error {
	close(r.began)
	<-ctx.Done()
	close(r.ended)
	return ctx.Err()
}

// hanging is a settler in the middle of a call that nobody answers.
func hanging(wk *worker) (*settler, *deafSettle) {
	r := &deafSettle{began: make(chan struct{}), ended: make(chan struct{})}
	s := newSettler(wk, r)
	s.add(done("1")[0])
	<-r.began
	return s, r
}

// TestLossEndsASettlementInProgress: what it has not settled yet is another node's by now.
func TestLossEndsASettlementInProgress(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		wk, _ := loneWorker(w, nil)
		s, r := hanging(wk)
		lost := time.Now()
		wk.lose()
		<-r.ended
		if d := time.Since(lost); d > 0 {
			t.Errorf("it went on for %v after the loss", d)
		}
		s.stop()
	})
}

// TestGoexitInOnRelease: the claim is given back all the same, and Consume returns.
func TestGoexitInOnRelease(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		cfg := w.config("a", "q")
		cfg.OnRelease = func(context.Context, *rebalancer.Claim) { runtime.Goexit() }
		r := w.start(cfg, nil)
		r.holds("q")
		r.stop()
		select {
		case err := <-r.done:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(time.Hour):
			t.Fatal("Consume does not return")
		}
	})
}

// deafOpen is a source whose Open does not return, whatever becomes of its context.
type deafOpen struct {
	sources.Source
	free chan struct{}
}

func (s deafOpen) Open(context.Context, *rebalancer.Claim) (sources.Reader, error) {
	<-s.free
	return nil, errBad
}

// TestSourceThatHangsIsStuck: a source that breaks its contract (a dead disk) does not keep Consume for ever, nor does Live pass over it.
func TestSourceThatHangsIsStuck(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		cfg := w.config("a", "q")
		deaf := deafOpen{w.source, make(chan struct{})}
		cfg.Source = deaf
		r := w.start(cfg, nil)
		r.holds("q")
		r.stop()
		r.wait("stuck", func(s Status) bool { return s.State == StateLeft || len(s.Resources) == 1 && s.Resources[0].Stuck })
		select {
		case err := <-r.done:
			if !errors.Is(err, ErrStuck) {
				t.Error(err)
			}
		case <-time.After(time.Hour):
			t.Error("Consume does not return")
		}
		close(deaf.free)
	})
}

// deafLog is a log that nobody reads, as a pipe that is full.
type deafLog struct {
	slog.Handler
	free chan struct{}
}

func (h deafLog) Handle(context.Context, slog.Record) error { <-h.free; return nil }

func (h deafLog) WithAttrs([]slog.Attr) slog.Handler { return h }

// TestLogThatHangs costs the node nothing: it renews and works.
func TestLogThatHangs(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		cfg := w.config("a", "q")
		h := deafLog{slog.NewTextHandler(io.Discard, nil), make(chan struct{})}
		cfg.Logger = slog.New(h)
		r := w.start(cfg, nil)
		r.holds("q")
		time.Sleep(3 * DefaultTTL)
		_ = w.source.Send("q", "x")
		w.idle()
		if err := r.Ready(); err != nil {
			t.Error(err)
		}
		if err := r.end(); err != nil || slices.Contains(w.kinds("a"), KindFenced) {
			t.Errorf("%v, events %v", err, w.kinds("a"))
		}
		close(h.free)
	})
}

// TestMessagesThatWaitAreBounded: those that wait to be tried again are held, so they must not grow without end.
func TestMessagesThatWaitAreBounded(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		for i := range 5000 {
			_ = w.source.Send("q", fmt.Sprint(i))
		}
		cfg := w.config("a", "q")
		cfg.Source = frugal{w.source, new(atomic.Int32)}
		cfg.Concurrency = 4
		var calls atomic.Int32
		r := w.start(cfg, func(context.Context, *rebalancer.Message) error {
			calls.Add(1)
			return rebalancer.RetryAfter(24*time.Hour, errBad)
		})
		time.Sleep(time.Minute)
		if n := calls.Load(); n > readAhead+4 {
			t.Errorf("%d messages are in hand at once", n)
		}
		_ = r.end()
	})
}

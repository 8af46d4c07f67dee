package group

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/sources/memory"
)

var errBad = errors.New("bad")

// script is a handler that fails messages by their body: the errors in turn, then success. It notes each call.
type script struct {
	w     *world
	fails map[string][]error
	calls []call
}

type call struct {
	body    string
	attempt int
	at      time.Time
}

func (s *script) handle(_ context.Context, m *rebalancer.Message) error {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	b := string(m.Body)
	s.calls = append(s.calls, call{b, m.Attempt, time.Now()})
	if q := s.fails[b]; len(q) > 0 {
		if len(q) > 1 || q[0] != errBad { // a single errBad stays for ever
			s.fails[b] = q[1:]
		}
		return q[0]
	}
	s.w.log = append(s.w.log, worked{"a", m.Resource, b, m.Fence, time.Now()})
	return nil
}

func (s *script) said() string {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	var out []string
	for _, c := range s.calls {
		out = append(out, fmt.Sprintf("%s%d", c.body, c.attempt))
	}
	return strings.Join(out, " ")
}

func bubble(t *testing.T, f func(t *testing.T, w *world)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { f(t, newWorld(t)) })
}

func TestRetryInPlaceKeepsOrder(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		s := &script{w: w, fails: map[string][]error{"y": {errBad, rebalancer.RetryAfter(time.Hour, errBad), errBad, nil}}}
		_ = w.source.Send("q", "x", "y", "z")
		r := w.start(w.config("a", "q"), s.handle)
		r.wait("failing", func(s Status) bool { return len(s.Resources) == 1 && s.Resources[0].Err != nil })
		if err := r.Status().Resources[0].Err; !errors.Is(err, errBad) {
			t.Fatalf("status says %v", err)
		}
		_ = w.source.Idle(t.Context())
		if got := s.said(); got != "x1 y1 y2 y3 y4 z1" {
			t.Fatalf("calls: %s", got)
		}
		if d := s.calls[3].at.Sub(s.calls[2].at); d < time.Hour {
			t.Fatalf("tried again after %v, an hour was asked for", d)
		}
		for i, most := range map[int]time.Duration{2: DefaultRetryMin, 4: 4 * DefaultRetryMin} {
			if d := s.calls[i].at.Sub(s.calls[i-1].at); d > most {
				t.Fatalf("call %d came %v after the one before, at most %v", i, d, most)
			}
		}
		r.wait("recovered", func(s Status) bool { return s.Resources[0].Err == nil })
		if err := r.end(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestExhaustedGoesToDeadLetters(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		s := &script{w: w, fails: map[string][]error{"x": {errBad}, "p": {rebalancer.Permanent(errBad)}}}
		_ = w.source.Send("q", "x", "p", "z")
		r := w.start(w.config("a", "q"), s.handle)
		w.idle()
		if got := s.said(); got != "x1 x2 x3 x4 x5 p1 z1" {
			t.Fatalf("calls: %s", got)
		}
		r.wait("getting on again", func(s Status) bool { return s.Resources[0].Err == nil })
		rej := w.source.Rejected("q")
		if len(rej) != 2 || !errors.Is(rej[0].Err, errBad) || !errors.Is(rej[1].Err, rebalancer.ErrPermanent) {
			t.Fatalf("rejected: %+v", rej)
		}
		_ = r.end()
		if e, ok := w.event("a", KindRejected); !ok || e.Resource != "q" || e.Attempt != 5 || e.Fence == 0 {
			t.Fatalf("event: %+v", e)
		}
	})
}

func TestNoDeadLettersKeepsForEver(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.source = memory.New(memory.WithoutDeadLetters())
		s := &script{w: w, fails: map[string][]error{"p": {rebalancer.Permanent(errBad), rebalancer.Permanent(errBad), nil}}}
		_ = w.source.Send("q", "p", "z")
		r := w.start(w.config("a", "q"), s.handle)
		w.idle()
		if got := s.said(); got != "p1 p2 p3 z1" {
			t.Fatalf("calls: %s", got)
		}
		if d := s.calls[1].at.Sub(s.calls[0].at); d != DefaultRetryMax {
			t.Fatalf("tried again after %v, want %v", d, DefaultRetryMax)
		}
		_ = r.end()
		if _, ok := w.event("a", KindKept); !ok {
			t.Fatal("not reported")
		}
	})
}

func TestStopStandsStill(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		s := &script{w: w, fails: map[string][]error{"x": {errBad}}}
		_ = w.source.Send("q", "x", "y")
		cfg := w.config("a", "q")
		cfg.Retry = Retry{Attempts: 2, Exhausted: Stop}
		r := w.start(cfg, s.handle)
		r.wait("standing still", func(s Status) bool {
			return len(s.Resources) == 1 && errors.Is(s.Resources[0].Err, ErrHalted)
		})
		time.Sleep(time.Hour)
		if err := r.Live(); !errors.Is(err, ErrHalted) {
			t.Fatalf("Live: %v", err)
		}
		if got := s.said(); got != "x1 x2" {
			t.Fatalf("calls: %s", got)
		}
		if err := r.end(); err != nil {
			t.Fatal(err)
		}
		if c := w.source.Counts("q"); c.Waiting != 2 || c.Done != 0 {
			t.Fatalf("source: %+v", c)
		}
		if _, ok := w.event("a", KindHalted); !ok {
			t.Fatal("not reported")
		}
	})
}

func TestSkipSettles(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		s := &script{w: w, fails: map[string][]error{"x": {errBad, errBad}}}
		_ = w.source.Send("q", "x", "y")
		cfg := w.config("a", "q")
		cfg.Retry = Retry{Attempts: 2, Exhausted: Skip}
		r := w.start(cfg, s.handle)
		w.idle()
		r.wait("getting on again", func(s Status) bool { return s.Resources[0].Err == nil })
		_ = r.end()
		if c := w.source.Counts("q"); c.Done != 2 || c.Rejected != 0 {
			t.Fatalf("source: %+v", c)
		}
		if e, ok := w.event("a", KindSkipped); !ok || !errors.Is(e.Err, errBad) {
			t.Fatalf("event: %+v", e)
		}
	})
}

func TestPanicIsAnError(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		_ = w.source.Send("q", "x")
		n := 0
		r := w.start(w.config("a", "q"), func(_ context.Context, m *rebalancer.Message) error {
			if n++; n == 1 {
				panic("oh no")
			}
			w.note("a", m)
			return nil
		})
		w.idle()
		_ = r.end()
		e, _ := w.event("a", KindFailed)
		if n != 2 || e.Err == nil || e.Err.Error() != "panic: oh no" {
			t.Fatalf("%d calls, event %+v", n, e)
		}
		var p *panicError
		if !errors.As(e.Err, &p) || !strings.Contains(string(p.stack), "handling_test.go") {
			t.Fatal("no stack for the log")
		}
	})
}

// A message whose key is not known fails, and the others go on.
func TestPanicOfKeyIsAFailure(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		_ = w.source.Send("q", "x", "y")
		cfg := w.config("a", "q")
		cfg.Concurrency, cfg.Retry.Attempts = 2, 2
		cfg.Key = func(m *rebalancer.Message) string {
			if string(m.Body) == "x" {
				panic("oh no")
			}
			return m.ID
		}
		s := &script{w: w}
		r := w.start(cfg, s.handle)
		w.idle()
		_ = r.end()
		if got := s.said(); got != "y1" {
			t.Fatalf("calls: %s", got)
		}
		if e, _ := w.event("a", KindRejected); e.Attempt != 2 || e.Err.Error() != "Config.Key: panic: oh no" {
			t.Fatalf("event %+v", e)
		}
	})
}

func TestGoexitGivesTheResourceUp(t *testing.T) {
	for _, concurrency := range []int{1, 2} {
		t.Run(fmt.Sprint(concurrency), func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				_ = w.source.Send("q", "x")
				cfg := w.config("a", "q")
				cfg.Concurrency = concurrency
				exited := make(chan struct{})
				r := w.start(cfg, func(_ context.Context, m *rebalancer.Message) error {
					select {
					case <-exited:
						return nil
					default:
					}
					close(exited)
					runtime.Goexit()
					return nil
				})
				w.idle()
				_ = r.end()
				if !slices.Contains(w.kinds("a"), KindDeclined) && !slices.Contains(w.kinds("a"), KindReleased) {
					t.Fatalf("events: %v", w.kinds("a"))
				}
			})
		})
	}
}

func TestErrLostBurnsNoAttempt(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		refused := fmt.Errorf("database: %w", rebalancer.ErrLost)
		s := &script{w: w, fails: map[string][]error{"x": {refused, refused, refused, refused, refused, refused, nil}}}
		_ = w.source.Send("q", "x")
		r := w.start(w.config("a", "q"), s.handle)
		w.idle()
		if got := s.said(); got != "x1 x1 x1 x1 x1 x1 x1" {
			t.Fatalf("calls: %s", got)
		}
		_ = r.end()
	})
}

func TestTimeout(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		_ = w.source.Send("q", "x")
		cfg := w.config("a", "q")
		cfg.Timeout = time.Second
		n := 0
		r := w.start(cfg, func(ctx context.Context, m *rebalancer.Message) error {
			if n++; n > 1 {
				return nil
			}
			<-ctx.Done()
			if !errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
				t.Errorf("cause: %v", context.Cause(ctx))
			}
			return ctx.Err()
		})
		w.idle()
		_ = r.end()
		if n != 2 {
			t.Fatalf("%d calls", n)
		}
	})
}

func TestContextValues(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		type key struct{}
		_ = w.source.Send("q", "x")
		r := w.startWith(w.config("a", "q"), func(ctx context.Context, g *Group) error {
			return g.Consume(context.WithValue(ctx, key{}, "v"), func(ctx context.Context, m *rebalancer.Message) error {
				if ctx.Value(key{}) != "v" {
					t.Error("value is gone")
				}
				if m.Fence <= 0 || m.Resource != "q" || m.Attempt != 1 {
					t.Errorf("message: %+v", m)
				}
				return nil
			})
		})
		w.idle()
		_ = r.end()
	})
}

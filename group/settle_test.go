package group

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/coord"
	"github.com/rebalancer-go/rebalancer/sources"
	"github.com/rebalancer-go/rebalancer/sources/memory"
)

// scripted is a reader whose Settle answers as a test says, and notes what it was asked.
type scripted struct {
	sources.Reader
	mu    sync.Mutex
	said  []string
	reply func(n int, s []sources.Settlement) error
	calls int
}

var outcomes = map[sources.Outcome]string{sources.Done: "done", sources.Release: "release", sources.Retry: "retry", sources.Reject: "reject"}

func (r *scripted) Settle(_ context.Context, s []sources.Settlement) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls++
	line := ""
	for _, x := range s {
		line += fmt.Sprintf("%s %s,", outcomes[x.Outcome], x.Message.ID)
	}
	r.said = append(r.said, line)
	if r.reply == nil {
		return nil
	}
	return r.reply(r.calls, s)
}

func (r *scripted) lines() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.said)
}

// loneWorker is a worker without a machine; its node trusts until told otherwise.
func loneWorker(w *world, change func(*Config)) (*worker, *atomic.Int64) {
	cfg := w.config("a", "q")
	if change != nil {
		change(&cfg)
	}
	cfg = cfg.withDefaults()
	trust := new(atomic.Int64)
	trust.Store(1 << 62)
	e := &env{
		cfg: &cfg, clock: newClock(nil), trusted: trust, watch: &watch{}, post: func(coord.Event) {},
		emit: func(e Event) { cfg.OnEvent(e) },
		task: task{handle: func(context.Context, *rebalancer.Message) error { return nil }},
	}
	return newWorker(w.t.Context(), e, &rebalancer.Claim{Resource: "q", Fence: 7}), trust
}

func done(ids ...string) []sources.Settlement {
	var out []sources.Settlement
	for _, id := range ids {
		out = append(out, sources.Settlement{Message: &rebalancer.Message{ID: id}})
	}
	return out
}

func TestSettleTakesAllThatIsFinished(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		wk, _ := loneWorker(w, nil)
		r := &scripted{}
		s := newSettler(wk, r)
		began := time.Now()
		for _, x := range done("1", "2", "3") {
			s.add(x)
		}
		time.Sleep(2 * settleLinger)
		for _, x := range done("4") {
			s.add(x)
		}
		s.stop()
		if got := r.lines(); !slices.Equal(got, []string{"done 1,done 2,done 3,", "done 4,"}) {
			t.Fatalf("calls: %q", got)
		}
		if d := time.Since(began); d > 4*settleLinger {
			t.Fatalf("after %v", d)
		}
		wk.end(nil)
	})
}

func TestSettlePassesOnlyFailuresAgain(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		wk, _ := loneWorker(w, nil)
		r := &scripted{reply: func(n int, s []sources.Settlement) error {
			switch n {
			case 1:
				return errBad
			case 2:
				return fmt.Errorf("some: %w", &sources.SettleError{Failed: map[int]error{0: errBad, 2: errBad}})
			}
			return nil
		}}
		s := newSettler(wk, r)
		for _, x := range done("1", "2", "3") {
			s.add(x)
		}
		time.Sleep(time.Second)
		s.stop()
		if got := r.lines(); !slices.Equal(got, []string{"done 1,done 2,done 3,", "done 1,done 2,done 3,", "done 1,done 3,"}) {
			t.Fatalf("calls: %q", got)
		}
		wk.end(nil)
		if k := w.kinds("a"); !slices.Equal(k, []EventKind{KindSource, KindSource, KindRecovered}) {
			t.Fatalf("events: %v", k)
		}
	})
}

func TestNothingIsSettledWithoutTrust(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		wk, trust := loneWorker(w, nil)
		r := &scripted{}
		s := newSettler(wk, r)
		trust.Store(0)
		s.add(done("1")[0])
		time.Sleep(time.Hour)
		if got := r.lines(); len(got) != 0 {
			t.Fatalf("settled past the trust: %q", got)
		}
		wk.lose()
		s.stop()
		if got := r.lines(); len(got) != 0 {
			t.Fatalf("settled after the loss: %q", got)
		}
		wk.end(nil)
	})
}

func TestNoHandlerStartsWithoutTrust(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		ticks := 0
		wk, trust := loneWorker(w, nil)
		wk.env.post = func(ev coord.Event) {
			if _, ok := ev.(coord.Tick); ok {
				ticks++
			}
		}
		trust.Store(0)
		wk.env.task.handle = func(context.Context, *rebalancer.Message) error { t.Error("started"); return nil }
		s := newSettler(wk, &scripted{})
		result := make(chan verdict)
		go func() { v, _ := wk.attempt(s, &item{m: done("1")[0].Message}); result <- v }()
		time.Sleep(time.Hour)
		wk.lose()
		if v := <-result; v != unworked || ticks == 0 {
			t.Fatalf("verdict %v, %d ticks", v, ticks)
		}
		s.stop()
		wk.end(nil)
	})
}

func TestSettleGivesUpAfterGrace(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		wk, _ := loneWorker(w, nil)
		r := &scripted{reply: func(int, []sources.Settlement) error { return errBad }}
		s := newSettler(wk, r)
		s.add(done("1")[0])
		began := time.Now()
		s.stop()
		if d := time.Since(began); d < DefaultGrace || d > 2*DefaultGrace {
			t.Fatalf("gave up after %v", d)
		}
		wk.end(nil)
	})
}

// A call that hangs ends with the grace too: whoever waits for the resource has waited for drain and grace then.
func TestStopEndsASettlementInProgressAfterGrace(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		wk, _ := loneWorker(w, nil)
		s, _ := hanging(wk)
		began := time.Now()
		s.stop()
		if d := time.Since(began); d != DefaultGrace {
			t.Errorf("stopped after %v, want %v", d, DefaultGrace)
		}
		wk.end(nil)
	})
}

func TestUnsettledIsBounded(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		wk, _ := loneWorker(w, nil)
		var open atomic.Bool
		r := &scripted{reply: func(int, []sources.Settlement) error {
			if open.Load() {
				return nil
			}
			return errBad
		}}
		s := newSettler(wk, r)
		for i := range maxUnsettled {
			s.add(done(fmt.Sprint(i))[0])
		}
		room := make(chan bool)
		go func() { room <- s.room() }()
		select {
		case <-room:
			t.Fatal("there is room")
		case <-time.After(time.Hour):
		}
		open.Store(true)
		if !<-room {
			t.Fatal("no room")
		}
		s.stop()
		wk.end(nil)
	})
}

func TestRejectWithoutAPlace(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		wk, _ := loneWorker(w, nil)
		r := &scripted{reply: func(n int, s []sources.Settlement) error {
			if s[0].Outcome != sources.Reject {
				return nil
			}
			if n == 2 {
				return errBad // tried again, like any other
			}
			return &sources.SettleError{Failed: map[int]error{0: sources.ErrNoDeadLetter}}
		}}
		s := newSettler(wk, r)
		s.add(done("1")[0])
		x := done("2")[0]
		x.Outcome = sources.Reject
		if err := s.reject(x, nil); !errors.Is(err, sources.ErrNoDeadLetter) {
			t.Fatal(err)
		}
		s.stop()
		if got := r.lines(); !slices.Equal(got, []string{"done 1,", "reject 2,", "reject 2,"}) {
			t.Fatalf("calls: %q", got)
		}
		if err := s.reject(x, nil); !errors.Is(err, rebalancer.ErrLost) {
			t.Fatalf("after stop: %v", err)
		}
		wk.end(nil)
	})
}

func TestKeptWhereTheResourceHasNoPlace(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		src := memory.New(memory.WithoutDeadLetters())
		w.source = src
		s := &script{w: w, fails: map[string][]error{"x": {rebalancer.Permanent(errBad), nil}}}
		_ = src.Send("q", "x")
		cfg := w.config("a", "q")
		cfg.Source = claimsDeadLetters{src} // it has places, but none for this resource
		r := w.start(cfg, s.handle)
		w.idle()
		_ = r.end()
		if got := s.said(); got != "x1 x2" {
			t.Fatalf("calls: %s", got)
		}
		if _, ok := w.event("a", KindKept); !ok {
			t.Fatal("not reported")
		}
	})
}

// TestRejectedAndDeliveredAgain: a message that the source has taken back meanwhile is not said to be in the dead-letter place, nor rejected again
// and again; it is rejected when it comes again.
func TestRejectedAndDeliveredAgain(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		src := memory.New()
		w.source = src
		bad := rebalancer.Permanent(errBad)
		s := &script{w: w, fails: map[string][]error{"x": {bad, bad}}}
		_ = src.Send("q", "x", "y")
		cfg := w.config("a", "q")
		takes := takesBack{src, new(atomic.Int32)}
		cfg.Source = takes
		r := w.start(cfg, s.handle)
		w.idle()
		if got := s.said(); got != "x1 y1 x1" {
			t.Fatalf("calls: %s", got)
		}
		if n := takes.n.Load(); n != 2 {
			t.Errorf("rejected %d times", n)
		}
		if e, ok := w.event("a", KindFailed); !ok || !errors.Is(e.Err, errBad) {
			t.Errorf("the first failure: %+v", e)
		}
		rejected := 0
		w.mu.Lock()
		for _, e := range w.events["a"] {
			if e.Kind == KindRejected {
				rejected++
			}
		}
		w.mu.Unlock()
		if rejected != 1 || len(src.Rejected("q")) != 1 {
			t.Errorf("%d messages are said to be rejected, %d are", rejected, len(src.Rejected("q")))
		}
		_ = r.end()
	})
}

// takesBack is a source that delivers the first rejected message again.
type takesBack struct {
	*memory.Source
	n *atomic.Int32
}

func (s takesBack) Open(ctx context.Context, c *rebalancer.Claim) (sources.Reader, error) {
	r, err := s.Source.Open(ctx, c)
	return takesBackReader{r, s.n}, err
}

type takesBackReader struct {
	sources.Reader
	n *atomic.Int32
}

func (r takesBackReader) Settle(ctx context.Context, ss []sources.Settlement) error {
	if ss[0].Outcome != sources.Reject || r.n.Add(1) > 1 {
		return r.Reader.Settle(ctx, ss)
	}
	_ = r.Reader.Settle(ctx, []sources.Settlement{{Message: ss[0].Message, Outcome: sources.Release}})
	return &sources.SettleError{Failed: map[int]error{0: fmt.Errorf("gone: %w", sources.ErrRedelivered)}}
}

type claimsDeadLetters struct{ *memory.Source }

func (claimsDeadLetters) DeadLetters() bool { return true }

// frugal is a source where a receive costs an attempt; it notes what Fetch is asked for.
type frugal struct {
	*memory.Source
	most *atomic.Int32
}

func (frugal) Prefetch() bool { return false }

func (f frugal) Open(ctx context.Context, c *rebalancer.Claim) (sources.Reader, error) {
	r, err := f.Source.Open(ctx, c)
	return frugalReader{r, f}, err
}

type frugalReader struct {
	sources.Reader
	f frugal
}

func (r frugalReader) Fetch(ctx context.Context, most int) ([]*rebalancer.Message, error) {
	r.f.most.Store(max(r.f.most.Load(), int32(most)))
	return r.Reader.Fetch(ctx, most)
}

func TestFetchTakesNoMoreThanFreeHandlers(t *testing.T) {
	for _, concurrency := range []int{1, 3} {
		t.Run(fmt.Sprint(concurrency), func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				_ = w.source.Send("q", "1", "2", "3", "4", "5", "6", "7")
				cfg := w.config("a", "q")
				cfg.Concurrency = concurrency
				f := frugal{w.source, new(atomic.Int32)}
				cfg.Source = f
				var g gauge
				r := w.start(cfg, func(context.Context, *rebalancer.Message) error {
					defer g.enter()()
					time.Sleep(time.Second)
					if n := w.source.Counts("q").InFlight; n > 2*concurrency { // those being settled included
						t.Errorf("%d in hand", n)
					}
					return nil
				})
				w.idle()
				_ = r.end()
				if n := int(f.most.Load()); n != concurrency || int(g.most.Load()) != concurrency {
					t.Fatalf("asked for %d, %d at once", n, g.most.Load())
				}
			})
		})
	}
}

// What changed under its handler fails for ever in place: the source looks at it again, and delivers what it is by then.
func TestSettleGivesBackWhatChanged(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		wk, _ := loneWorker(w, nil)
		r := &scripted{}
		s := newSettler(wk, r)
		it := &item{m: &rebalancer.Message{ID: "1", Attempt: 1}}
		if v, _ := wk.failed(s, it, fmt.Errorf("read: %w", rebalancer.ErrChanged)); v != settled {
			t.Errorf("verdict %v, want that it is out of hand", v)
		}
		s.stop()
		if got := r.lines(); !slices.Equal(got, []string{"retry 1,"}) {
			t.Fatalf("calls: %q", got)
		}
		wk.end(nil)
	})
}

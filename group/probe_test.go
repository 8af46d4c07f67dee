package group

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/sources"
)

// heard is what a probe was told.
type heard struct {
	mu       sync.Mutex
	begun    int
	ended    int
	events   []Event
	fetched  int
	fetchErr error
	outcomes map[sources.Outcome]int
	calls    map[string]int // "call outcome"
	claims   int
	refused  int
	handled  int
}

func (h *heard) probe() *Probe {
	h.outcomes, h.calls = map[sources.Outcome]int{}, map[string]int{}
	locked := func(f func()) { h.mu.Lock(); defer h.mu.Unlock(); f() }
	return &Probe{
		Begin: func(*Group) func() {
			locked(func() { h.begun++ })
			return func() { locked(func() { h.ended++ }) }
		},
		Event: func(e Event) { locked(func() { h.events = append(h.events, e) }) },
		Handler: func(next rebalancer.Handler) rebalancer.Handler {
			return func(ctx context.Context, m *rebalancer.Message) error {
				locked(func() { h.handled++ })
				return next(ctx, m)
			}
		},
		BatchHandler: func(next rebalancer.BatchHandler) rebalancer.BatchHandler {
			return func(ctx context.Context, ms []*rebalancer.Message) error {
				locked(func() { h.handled += len(ms) })
				return next(ctx, ms)
			}
		},
		Fetched: func(f Fetched) {
			locked(func() { h.fetched += len(f.Messages); h.fetchErr = errors.Join(h.fetchErr, f.Err) })
		},
		Settled: func(s Settled) {
			locked(func() {
				for _, x := range s.Settlements {
					h.outcomes[x.Outcome]++
				}
			})
		},
		StoreCall: func(c StoreCall) {
			locked(func() {
				h.calls[c.Call+" "+c.Outcome]++
				h.claims, h.refused = h.claims+c.Claims, h.refused+c.Refused
			})
		},
	}
}

func (h *heard) event(k EventKind) (Event, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	i := slices.IndexFunc(h.events, func(e Event) bool { return e.Kind == k })
	if i < 0 {
		return Event{}, false
	}
	return h.events[i], true
}

func TestProbeHearsEverything(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		bad := errors.New("bad")
		_ = w.source.Send("q", "1", "2", "3")
		var h heard
		cfg := w.config("a", "q")
		cfg.Probes = []*Probe{nil, {}, h.probe()}
		cfg.OnClaim = func(ctx context.Context, c *rebalancer.Claim) error {
			_, err := c.Checkpoint.Load(ctx)
			return errors.Join(err, c.Checkpoint.Save(ctx, map[string][]byte{"k": {1}}))
		}
		r := w.start(cfg, func(_ context.Context, m *rebalancer.Message) error {
			if string(m.Body) == "2" && m.Attempt == 1 {
				return bad
			}
			return nil
		})
		w.idle()
		if err := r.end(); err != nil {
			t.Fatal(err)
		}
		if h.begun != 1 || h.ended != 1 || h.fetched != 3 || h.outcomes[sources.Done] != 3 || h.handled != 4 || h.claims != 1 || h.refused != 0 {
			t.Errorf("begun %d, ended %d, fetched %d, settled %v, handled %d, claims %d (%d refused)", h.begun, h.ended, h.fetched, h.outcomes, h.handled, h.claims, h.refused)
		}
		for _, call := range []string{CallOpen, CallRead, CallCommit, CallClose, CallLoadCheckpoint, CallSaveCheckpoint} {
			if h.calls[call+" ok"] == 0 {
				t.Errorf("no call %q was told: %v", call, h.calls)
			}
		}
		if e, ok := h.event(KindFailed); !ok || !errors.Is(e.Err, bad) || e.Time.IsZero() {
			t.Errorf("the failure was told as %+v", e)
		}
		if e, ok := h.event(KindLeft); !ok || e.Time.IsZero() {
			t.Error("the last event was not told")
		}
		if n := len(w.kinds("a")); n != len(h.events) {
			t.Errorf("OnEvent got %d events, the probe %d", n, len(h.events))
		}
	})
}

// A rebalance is told with its causes and moves, and logged in one line.
func TestRebalanceIsToldWithItsMoves(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var log bytes.Buffer
		var h [2]heard
		var rs [2]*running
		for i, node := range []string{"a", "b"} {
			cfg := w.config(node, "q", "r")
			cfg.Probes, cfg.Logger = []*Probe{h[i].probe()}, slog.New(slog.NewTextHandler(&log, nil))
			if node == "b" {
				cfg.Logger = quiet()
			}
			rs[i] = w.start(cfg, nil)
			if i == 0 {
				rs[0].holds("q", "r")
			}
		}
		rs[0].holdsCount(1)
		rs[1].holdsCount(1)
		if s := rs[0].Status(); s.Members != 2 {
			t.Errorf("the coordinator counts %d members", s.Members)
		}
		if err := errors.Join(rs[1].end(), rs[0].end()); err != nil {
			t.Fatal(err)
		}
		var plan *Plan
		for _, e := range h[0].events {
			if e.Kind == KindRebalanced && slices.Equal(e.Plan.Causes, []string{"join"}) && plan == nil && e.Plan.Generation > 1 {
				plan = e.Plan
			}
		}
		if plan == nil || plan.Moved != 1 || plan.Moves[0].From != "a" || plan.Moves[0].To != "b" || plan.Moves[0].Reason != "balance" {
			t.Fatalf("the plan after the join was told as %+v", plan)
		}
		share, ok := h[1].event(KindAssigned)
		if !ok || !slices.Equal(share.Share.Causes, []string{"join"}) || len(share.Share.Gained) != 1 || share.Share.Generation != plan.Generation {
			t.Errorf("the share was told as %+v", share.Share)
		}
		if h[1].refused > 1 || h[1].claims != h[1].refused+1 { // one is, if it comes before the release
			t.Errorf("%d of %d claims refused, want all but one, and at most one", h[1].refused, h[1].claims)
		}
		claimed, _ := h[1].event(KindClaimed)
		if claimed.Waited > time.Second {
			t.Errorf("the resource counts as free for %v", claimed.Waited)
		}
		if want := fmt.Sprintf("moves=\"%s: a → b (balance)\"", plan.Moves[0].Resource); !strings.Contains(log.String(), want) {
			t.Errorf("%s is not in the log:\n%s", want, log.String())
		}
	})
}

func TestPlanInOneLine(t *testing.T) {
	t.Parallel()
	p := Plan{Moved: 150}
	for i := range 100 {
		p.Moves = append(p.Moves, Move{Resource: strings.Repeat("x", 500), From: "a", Reason: "gone", To: fmt.Sprint(i % 2)})
	}
	if s := p.String(); len(s) > 20*150 || strings.Count(s, "→") != 20 || !strings.HasSuffix(s, "; and 130 more") {
		t.Errorf("%d bytes: %s", len(s), s)
	}
	if s := (&Plan{Moves: []Move{{Resource: "q", Reason: "paused", From: "a"}}, Moved: 1}).String(); s != "q: a → nobody (paused)" {
		t.Errorf("%q", s)
	}
}

// What panics in a probe is logged, and costs nothing else.
func TestProbesThatPanic(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		_ = w.source.Send("q", "1")
		var log bytes.Buffer
		cfg := w.config("a", "q")
		cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
		var h heard
		cfg.Probes = []*Probe{{
			Begin: func(*Group) func() { panic("begin") }, Event: func(Event) { panic("event") }, Fetched: func(Fetched) { panic("fetched") },
			Settled: func(Settled) { panic("settled") }, StoreCall: func(StoreCall) { panic("call") },
			Handler: func(rebalancer.Handler) rebalancer.Handler { return nil },
		}, h.probe()}
		r := w.start(cfg, nil)
		w.idle()
		if err := r.end(); err != nil {
			t.Fatal(err)
		}
		if len(w.bodies("q")) != 1 || h.fetched != 1 || h.ended != 1 || h.outcomes[sources.Done] != 1 {
			t.Error("a probe that panicked kept something from happening")
		}
		for _, where := range []string{"begin", "event", "fetched", "settled", "call"} {
			if !strings.Contains(log.String(), "panic="+where) {
				t.Errorf("the panic in %q was not logged", where)
			}
		}
	})
}

func TestProbeOfBatches(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		_ = w.source.Send("q", "1", "2")
		var h heard
		cfg := w.config("a", "q")
		cfg.Probes = []*Probe{h.probe()}
		r := w.startWith(cfg, func(ctx context.Context, g *Group) error {
			return g.ConsumeBatch(ctx, func(context.Context, []*rebalancer.Message) error { return nil })
		})
		w.idle()
		if err := r.end(); err != nil {
			t.Fatal(err)
		}
		if h.handled != 2 || h.fetched != 2 || h.outcomes[sources.Done] != 2 {
			t.Errorf("handled %d, fetched %d, settled %v", h.handled, h.fetched, h.outcomes)
		}
	})
}

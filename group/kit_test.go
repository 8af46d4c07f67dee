package group

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rebalancer-go/rebalancer"
	smem "github.com/rebalancer-go/rebalancer/backends/memory"
	"github.com/rebalancer-go/rebalancer/sources"
	"github.com/rebalancer-go/rebalancer/sources/memory"
)

// world is a store and a source that several nodes share, and what their handlers did.
type world struct {
	t      *testing.T
	store  *smem.Store
	source *memory.Source

	mu     sync.Mutex
	log    []worked
	events map[string][]Event // by node
}

type worked struct {
	node, resource, body string
	fence                int64
	at                   time.Time
}

func newWorld(t *testing.T) *world {
	return &world{t: t, store: smem.New(), source: memory.New(), events: map[string][]Event{}}
}

func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

func (w *world) config(node string, resources ...string) Config {
	return Config{
		Name: "g", Node: node, Store: w.store, Source: w.source, Resources: Static(resources...), Logger: quiet(),
		OnEvent: func(e Event) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.events[node] = append(w.events[node], e)
		},
	}
}

func (w *world) note(node string, m *rebalancer.Message) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.log = append(w.log, worked{node, m.Resource, string(m.Body), m.Fence, time.Now()})
}

// bodies are those that were worked, in order, of one resource or all ("").
func (w *world) bodies(resource string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []string
	for _, l := range w.log {
		if resource == "" || l.resource == resource {
			out = append(out, l.body)
		}
	}
	return out
}

func (w *world) kinds(node string) []EventKind {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []EventKind
	for _, e := range w.events[node] {
		out = append(out, e.Kind)
	}
	return out
}

func (w *world) event(node string, k EventKind) (Event, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range w.events[node] {
		if e.Kind == k {
			return e, true
		}
	}
	return Event{}, false
}

// running is a node at work.
type running struct {
	*Group
	w    *world
	stop context.CancelFunc
	done chan error
}

func (w *world) start(cfg Config, h rebalancer.Handler) *running {
	return w.startWith(cfg, func(ctx context.Context, g *Group) error {
		if h == nil {
			h = func(_ context.Context, m *rebalancer.Message) error { w.note(cfg.Node, m); return nil }
		}
		return g.Consume(ctx, h)
	})
}

func (w *world) startWith(cfg Config, live func(context.Context, *Group) error, change ...func(*Group)) *running {
	w.t.Helper()
	g, err := New(cfg)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, c := range change {
		c(g)
	}
	ctx, cancel := context.WithCancel(w.t.Context())
	r := &running{Group: g, w: w, stop: cancel, done: make(chan error, 1)}
	go func() { r.done <- live(ctx, g) }()
	return r
}

func (r *running) end() error {
	r.stop()
	return <-r.done
}

func (r *running) wait(what string, until func(Status) bool) {
	r.w.t.Helper()
	ctx, cancel := context.WithTimeout(r.w.t.Context(), 10*time.Minute)
	defer cancel()
	if err := r.Wait(ctx, until); err != nil {
		r.w.t.Fatalf("node %s: not %s: %v\nstatus: %+v\nevents: %v", r.cfg.Node, what, err, r.Status(), r.w.kinds(r.cfg.Node))
	}
}

func (r *running) holds(names ...string) {
	r.w.t.Helper()
	slices.Sort(names)
	r.wait(fmt.Sprintf("holding %q", names), func(s Status) bool {
		var held []string
		for _, x := range s.Resources {
			if x.Phase == "working" {
				held = append(held, x.Name)
			}
		}
		return slices.Equal(held, names)
	})
}

func (r *running) holdsCount(n int) {
	r.w.t.Helper()
	r.wait(fmt.Sprintf("holding %d", n), func(s Status) bool {
		held := 0
		for _, x := range s.Resources {
			if x.Phase == "working" {
				held++
			}
		}
		return held == n && len(s.Resources) == n
	})
}

func (w *world) idle() { w.t.Helper(); w.idleWithin(10 * time.Minute) }

func names(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("r%02d", i)
	}
	return out
}

var _ sources.Source = (*memory.Source)(nil)

func (w *world) idleWithin(within time.Duration) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), within)
	defer cancel()
	if err := w.source.Idle(ctx); err != nil {
		w.t.Fatalf("messages are left: %v", err)
	}
	synctest.Wait() // until what the last settlement led to is told
}

func consumeNothing(ctx context.Context, g *Group) error {
	return g.Consume(ctx, func(context.Context, *rebalancer.Message) error { return nil })
}

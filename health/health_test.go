package health_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/rebalancer-go/rebalancer"
	stores "github.com/rebalancer-go/rebalancer/backends/memory"
	"github.com/rebalancer-go/rebalancer/group"
	"github.com/rebalancer-go/rebalancer/health"
	"github.com/rebalancer-go/rebalancer/sources/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is one node, and what can happen to it.
type world struct {
	t      *testing.T
	g      *group.Group
	store  *stores.Store
	source *memory.Source
	freeze atomic.Pointer[chan struct{}] // the loop waits for it at its next event
	stop   context.CancelFunc
	done   chan error
}

func newWorld(t *testing.T, change func(*group.Config)) *world {
	w := &world{t: t, store: stores.New(), source: memory.New(), done: make(chan error, 1)}
	cfg := group.Config{
		Name: "orders", Node: "a", Store: w.store, Source: w.source, Resources: group.Static("q"), Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Probes: []*group.Probe{{Event: func(group.Event) {
			if ice := w.freeze.Load(); ice != nil {
				<-*ice
			}
		}}},
	}
	if change != nil {
		change(&cfg)
	}
	var err error
	if w.g, err = group.New(cfg); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) start(h rebalancer.Handler) {
	ctx, cancel := context.WithCancel(w.t.Context())
	w.stop = cancel
	go func() { w.done <- w.g.Consume(ctx, h) }()
}

func (w *world) wait(until func(group.Status) bool) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Hour)
	defer cancel()
	if err := w.g.Wait(ctx, until); err != nil {
		w.t.Fatalf("%v: %+v", err, w.g.Status())
	}
	synctest.Wait()
}

// expect asks both, and looks for a word in the body of the first that is not well.
func (w *world) expect(what string, live, ready int, word string) {
	w.t.Helper()
	h := health.Handler(w.g)
	for path, want := range map[string]int{"/livez": live, "/health/readyz": ready} {
		r := httptest.NewRecorder()
		h.ServeHTTP(r, httptest.NewRequest(http.MethodGet, path, nil))
		body := r.Body.String()
		if r.Code != want || want == 200 && body != "ok\n" || want == 503 && !strings.Contains(body, "group orders, node a (") || want == 503 && (path == "/livez" || live == 200) && !strings.Contains(body, word) {
			w.t.Errorf("%s: %s answers %d %q, want %d with %q", what, path, r.Code, body, want, word)
		}
	}
}

func handle(context.Context, *rebalancer.Message) error { return nil }

func working(s group.Status) bool { return len(s.Resources) == 1 && s.Resources[0].Phase == "working" }

func TestThroughALife(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		w.expect("not started", 200, 503, "neither Consume nor Run")
		restore := w.store.Cut("a")
		w.start(handle)
		time.Sleep(time.Minute)
		w.expect("joining, store away", 200, 503, "(joining)")
		restore()
		w.wait(working)
		w.expect("working", 200, 200, "")
		w.g.Drain()
		w.wait(func(s group.Status) bool { return s.State == group.StateDraining && len(s.Resources) == 0 })
		w.expect("drained", 200, 503, "(draining)")
		w.g.Undrain()
		w.wait(working)
		restore = w.store.Cut("a")
		time.Sleep(group.DefaultTTL / 2)
		w.expect("store away for a short time", 200, 200, "")
		w.wait(func(s group.Status) bool { return s.State == group.StateJoining })
		w.expect("fenced itself", 200, 503, "no session in the store")
		restore()
		w.wait(working)
		w.expect("back", 200, 200, "")
		w.stop()
		if err := <-w.done; err != nil {
			t.Fatal(err)
		}
		w.expect("left", 200, 503, "(left)")
	})
}

// A node that was frozen is not ready as soon as anybody can ask it, and not live while its loop does not turn.
func TestFrozen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		w.start(handle)
		w.wait(working)
		ice := make(chan struct{})
		w.freeze.Store(&ice)
		w.g.Drain() // something for the loop to tell
		time.Sleep(2 * group.DefaultTTL)
		synctest.Wait()
		w.expect("frozen", 503, 503, "has not turned")
		w.freeze.Store(nil)
		close(ice)
		w.g.Undrain()
		w.wait(func(s group.Status) bool { return working(s) && w.g.Ready() == nil }) // not as it was before
		w.expect("thawed", 200, 200, "")
		w.stop()
		if err := <-w.done; err != nil {
			t.Fatal(err)
		}
	})
}

func TestStuckAndStanding(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(c *group.Config) { c.Retry.Exhausted, c.Retry.Attempts = group.Stop, 1 })
		_ = w.source.Send("q", "1")
		w.start(func(context.Context, *rebalancer.Message) error { return errors.New("password=hunter2") })
		w.wait(func(group.Status) bool { return w.g.Live() != nil })
		w.expect("a resource stands still", 503, 200, `resource "q"`)
		r := httptest.NewRecorder()
		health.Live(w.g).ServeHTTP(r, httptest.NewRequest(http.MethodGet, "/", nil))
		if strings.Contains(r.Body.String(), "hunter2") {
			t.Error("what a handler said is shown to whoever asks")
		}
		w.stop()
		if err := <-w.done; err != nil {
			t.Fatal(err)
		}

		w = newWorld(t, nil)
		_ = w.source.Send("q", "1")
		free := make(chan struct{})
		w.start(func(context.Context, *rebalancer.Message) error { <-free; return nil })
		w.wait(func(s group.Status) bool { return working(s) && s.Resources[0].InFlight == 1 })
		w.g.Drain()
		w.wait(func(group.Status) bool { return w.g.Live() != nil })
		w.expect("a handler is stuck", 503, 503, `resource "q"`)
		close(free)
		w.wait(func(s group.Status) bool { return len(s.Resources) == 0 })
		w.expect("it has returned", 200, 503, "")
		w.stop()
		if err := <-w.done; err != nil {
			t.Fatal(err)
		}
	})
}

// fake is a node that says what it is told to.
type fake struct {
	live, ready error
	status      group.Status
}

func (f fake) Live() error          { return f.live }
func (f fake) Ready() error         { return f.ready }
func (f fake) Status() group.Status { return f.status }

func TestSeveralGroupsAsJSON(t *testing.T) {
	t.Parallel()
	well := fake{status: group.Status{Group: "g", Node: "n1", State: group.StateActive}}
	bad := fake{live: errors.Join(group.ErrStuck, group.ErrHalted), status: group.Status{Group: "h", Node: "n2", State: group.StateJoining}}
	req := httptest.NewRequest(http.MethodGet, "/livez", nil)
	req.Header.Set("Accept", "application/json")
	r := httptest.NewRecorder()
	health.Handler(well, bad).ServeHTTP(r, req)
	var got health.Report
	if err := json.Unmarshal(r.Body.Bytes(), &got); err != nil || r.Code != 503 || r.Header().Get("Content-Type") != "application/json" || r.Header().Get("Cache-Control") != "no-store" {
		t.Fatalf("%d %v %v: %s", r.Code, err, r.Header(), r.Body)
	}
	if got.OK || len(got.Nodes) != 2 || !got.Nodes[0].OK || got.Nodes[0].Reason != "" || got.Nodes[1].OK || got.Nodes[1].Reason == "" || got.Nodes[1].Node != "n2" || got.Nodes[1].State != group.StateJoining {
		t.Errorf("%+v", got)
	}
	r = httptest.NewRecorder()
	health.Live(well, bad).ServeHTTP(r, httptest.NewRequest(http.MethodGet, "/", nil))
	if n := strings.Count(r.Body.String(), "\n"); n != 1 {
		t.Errorf("one node that is not well takes %d lines: %q", n, r.Body)
	}
}

func TestRequests(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		method, path string
		code         int
		body         bool
	}{
		{"GET", "/livez", 200, true}, {"HEAD", "/livez", 200, false}, {"HEAD", "/readyz", 503, false}, {"POST", "/livez", 405, true}, {"GET", "/", 404, true}, {"GET", "/healthz", 404, true},
	} {
		r := httptest.NewRecorder()
		health.Handler(fake{ready: group.ErrNotReady}).ServeHTTP(r, httptest.NewRequest(c.method, c.path, nil))
		if r.Code != c.code || r.Body.Len() > 0 != c.body {
			t.Errorf("%s %s: %d %q, want %d", c.method, c.path, r.Code, r.Body, c.code)
		}
	}
	r := httptest.NewRecorder()
	health.Ready().ServeHTTP(r, httptest.NewRequest(http.MethodGet, "/", nil))
	if r.Code != 200 {
		t.Errorf("without nodes: %d", r.Code)
	}
}

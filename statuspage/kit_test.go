package statuspage

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/admin"
	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/backends/memory"
	"github.com/rebalancer-go/rebalancer/group"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const testToken = "a token for tests"

// world is a page over a store in virtual time, with a group g of registered resources.
type world struct {
	*testing.T
	store *memory.Store
	page  *Handler
}

// inWorld runs f with a page whose configuration change may alter.
func inWorld(t *testing.T, change func(*Config), f func(*world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, store: memory.New()}
		if _, err := admin.Create(t.Context(), w.store, "g", admin.Settings{Barrier: "resource", Origin: "registered", TTL: 10 * time.Second}); err != nil {
			t.Fatal(err)
		}
		cfg := Config{Store: w.store, Logger: slog.New(slog.DiscardHandler)}
		if change != nil {
			change(&cfg)
		}
		w.page = mustNew(t, cfg)
		defer w.page.Close()
		f(w)
	})
}

func mustNew(t *testing.T, cfg Config) *Handler {
	t.Helper()
	h, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func (w *world) add(names ...string) {
	w.Helper()
	if _, err := admin.AddResources(w.Context(), w.store, "g", names...); err != nil {
		w.Fatal(err)
	}
}

// node starts one and returns what stops it.
func (w *world) node(name string, change ...func(*group.Config)) (stop func()) {
	w.Helper()
	cfg := group.Config{
		Name: "g", Store: w.store, Node: name, Resources: group.Registered(), TTL: 10 * time.Second, Logger: slog.New(slog.DiscardHandler),
	}
	for _, c := range change {
		c(&cfg)
	}
	g, err := group.New(cfg)
	if err != nil {
		w.Fatal(err)
	}
	ctx, cancel := context.WithCancel(w.Context())
	done := make(chan error, 1)
	go func() {
		done <- g.Run(ctx, func(ctx context.Context, _ *rebalancer.Claim) error { <-ctx.Done(); return nil })
	}()
	return func() {
		cancel()
		<-done
	}
}

// ask serves one request.
func (w *world) ask(method, path, body string, change ...func(*http.Request)) *httptest.ResponseRecorder {
	w.Helper()
	r := httptest.NewRequestWithContext(w.Context(), method, "http://localhost:8080"+path, strings.NewReader(body))
	for _, c := range change {
		c(r)
	}
	rec := httptest.NewRecorder()
	w.page.ServeHTTP(rec, r)
	return rec
}

// shownState is an answer of the page as a browser reads it.
type shownState struct {
	Version, Since, Error string
	Head                  *head
	Nodes                 []node
	NodesGone             []string
	Resources             []resource
	ResourcesGone         []string
	History               []past
	code                  int
}

// state asks for a state other than the version.
func (w *world) state(have string) shownState {
	w.Helper()
	rec := w.ask(http.MethodGet, "/api/state?group=g&have="+url.QueryEscape(have), "")
	s := shownState{code: rec.Code}
	if rec.Code == http.StatusOK {
		if err := json.Unmarshal(rec.Body.Bytes(), &s); err != nil {
			w.Fatalf("%v in %s", err, rec.Body)
		}
	}
	return s
}

// settle waits, in virtual time, until the group stands as it will.
func settle() { time.Sleep(20 * time.Second) }

// entries are all that the store has of the group, but sessions.
func (w *world) entries() []backends.Entry {
	w.Helper()
	s, err := w.store.Open(w.Context(), backends.SessionOptions{Group: "g", TTL: time.Minute})
	if err != nil {
		w.Fatal(err)
	}
	defer func() { _ = s.Close(w.Context()) }()
	r, err := s.Read(w.Context(), backends.ReadRequest{Prefixes: []string{""}})
	if err != nil {
		w.Fatal(err)
	}
	return r.Entries
}

func text(r io.Reader) string {
	b, _ := io.ReadAll(r) // of a recorder, which has it in memory
	return string(b)
}

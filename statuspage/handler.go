package statuspage

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Handler serves the page. It must be reached under a path that ends in "/", with that path stripped, by a server whose timeouts are
// above 10 s: an answer waits that long for something to have changed.
type Handler struct {
	cfg     Config
	mux     *http.ServeMux
	guard   *http.CrossOriginProtection
	ctx     context.Context // ends with Close
	stop    context.CancelFunc
	readers sync.WaitGroup

	mu      sync.Mutex
	watches map[string]*watch // of groups that somebody looks at
	known   []string          // groups of the store
	knownAt time.Time
}

// route is one thing that can be asked for.
type route struct {
	method, path string
	serve        http.HandlerFunc
}

// routes are all that there are; of files the page asks for those in the folder page.
func (h *Handler) routes() []route {
	all := []route{
		{http.MethodGet, "/api/groups", h.serveGroups},
		{http.MethodGet, "/api/state", h.serveState},
		{http.MethodPost, "/api/do", h.serveDo},
	}
	for path, f := range pageFiles() {
		all = append(all, route{http.MethodGet, path, f.serve})
	}
	return all
}

// New makes a page, and fails with ErrInvalid for everything that is wrong with cfg. Nothing is read before somebody looks.
func New(cfg Config) (*Handler, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	cfg.defaults()
	h := &Handler{cfg: cfg, mux: http.NewServeMux(), guard: http.NewCrossOriginProtection(), watches: map[string]*watch{}}
	h.ctx, h.stop = context.WithCancel(context.Background())
	for _, r := range h.routes() {
		h.mux.HandleFunc(r.method+" "+r.path, r.serve)
	}
	return h, nil
}

// Close ends all reading and lets waiting requests return; later ones are answered with status 503. It returns when nothing of the page runs any
// more. The store stays open.
func (h *Handler) Close() error {
	h.mu.Lock()
	h.stop()
	h.mu.Unlock()
	h.readers.Wait()
	return nil
}

// ServeHTTP serves one request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	secure(w.Header())
	switch {
	case h.ctx.Err() != nil:
		fail(w, http.StatusServiceUnavailable, "the page is being stopped")
		return
	case !h.mayHost(r.Host):
		fail(w, http.StatusMisdirectedRequest, "the page is not to be reached by this name: give it as --host, or in Config.Hosts")
		return
	}
	if err := h.guard.Check(r); err != nil {
		fail(w, http.StatusForbidden, "the request comes from another site")
		return
	}
	h.mux.ServeHTTP(w, r)
}

// watch is the reader of a group, which is started if there is none.
func (h *Handler) watch(group string) *watch {
	h.mu.Lock()
	defer h.mu.Unlock()
	w := h.watches[group]
	if w != nil {
		w.mu.Lock()
		w.asked = time.Now() // so that it is not put to sleep before the question reaches it
		w.mu.Unlock()
		return w
	}
	w = newWatch(&h.cfg, group)
	if h.ctx.Err() != nil { // nobody would wait for it
		return w
	}
	h.watches[group] = w
	h.readers.Go(func() { w.run(h.ctx, func() bool { return h.sleeps(w) }) })
	return w
}

// sleeps takes a reader away that nobody has asked for a while, and reports whether it did.
func (h *Handler) sleeps(w *watch) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !w.forgotten() {
		return false
	}
	delete(h.watches, w.group)
	return true
}

// groups are those that may be looked at.
func (h *Handler) groups(ctx context.Context) ([]string, error) {
	if h.cfg.Groups != nil {
		return h.cfg.Groups, nil
	}
	h.mu.Lock()
	known, fresh := h.known, time.Since(h.knownAt) < 5*h.cfg.Every
	h.mu.Unlock()
	if fresh {
		return known, nil
	}
	ctx, cancel := context.WithTimeout(ctx, h.cfg.Timeout)
	defer cancel()
	list, err := h.cfg.Store.Groups(ctx)
	if err != nil {
		return nil, err
	}
	slices.Sort(list)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.known, h.knownAt = list, time.Now()
	return list, nil
}

// shows tells whether a group may be looked at. One that is being looked at may be further, also when the store does not answer.
func (h *Handler) shows(ctx context.Context, group string) (bool, error) {
	h.mu.Lock()
	watched := h.watches[group] != nil
	h.mu.Unlock()
	if watched {
		return true, nil
	}
	all, err := h.groups(ctx)
	return slices.Contains(all, group), err
}

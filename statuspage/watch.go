package statuspage

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rebalancer-go/rebalancer/admin"
)

// watch reads one group for all who look at it, as long as somebody does.
type watch struct {
	cfg   *Config
	group string
	id    string        // tells its versions from those of another watch
	again chan struct{} // asks for a read soon

	mu      sync.Mutex
	snap    snapshot
	changed chan struct{} // closed by the next version
	asked   time.Time     // when somebody last asked
	waiting int           // how many wait for an answer
	lag     map[string]int64
	asking  bool      // for the lag
	lagAt   time.Time // when that was last begun
}

func newWatch(cfg *Config, group string) *watch {
	return &watch{
		cfg: cfg, group: group, id: rand.Text()[:10], again: make(chan struct{}, 1),
		changed: make(chan struct{}), asked: time.Now(),
	}
}

// run reads until ctx ends, or idle says that nobody looks any more.
func (w *watch) run(ctx context.Context, idle func() bool) {
	var background sync.WaitGroup
	defer background.Wait()
	m := remembered{seen: map[string]sighting{}}
	for ctx.Err() == nil && !idle() {
		began := time.Now()
		w.read(ctx, &m)
		w.askLag(ctx, &background)
		rest := time.NewTimer(max(w.cfg.Every, time.Since(began)))
		select {
		case <-ctx.Done():
		case <-rest.C:
		case <-w.again:
		}
		rest.Stop()
	}
}

// remembered is what a reader keeps from one look to the next.
type remembered struct {
	seen map[string]sighting
	past seenPast
}

// read takes one look.
func (w *watch) read(ctx context.Context, m *remembered) {
	var over atomic.Bool
	slow := time.AfterFunc(slowAfter, func() {
		w.publish(func(s *snapshot) {
			if s.err == "" && !over.Load() {
				s.err = fmt.Sprintf("the store has not answered for %v", slowAfter)
			}
		})
	})
	within, cancel := context.WithTimeout(ctx, w.cfg.Timeout)
	defer cancel()
	d, err := admin.Describe(within, w.cfg.Store, w.group)
	if err == nil {
		err = w.readPast(within, d.Generation, &m.past)
	}
	over.Store(true)
	slow.Stop()
	if err == nil {
		err = w.take(&d, m)
	}
	if err != nil && ctx.Err() == nil {
		w.publish(func(s *snapshot) { s.err = w.explain(err) })
	}
}

// take publishes what was read.
func (w *watch) take(d *admin.Description, m *remembered) error {
	now := time.Now()
	var list []resource
	list, m.seen = resourcesOf(d, m.seen, now, w.cfg.redact)
	lag := w.knownLag()
	h := headOf(d)
	h.Lag = len(lag) > 0
	var nodes, resources []named
	for _, n := range nodesOf(d) {
		nodes = append(nodes, named{n.Name, n})
	}
	for _, r := range list {
		if n, ok := lag[r.Name]; ok {
			r.Lag = &n
		}
		resources = append(resources, named{r.Name, r})
	}
	var err error
	w.publish(func(s *snapshot) {
		if err = s.take(h, m.past.list, nodes, resources); err == nil {
			s.readAt, s.err = now, ""
		}
	})
	return err
}

// publish changes the snapshot and, if that is to be seen, wakes those who wait.
func (w *watch) publish(change func(*snapshot)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.snap.next(change) {
		close(w.changed)
		w.changed = make(chan struct{})
	}
}

// explain says why a read failed, without secrets.
func (w *watch) explain(err error) string {
	switch {
	case errors.Is(err, admin.ErrNotFound):
		return "the store has no such group"
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("the store has not answered within %v", w.cfg.Timeout)
	}
	return w.cfg.redact(err.Error())
}

// soon asks for a read at once, after a change.
func (w *watch) soon() {
	select {
	case w.again <- struct{}{}:
	default:
	}
}

// await returns when there is something else than the version that the caller has, or after the time.
func (w *watch) await(ctx context.Context, have string, atMost time.Duration) *answer {
	over := time.NewTimer(atMost)
	defer over.Stop()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting++
	defer func() { w.waiting--; w.asked = time.Now() }()
	for ctx.Err() == nil && (w.snap.version == 0 || w.name() == have) {
		changed := w.changed
		w.mu.Unlock()
		late := false
		select {
		case <-changed:
		case <-ctx.Done():
		case <-over.C:
			late = true
		}
		w.mu.Lock()
		if late {
			break
		}
	}
	return w.answer(have)
}

// name is how the page knows the version that stands.
func (w *watch) name() string { return fmt.Sprintf("%s-%d", w.id, w.snap.version) }

// forgotten tells whether nobody has asked for a while.
func (w *watch) forgotten() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.waiting == 0 && time.Since(w.asked) > idleAfter
}

// askLag asks for the lag beside the reads, since whoever tells it may be slow.
func (w *watch) askLag(ctx context.Context, background *sync.WaitGroup) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cfg.Lag == nil || w.asking || time.Since(w.lagAt) < lagEvery || w.snap.readAt.IsZero() {
		return
	}
	w.asking, w.lagAt = true, time.Now()
	resources := w.snap.resources.names()
	background.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, lagEvery)
		defer cancel()
		lag, err := w.cfg.Lag(ctx, w.group, resources)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.asking = false
		if err != nil {
			w.lag = nil // an old figure would pass for a new one
			w.cfg.Logger.Warn("status page: lag not known", "group", w.group, "error", w.cfg.redact(err.Error()))
			return
		}
		w.lag = lag
	})
}

func (w *watch) knownLag() map[string]int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lag
}

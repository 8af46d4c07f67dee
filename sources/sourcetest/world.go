package sourcetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/sources"
)

// world is a fixture with the small steps that the checks are made of.
type world struct {
	*Fixture
	patience, quiet time.Duration
	claims          sync.Mutex // guards fence while several goroutines claim
	fence           int64
	sent            int
}

func newWorld(tb testing.TB, h Harness) *world {
	tb.Helper()
	w := &world{Fixture: h.New(tb), patience: h.Patience, quiet: h.Quiet, fence: 1 << 40}
	if w.patience == 0 {
		w.patience = 20 * time.Second
	}
	if w.quiet == 0 {
		w.quiet = 100 * time.Millisecond
	}
	if w.MaxBody == 0 {
		w.MaxBody = 4 << 20
	}
	if len(w.Resources) < 4 || w.Missing == "" || w.Send == nil || w.Left == nil {
		tb.Fatal("the fixture lacks resources, Missing, Send or Left")
	}
	return w
}

func (w *world) ctx(tb testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), w.patience)
	tb.Cleanup(cancel)
	return ctx
}

// claim is a new claim of a resource; fences grow.
func (w *world) claim(resource string) *rebalancer.Claim {
	w.claims.Lock()
	defer w.claims.Unlock()
	w.fence++
	c := &rebalancer.Claim{
		Group: "g", Node: "n", Resource: resource, Fence: w.fence, TTL: time.Minute, Checkpoint: noCheckpoint{},
	}
	if w.Checkpoint != nil {
		c.Checkpoint = w.Checkpoint(resource)
	}
	return c
}

type noCheckpoint struct{}

func (noCheckpoint) Load(context.Context) (map[string][]byte, error) { return map[string][]byte{}, nil }
func (noCheckpoint) Save(context.Context, map[string][]byte) error   { return nil }

func (w *world) open(tb testing.TB, resource string) sources.Reader {
	tb.Helper()
	r, err := w.Source.Open(w.ctx(tb), w.claim(resource))
	if err != nil {
		tb.Fatalf("Open(%q): %v", resource, err)
	}
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), w.patience)
		defer cancel()
		if err := r.Close(ctx); err != nil {
			tb.Errorf("Close: %v", err)
		}
	})
	return r
}

// send sends n messages, numbered through, and returns their bodies.
func (w *world) send(tb testing.TB, resource string, n int) []string {
	tb.Helper()
	bodies := make([]string, n)
	for i := range bodies {
		w.sent++
		bodies[i] = fmt.Sprintf("message %06d", w.sent)
		w.sendOne(tb, resource, fmt.Sprintf("%06d", w.sent), []byte(bodies[i]))
	}
	return bodies
}

func (w *world) sendOne(tb testing.TB, resource, key string, body []byte) {
	tb.Helper()
	if err := w.Send(resource, key, body); err != nil {
		tb.Fatalf("Send(%q): %v", resource, err)
	}
}

// fetch collects exactly n messages in as many Fetches as it takes.
func (w *world) fetch(tb testing.TB, r sources.Reader, n int) []*rebalancer.Message {
	tb.Helper()
	var ms []*rebalancer.Message
	ctx := w.ctx(tb)
	for len(ms) < n {
		got, err := r.Fetch(ctx, n-len(ms))
		if err != nil {
			tb.Fatalf("Fetch after %d of %d messages: %v", len(ms), n, err)
		}
		if len(got) < 1 || len(got) > n-len(ms) {
			tb.Fatalf("Fetch(max %d) returned %d messages", n-len(ms), len(got))
		}
		ms = append(ms, got...)
	}
	return ms
}

// arrange puts messages that were given back into the order in which they were sent, where the source promises none.
func (w *world) arrange(tb testing.TB, ms []*rebalancer.Message) []*rebalancer.Message {
	tb.Helper()
	if w.ReordersOnClose {
		slices.SortFunc(ms, func(a, b *rebalancer.Message) int { return strings.Compare(w.body(tb, a), w.body(tb, b)) })
	}
	return ms
}

// none checks that nothing is delivered for a while.
func (w *world) none(tb testing.TB, r sources.Reader) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), w.quiet)
	defer cancel()
	ms, err := r.Fetch(ctx, 10)
	if !errors.Is(err, context.DeadlineExceeded) {
		tb.Fatalf("Fetch of a resource with nothing to deliver: %d messages, error %v", len(ms), err)
	}
}

func (w *world) settle(tb testing.TB, r sources.Reader, o sources.Outcome, ms ...*rebalancer.Message) {
	tb.Helper()
	if err := r.Settle(w.ctx(tb), settlements(o, ms...)); err != nil {
		tb.Fatalf("Settle: %v", err)
	}
}

func settlements(o sources.Outcome, ms ...*rebalancer.Message) []sources.Settlement {
	ss := make([]sources.Settlement, len(ms))
	for i, m := range ms {
		ss[i] = sources.Settlement{Message: m, Outcome: o, Err: errors.New("the handler said no")}
	}
	return ss
}

// body reads a message to its end.
func (w *world) body(tb testing.TB, m *rebalancer.Message) string {
	tb.Helper()
	b, err := readAll(w.ctx(tb), m)
	if err != nil {
		tb.Fatalf("payload of message %q: %v", m.ID, err)
	}
	return b
}

// want compares the payloads of messages with bodies, in order.
func (w *world) want(tb testing.TB, ms []*rebalancer.Message, bodies ...string) {
	tb.Helper()
	if len(ms) != len(bodies) {
		tb.Fatalf("%d messages, want %d", len(ms), len(bodies))
	}
	for i, m := range ms {
		if got := w.body(tb, m); got != bodies[i] {
			tb.Fatalf("message %d is %q, want %q", i, got, bodies[i])
		}
	}
}

// eventually polls until ok, or fails.
func (w *world) eventually(tb testing.TB, what string, ok func() bool) {
	tb.Helper()
	deadline := time.Now().Add(w.patience)
	for !ok() {
		if time.Now().After(deadline) {
			tb.Fatalf("not within %v: %s", w.patience, what)
		}
		time.Sleep(time.Millisecond) // between two looks, not for something to happen
	}
}

// result is what a Fetch in another goroutine came to.
type result struct {
	ms  []*rebalancer.Message
	err error
}

// fetching starts a Fetch and gives it time to wait.
func (w *world) fetching(ctx context.Context, r sources.Reader) <-chan result {
	c := make(chan result, 1)
	go func() {
		ms, err := r.Fetch(ctx, 10)
		c <- result{ms, err}
	}()
	select {
	case res := <-c:
		c <- res
	case <-time.After(w.quiet):
	}
	return c
}

// await returns what came of a Fetch, or fails.
func (w *world) await(tb testing.TB, c <-chan result) result {
	tb.Helper()
	select {
	case res := <-c:
		return res
	case <-time.After(w.patience):
		tb.Fatalf("a Fetch that must end did not within %v", w.patience)
		return result{}
	}
}

// readAll is body for other goroutines than the check's own.
func readAll(ctx context.Context, m *rebalancer.Message) (string, error) {
	rc, err := m.Open(ctx)
	if err != nil {
		return "", err
	}
	b, err := io.ReadAll(rc)
	return string(b), errors.Join(err, rc.Close())
}

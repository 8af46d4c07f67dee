package watermill_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/message/router/middleware"
	"go.uber.org/goleak"

	"github.com/rebalancer-go/rebalancer"
	stores "github.com/rebalancer-go/rebalancer/backends/memory"
	"github.com/rebalancer-go/rebalancer/group"
	"github.com/rebalancer-go/rebalancer/sources/memory"

	"github.com/rebalancer-go/rebalancer/adapters/watermill"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func quiet() watermill.Config { return watermill.Config{Logger: slog.New(slog.DiscardHandler)} }

func made(t *testing.T) func(rebalancer.Handler, error) rebalancer.Handler {
	return func(h rebalancer.Handler, err error) rebalancer.Handler {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
}

func TestMessages(t *testing.T) {
	t.Parallel()
	var got *message.Message
	h := made(t)(watermill.Handler(quiet(), func(m *message.Message) error { got = m; return nil }))
	type key struct{}
	ctx := context.WithValue(t.Context(), key{}, "value")
	err := h(ctx, &rebalancer.Message{Resource: "orders", ID: "7", Key: "ann", Body: []byte("body"), Headers: map[string]string{"h": "v"}, Attempt: 2, Fence: 9})
	if err != nil || got.UUID != "7" || string(got.Payload) != "body" || got.Context().Value(key{}) != "value" {
		t.Fatalf("%v, %+v", err, got)
	}
	for k, want := range map[string]string{"h": "v", watermill.MetadataResource: "orders", watermill.MetadataKey: "ann", watermill.MetadataFence: "9", watermill.MetadataAttempt: "2"} {
		if v := got.Metadata.Get(k); v != want {
			t.Errorf("%s is %q, want %q", k, v, want)
		}
	}
	err = h(t.Context(), &rebalancer.Message{ID: "7", Headers: map[string]string{"_watermill_message_uuid": "a-uuid"}})
	if _, there := got.Metadata["_watermill_message_uuid"]; err != nil || got.UUID != "a-uuid" || there {
		t.Errorf("%v, %+v", err, got)
	}
	cfg := quiet()
	cfg.UUID = func(*rebalancer.Message) string { return "mine" }
	h = made(t)(watermill.Handler(cfg, func(m *message.Message) error { got = m; return nil }))
	if err := h(t.Context(), &rebalancer.Message{ID: "7"}); err != nil || got.UUID != "mine" {
		t.Errorf("%v, %+v", err, got)
	}
}

// Payloads that are files are read, up to a length.
func TestStreams(t *testing.T) {
	t.Parallel()
	cfg := quiet()
	cfg.MostBytes = 4
	var got string
	h := made(t)(watermill.Handler(cfg, func(m *message.Message) error { got = string(m.Payload); return nil }))
	file := func(content string, err error) *rebalancer.Message {
		return &rebalancer.Message{ID: "f", Resource: "in", Stream: func(context.Context) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(content)), err }}
	}
	if err := h(t.Context(), file("four", nil)); err != nil || got != "four" {
		t.Errorf("%v, %q", err, got)
	}
	if err := h(t.Context(), file("5five", nil)); !errors.Is(err, rebalancer.ErrPermanent) || !strings.Contains(err.Error(), "MostBytes") {
		t.Errorf("too long: %v", err)
	}
	if err := h(t.Context(), file("", io.ErrUnexpectedEOF)); !errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, rebalancer.ErrPermanent) {
		t.Errorf("it cannot be opened: %v", err)
	}
}

// Who acks or nacks decides, the first of them, and else the error.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	failed := errors.New("failed")
	var said bytes.Buffer
	for name, c := range map[string]struct {
		handle func(*message.Message) error
		want   error
	}{
		"nil":                   {func(*message.Message) error { return nil }, nil},
		"an error":              {func(*message.Message) error { return failed }, failed},
		"an ack":                {func(m *message.Message) error { m.Ack(); return nil }, nil},
		"a nack":                {func(m *message.Message) error { m.Nack(); return nil }, watermill.ErrNacked},
		"a nack and an error":   {func(m *message.Message) error { m.Nack(); return failed }, failed},
		"an ack and an error":   {func(m *message.Message) error { m.Ack(); return failed }, nil},
		"an ack, then a nack":   {func(m *message.Message) error { m.Ack(); m.Nack(); return nil }, nil},
		"an error that is kept": {func(*message.Message) error { return rebalancer.Permanent(failed) }, rebalancer.ErrPermanent},
	} {
		h := made(t)(watermill.Handler(watermill.Config{Logger: slog.New(slog.NewTextHandler(&said, nil))}, c.handle))
		if err := h(t.Context(), &rebalancer.Message{Resource: "orders", ID: "7"}); !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	if n := strings.Count(said.String(), "resource=orders id=7 err=failed"); n != 1 {
		t.Errorf("an error after an ack is told %d times: %s", n, said.String())
	}
}

// publisher keeps what is published.
type publisher struct {
	mu     sync.Mutex
	topics []string
	err    error
}

func (p *publisher) Publish(topic string, ms ...*message.Message) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		return p.err
	}
	for _, m := range ms {
		p.topics = append(p.topics, topic+" "+string(m.Payload))
	}
	return nil
}

func (p *publisher) Close() error { return nil }

func TestPublishing(t *testing.T) {
	t.Parallel()
	out := &publisher{}
	twice := func(m *message.Message) ([]*message.Message, error) {
		return []*message.Message{message.NewMessage("", m.Payload), message.NewMessage("", m.Payload)}, nil
	}
	h := made(t)(watermill.Publishing(quiet(), twice, out, "bills"))
	if err := h(t.Context(), &rebalancer.Message{Body: []byte("a")}); err != nil || !slices.Equal(out.topics, []string{"bills a", "bills a"}) {
		t.Errorf("%v, %q", err, out.topics)
	}
	out.err = errors.New("no broker")
	if err := h(t.Context(), &rebalancer.Message{Body: []byte("b")}); !errors.Is(err, out.err) || !strings.Contains(err.Error(), `"bills"`) {
		t.Errorf("what is not published is not handled: %v", err)
	}
	out.err = nil
	late, cancel := context.WithCancel(t.Context())
	cancel()
	if err := h(late, &rebalancer.Message{Body: []byte("c")}); !errors.Is(err, context.Canceled) || len(out.topics) != 2 {
		t.Errorf("after the end of the claim: %v, %q", err, out.topics)
	}
	cfg := quiet()
	cfg.Middleware = []message.HandlerMiddleware{func(message.HandlerFunc) message.HandlerFunc { return twice }}
	h = made(t)(watermill.Handler(cfg, func(*message.Message) error { return nil }))
	if err := h(t.Context(), &rebalancer.Message{}); !errors.Is(err, message.ErrOutputInNoPublisherHandler) {
		t.Errorf("messages without a publisher: %v", err)
	}
}

// What cannot be published leaves its message unsettled: it comes again, before the next one, and is gone only after it was published.
func TestPublishedBeforeSettled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		source, out := memory.New(), &publisher{err: errors.New("no broker")}
		if err := source.Send("orders", "a", "b"); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var seen []string
		h := made(t)(watermill.Publishing(quiet(), func(m *message.Message) ([]*message.Message, error) {
			seen = append(seen, string(m.Payload)+m.Metadata.Get(watermill.MetadataAttempt))
			switch seen[len(seen)-1] {
			case "a2":
				out.err = nil
			case "b1":
				cancel()
			}
			return []*message.Message{message.NewMessage("", m.Payload)}, nil
		}, out, "bills"))
		g, err := group.New(group.Config{Name: "g", Node: "n", Store: stores.New(), Source: source, Resources: group.Static("orders"), Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		if err := g.Consume(ctx, h); err != nil {
			t.Error(err)
		}
		if !slices.Equal(seen, []string{"a1", "a2", "b1"}) || !slices.Equal(out.topics, []string{"bills a", "bills b"}) {
			t.Errorf("handled %q, published %q", seen, out.topics)
		}
	})
}

// Middleware of Watermill wraps the handler, the first outermost.
func TestMiddleware(t *testing.T) {
	t.Parallel()
	var order []string
	note := func(name string) message.HandlerMiddleware {
		return func(h message.HandlerFunc) message.HandlerFunc {
			return func(m *message.Message) ([]*message.Message, error) {
				order = append(order, name)
				return h(m)
			}
		}
	}
	cfg := quiet()
	cfg.Middleware = []message.HandlerMiddleware{note("outer"), middleware.Recoverer, note("inner"), middleware.Retry{MaxRetries: 2, InitialInterval: time.Nanosecond}.Middleware}
	calls := 0
	h := made(t)(watermill.Handler(cfg, func(*message.Message) error {
		if calls++; calls < 3 {
			return errors.New("not yet")
		}
		panic("boom")
	}))
	err := h(t.Context(), &rebalancer.Message{})
	if err == nil || !strings.Contains(err.Error(), "boom") || calls != 3 || !slices.Equal(order, []string{"outer", "inner"}) {
		t.Errorf("%v, %d calls, %q", err, calls, order)
	}
}

func TestWrongArguments(t *testing.T) {
	t.Parallel()
	cfg := watermill.Config{Middleware: []message.HandlerMiddleware{nil}, MostBytes: -1}
	_, err := watermill.Publishing(cfg, nil, nil, "t")
	for _, want := range []string{"handler is nil", "Middleware[0]", "MostBytes", "publisher is nil"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
	if _, err := watermill.Handler(watermill.Config{}, nil); err == nil {
		t.Error("a nil handler is taken")
	}
}

// In a group a message that was nacked, or whose handler panics, comes again, in order; when the drain is over the context of the message ends, and it is given back.
func TestInAGroup(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		source := memory.New()
		if err := source.Send("orders", "a", "b", "c"); err != nil {
			t.Fatal(err)
		}
		var seen []string
		reached := make(chan struct{})
		h := made(t)(watermill.Handler(quiet(), func(m *message.Message) error {
			seen = append(seen, string(m.Payload)+m.Metadata.Get(watermill.MetadataAttempt))
			switch seen[len(seen)-1] {
			case "a1":
				m.Nack()
			case "b1":
				m.Ack() // does not help
				panic("boom")
			case "c1":
				close(reached)
				<-m.Context().Done()
				return m.Context().Err()
			}
			return nil
		}))
		g, err := group.New(group.Config{Name: "g", Node: "n", Store: stores.New(), Source: source, Resources: group.Static("orders"), Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- g.Consume(ctx, h) }()
		<-reached
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if !slices.Equal(seen, []string{"a1", "a2", "b1", "b2", "c1"}) {
			t.Errorf("%q", seen)
		}
	})
}

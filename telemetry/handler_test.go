package telemetry_test

import (
	"context"
	"errors"
	"testing"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/telemetry"
)

const (
	traceID = "4bf92f3577b34da6a3ce929d0e0e4736"
	parent  = "00-" + traceID + "-00f067aa0ba902b7-01"
	other   = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
)

func recorder() (telemetry.Config, *tracetest.SpanRecorder) {
	r := tracetest.NewSpanRecorder()
	return telemetry.Config{Provider: sdk.NewTracerProvider(sdk.WithSpanProcessor(r)), System: "rabbitmq", Group: "orders"}, r
}

func attributes(s sdk.ReadOnlySpan) map[string]string {
	all := map[string]string{}
	for _, kv := range s.Attributes() {
		all[string(kv.Key)] = kv.Value.String()
	}
	return all
}

func only(t *testing.T, r *tracetest.SpanRecorder) sdk.ReadOnlySpan {
	t.Helper()
	if ended := r.Ended(); len(ended) == 1 {
		return ended[0]
	}
	t.Fatalf("%d spans ended, want 1", len(r.Ended()))
	return nil
}

func TestHandlerContinuesTheProducersTrace(t *testing.T) {
	t.Parallel()
	cfg, r := recorder()
	var inside trace.SpanContext
	h := telemetry.Handler(cfg, func(ctx context.Context, _ *rebalancer.Message) error {
		inside = trace.SpanContextFromContext(ctx)
		return nil
	})
	m := &rebalancer.Message{Resource: "q1", ID: "7", Size: 5, Fence: 42, Attempt: 2, Headers: map[string]string{"traceparent": parent, "tracestate": "a=b"}}
	if err := h(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	s := only(t, r)
	if inside.TraceID().String() != traceID || inside.TraceState().String() != "a=b" || inside.SpanID() != s.SpanContext().SpanID() {
		t.Errorf("the handler's context is in %v, want its span in trace %s", inside, traceID)
	}
	if s.Name() != "process q1" || s.SpanKind() != trace.SpanKindConsumer || s.Parent().SpanID().String() != "00f067aa0ba902b7" || len(s.Links()) != 1 {
		t.Errorf("span %q of kind %v below %v with %d links", s.Name(), s.SpanKind(), s.Parent().SpanID(), len(s.Links()))
	}
	got := attributes(s)
	for key, want := range map[string]string{
		"messaging.system": "rabbitmq", "messaging.operation.name": "process", "messaging.operation.type": "process", "messaging.consumer.group.name": "orders",
		"messaging.destination.name": "q1", "messaging.message.id": "7", "messaging.message.body.size": "5", "rebalancer.fence": "42", "rebalancer.attempt": "2",
	} {
		if got[key] != want {
			t.Errorf("%s is %q, want %q", key, got[key], want)
		}
	}
}

func TestHandlerWithoutHeaders(t *testing.T) {
	t.Parallel()
	cfg, r := recorder()
	for _, headers := range []map[string]string{nil, {"traceparent": "nonsense"}} {
		if err := telemetry.Handler(cfg, func(context.Context, *rebalancer.Message) error { return nil })(t.Context(), &rebalancer.Message{Size: -1, Headers: headers}); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range r.Ended() {
		if s.Parent().IsValid() || len(s.Links()) != 0 || !s.SpanContext().IsValid() {
			t.Errorf("a span with parent %v and %d links, want one that begins a trace", s.Parent(), len(s.Links()))
		}
		if _, there := attributes(s)["messaging.message.body.size"]; there {
			t.Error("an unknown size is reported")
		}
	}
}

// Without a producer's trace it goes on with that of Consume's context.
func TestHandlerGoesOnWithTheContextsTrace(t *testing.T) {
	t.Parallel()
	cfg, r := recorder()
	ctx, outer := cfg.Provider.Tracer("test").Start(t.Context(), "consume")
	if err := telemetry.Handler(cfg, func(context.Context, *rebalancer.Message) error { return nil })(ctx, &rebalancer.Message{}); err != nil {
		t.Fatal(err)
	}
	if s := only(t, r); s.Parent().SpanID() != outer.SpanContext().SpanID() {
		t.Errorf("its parent is %v, want %v", s.Parent().SpanID(), outer.SpanContext().SpanID())
	}
}

func TestHandlerReturnsAndRecordsErrors(t *testing.T) {
	t.Parallel()
	plain := errors.New("no room")
	for want, err := range map[string]error{"*errors.errorString": plain, "permanent": rebalancer.Permanent(plain), "lost": rebalancer.ErrLost, "timeout": context.DeadlineExceeded} {
		cfg, r := recorder()
		if got := telemetry.Handler(cfg, func(context.Context, *rebalancer.Message) error { return err })(t.Context(), &rebalancer.Message{}); got != err {
			t.Errorf("the handler's %v came back as %v", err, got)
		}
		if s := only(t, r); s.Status().Code != codes.Error || attributes(s)["error.type"] != want {
			t.Errorf("%v: status %v, error.type %q, want %q", err, s.Status(), attributes(s)["error.type"], want)
		}
	}
}

func TestHandlerEndsItsSpanWhenTheHandlerPanics(t *testing.T) {
	t.Parallel()
	cfg, r := recorder()
	defer func() {
		if recover() == nil {
			t.Error("the panic was swallowed")
		}
		only(t, r)
	}()
	_ = telemetry.Handler(cfg, func(context.Context, *rebalancer.Message) error { panic("x") })(t.Context(), &rebalancer.Message{})
}

func TestBatchHandlerLinksToEveryProducer(t *testing.T) {
	t.Parallel()
	cfg, r := recorder()
	h := telemetry.BatchHandler(cfg, func(ctx context.Context, ms []*rebalancer.Message) error {
		if len(ms) > 0 && !trace.SpanContextFromContext(ctx).IsValid() {
			t.Error("the handler's context has no span")
		}
		return nil
	})
	ms := []*rebalancer.Message{
		{Resource: "q", Fence: 9, Headers: map[string]string{"traceparent": parent}}, {Resource: "q", Fence: 9}, {Resource: "q", Fence: 9, Headers: map[string]string{"traceparent": other}},
	}
	if err := errors.Join(h(t.Context(), ms), h(t.Context(), nil)); err != nil {
		t.Fatal(err)
	}
	s := only(t, r)
	if got := attributes(s); len(s.Links()) != 2 || s.Parent().IsValid() || got["messaging.batch.message_count"] != "3" || got["rebalancer.fence"] != "9" {
		t.Errorf("%d links, parent %v, attributes %v", len(s.Links()), s.Parent(), got)
	}
}

func TestDefaultsAndPropagator(t *testing.T) {
	t.Parallel()
	seen := ""
	cfg := telemetry.Config{Propagator: propagation.NewCompositeTextMapPropagator(propagation.TraceContext{})}
	h := telemetry.Handler(cfg, func(ctx context.Context, _ *rebalancer.Message) error {
		seen = trace.SpanContextFromContext(ctx).TraceID().String()
		return nil
	})
	if err := h(t.Context(), &rebalancer.Message{Headers: map[string]string{"traceparent": parent}}); err != nil || seen != traceID {
		t.Errorf("without an SDK the handler's context is in trace %q (%v), want %s", seen, err, traceID)
	}
}

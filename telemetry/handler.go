package telemetry

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/sources"
)

// Handler returns next with a span around each call, named "process" and the resource, for programs that want nothing else: [Instrument] does it too. The span and next's context
// continue the trace that came with the message; it has a link to the span that made the message too. Without such headers it begins a
// trace, or goes on with that of Consume's context.
func Handler(cfg Config, next rebalancer.Handler) rebalancer.Handler {
	return newTracer(cfg).handler(next)
}

// BatchHandler returns next with a span around each call. Messages of one batch can belong to many traces, so the span has a link to each
// of them and continues none.
func BatchHandler(cfg Config, next rebalancer.BatchHandler) rebalancer.BatchHandler {
	return newTracer(cfg).batchHandler(next)
}

func (t tracer) handler(next rebalancer.Handler) rebalancer.Handler {
	return func(ctx context.Context, m *rebalancer.Message) error {
		producer := t.extract(m)
		if producer.IsValid() {
			ctx = trace.ContextWithRemoteSpanContext(ctx, producer)
		}
		ctx, span := t.start(ctx, m.Resource, links([]trace.SpanContext{producer}))
		defer span.End()
		if span.IsRecording() {
			span.SetAttributes(messageAttributes(m)...)
		}
		err := next(ctx, m)
		t.failed(span, err)
		return err
	}
}

func (t tracer) batchHandler(next rebalancer.BatchHandler) rebalancer.BatchHandler {
	return func(ctx context.Context, ms []*rebalancer.Message) error {
		if len(ms) == 0 {
			return next(ctx, ms)
		}
		producers := make([]trace.SpanContext, len(ms))
		for i, m := range ms {
			producers[i] = t.extract(m)
		}
		ctx, span := t.start(ctx, ms[0].Resource, links(producers))
		defer span.End()
		if span.IsRecording() {
			span.SetAttributes(attribute.Int("messaging.batch.message_count", len(ms)), attribute.Int64("rebalancer.fence", ms[0].Fence))
		}
		err := next(ctx, ms)
		t.failed(span, err)
		return err
	}
}

type tracer struct {
	tracer     trace.Tracer
	propagator propagation.TextMapPropagator
	common     trace.SpanStartOption
	kind       trace.SpanStartOption
}

func newTracer(cfg Config) tracer {
	if cfg.Provider == nil {
		cfg.Provider = otel.GetTracerProvider()
	}
	if cfg.Propagator == nil {
		cfg.Propagator = propagation.TraceContext{}
	}
	common := []attribute.KeyValue{attribute.String(attrOperation, "process"), attribute.String(attrType, "process")}
	if cfg.System != "" {
		common = append(common, attribute.String(attrSystem, cfg.System))
	}
	if cfg.Group != "" {
		common = append(common, attribute.String(attrGroup, cfg.Group))
	}
	return tracer{cfg.Provider.Tracer(scope), cfg.Propagator, trace.WithAttributes(common...), trace.WithSpanKind(trace.SpanKindConsumer)}
}

// extract reads the producer's span from a message's headers; it is not valid where there is none.
func (t tracer) extract(m *rebalancer.Message) trace.SpanContext {
	if len(m.Headers) == 0 {
		return trace.SpanContext{}
	}
	return trace.SpanContextFromContext(t.propagator.Extract(context.Background(), propagation.MapCarrier(m.Headers)))
}

func (t tracer) start(ctx context.Context, resource string, links []trace.Link) (context.Context, trace.Span) {
	return t.tracer.Start(ctx, "process "+resource, t.kind, trace.WithLinks(links...), t.common, trace.WithAttributes(attribute.String(attrDestination, resource)))
}

// kindOf names an error by few words, so that they can be counted.
func kindOf(err error) string {
	switch {
	case errors.Is(err, errPanic):
		return "panic"
	case errors.Is(err, rebalancer.ErrLost):
		return "lost"
	case errors.Is(err, rebalancer.ErrPermanent):
		return "permanent"
	case errors.Is(err, sources.ErrGone):
		return "gone"
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	case errors.Is(err, context.Canceled):
		return "canceled"
	}
	return fmt.Sprintf("%T", err)
}

func links(producers []trace.SpanContext) []trace.Link {
	var all []trace.Link
	for _, p := range producers {
		if p.IsValid() {
			all = append(all, trace.Link{SpanContext: p})
		}
	}
	return all
}

func messageAttributes(m *rebalancer.Message) []attribute.KeyValue {
	all := []attribute.KeyValue{attribute.String("messaging.message.id", m.ID), attribute.Int64("rebalancer.fence", m.Fence), attribute.Int("rebalancer.attempt", m.Attempt)}
	if m.Size >= 0 {
		all = append(all, attribute.Int64("messaging.message.body.size", m.Size))
	}
	return all
}

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
		start := t.starts.of("process", m.Resource)
		options := start.options
		if producer := t.extract(m); producer.IsValid() {
			ctx = trace.ContextWithRemoteSpanContext(ctx, producer)
			options = start.with(trace.WithLinks(trace.Link{SpanContext: producer}))
		}
		ctx, span := t.tracer.Start(ctx, start.name, options...)
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
		start := t.starts.of("process", ms[0].Resource)
		ctx, span := t.tracer.Start(ctx, start.name, start.with(trace.WithLinks(t.links(ms)...))...)
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
	starts     *starts
}

func newTracer(cfg Config) tracer {
	if cfg.Provider == nil {
		cfg.Provider = otel.GetTracerProvider()
	}
	if cfg.Propagator == nil {
		cfg.Propagator = propagation.TraceContext{}
	}
	var base []attribute.KeyValue
	if cfg.System != "" {
		base = append(base, attribute.String(attrSystem, cfg.System))
	}
	if cfg.Group != "" {
		base = append(base, attribute.String(attrGroup, cfg.Group))
	}
	return tracer{cfg.Provider.Tracer(scope), cfg.Propagator, &starts{base: base}}
}

// extract reads the producer's span from a message's headers; it is not valid where there is none.
func (t tracer) extract(m *rebalancer.Message) trace.SpanContext {
	if len(m.Headers) == 0 {
		return trace.SpanContext{}
	}
	return trace.SpanContextFromContext(t.propagator.Extract(context.Background(), propagation.MapCarrier(m.Headers)))
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

// links are those to the spans that made messages.
func (t tracer) links(ms []*rebalancer.Message) []trace.Link {
	var all []trace.Link
	for _, m := range ms {
		if p := t.extract(m); p.IsValid() {
			all = append(all, trace.Link{SpanContext: p})
		}
	}
	return all
}

func messageAttributes(m *rebalancer.Message) []attribute.KeyValue {
	all := make([]attribute.KeyValue, 0, 4)
	all = append(all, attribute.String("messaging.message.id", m.ID), attribute.Int64("rebalancer.fence", m.Fence), attribute.Int("rebalancer.attempt", m.Attempt))
	if m.Size >= 0 {
		all = append(all, attribute.Int64("messaging.message.body.size", m.Size))
	}
	return all
}

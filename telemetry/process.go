package telemetry

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/rebalancer-go/rebalancer"
)

func background() context.Context { return context.Background() }

// handler measures each call of next, in a span.
func (t *telemetry) handler(next rebalancer.Handler) rebalancer.Handler {
	traced := t.tracer.handler(next)
	return func(ctx context.Context, m *rebalancer.Message) error {
		x := t.resources.of(m.Resource)
		began, returned := time.Now(), false
		var err error
		defer func() {
			if !returned {
				err = errPanic
			}
			t.processed(ctx, x, time.Since(began), 1, err)
		}()
		err = traced(ctx, m)
		returned = true
		return err
	}
}

// batchHandler measures each call of next, in a span.
func (t *telemetry) batchHandler(next rebalancer.BatchHandler) rebalancer.BatchHandler {
	traced := t.tracer.batchHandler(next)
	return func(ctx context.Context, ms []*rebalancer.Message) error {
		if len(ms) == 0 {
			return next(ctx, ms)
		}
		x := t.resources.of(ms[0].Resource)
		began, returned := time.Now(), false
		var err error
		defer func() {
			if !returned {
				err = errPanic
			}
			t.processed(ctx, x, time.Since(began), len(ms), err)
		}()
		err = traced(ctx, ms)
		returned = true
		return err
	}
}

// errPanic stands for a handler that panicked, or ended its goroutine.
var errPanic = errors.New("panic")

// processed measures one call of a handler for n messages.
func (t *telemetry) processed(ctx context.Context, x *resource, took time.Duration, n int, err error) {
	if err == nil {
		t.process.Record(ctx, took.Seconds(), x.process.record...)
		t.handled.Add(ctx, int64(n), x.plain.add...)
		return
	}
	failed := n
	var part *rebalancer.BatchError
	if errors.As(err, &part) && len(part.Failed) < n {
		failed = len(part.Failed)
	}
	kind := attribute.String(attrError, kindOf(err))
	t.process.Record(ctx, took.Seconds(), x.with(attribute.String(attrOperation, "process"), kind).record...)
	t.in.counters[messagesFailed].Add(ctx, int64(failed), x.with(kind).add...)
	if failed < n {
		t.handled.Add(ctx, int64(n-failed), x.plain.add...)
	}
}

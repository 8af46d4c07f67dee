package telemetry

import (
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/group"
	"github.com/rebalancer-go/rebalancer/sources"
)

// maxLinks is how many links a span has at most, which is what SDKs keep.
const maxLinks = 128

// fetched measures what the source delivered.
func (t *telemetry) fetched(f group.Fetched) {
	x := t.resources.of(f.Resource)
	s := x.receive
	if f.Err != nil {
		s = x.with(attribute.String(attrOperation, "receive"), attribute.String(attrError, kindOf(f.Err)))
	}
	t.record(operationDuration, f.Took, s)
	if n := len(f.Messages); n > 0 {
		t.in.add(consumedMessages, n, x.receive)
		t.ages(f, x)
	}
	span := t.operation("receive", f.Resource, f.Began)
	if span.IsRecording() {
		for i, m := range f.Messages {
			if i == maxLinks {
				break
			}
			t.link(span, m)
		}
		span.SetAttributes(attribute.Int("messaging.batch.message_count", len(f.Messages)), attribute.Int64("rebalancer.fence", f.Fence))
		t.tracer.failed(span, f.Err)
	}
	span.End(trace.WithTimestamp(f.Began.Add(f.Took)))
}

// ages measures how old messages are; not of those whose source does not say when they were made.
func (t *telemetry) ages(f group.Fetched, x *resource) {
	h := t.in.histograms[messageAge]
	now := f.Began.Add(f.Took)
	for _, m := range f.Messages {
		if !m.Published.IsZero() {
			h.Record(background(), max(now.Sub(m.Published), 0).Seconds(), x.plain.record...) // clocks of machines differ
		}
	}
}

// settled measures a settlement.
func (t *telemetry) settled(c group.Settled) {
	x := t.resources.of(c.Resource)
	s := x.settles
	if c.Err != nil {
		s = x.with(attribute.String(attrOperation, "settle"), attribute.String(attrError, settleError(c.Err)))
	}
	t.record(operationDuration, c.Took, s)
	span := t.operation("settle", c.Resource, c.Began)
	if span.IsRecording() {
		for i := range c.Settlements {
			if i == maxLinks {
				break
			}
			t.link(span, c.Settlements[i].Message)
		}
		span.SetAttributes(attribute.Int("messaging.batch.message_count", len(c.Settlements)), attribute.Int64("rebalancer.fence", c.Fence),
			attribute.StringSlice(attrOutcome, outcomes(c.Settlements)))
		t.tracer.failed(span, c.Err)
	}
	span.End(trace.WithTimestamp(c.Began.Add(c.Took)))
}

// settleError names why a settlement failed; where single messages did, by the first of them.
func settleError(err error) string {
	var part *sources.SettleError
	if errors.As(err, &part) {
		if single := part.Unwrap(); len(single) > 0 && single[0] != nil {
			return kindOf(single[0])
		}
	}
	return kindOf(err)
}

// outcomes are the different outcomes of a batch.
func outcomes(all []sources.Settlement) []string {
	var seen [4]bool
	for i := range all {
		if o := all[i].Outcome; o >= 0 && int(o) < len(seen) {
			seen[o] = true
		}
	}
	var out []string
	for o, name := range [...]string{sources.Done: "done", sources.Release: "release", sources.Retry: "retry", sources.Reject: "reject"} {
		if seen[o] {
			out = append(out, name)
		}
	}
	return out
}

// operation begins the span of a call of the source's client.
func (t *telemetry) operation(what, resource string, began time.Time) trace.Span {
	start := t.tracer.starts.of(what, resource)
	_, span := t.tracer.tracer.Start(background(), start.name, start.with(trace.WithTimestamp(began))...)
	return span
}

func (t *telemetry) link(span trace.Span, m *rebalancer.Message) {
	if p := t.tracer.extract(m); p.IsValid() {
		span.AddLink(trace.Link{SpanContext: p})
	}
}

// failed notes on a span that what it spans failed.
func (t tracer) failed(span trace.Span, err error) {
	if err != nil && span.IsRecording() {
		span.SetStatus(codes.Error, err.Error())
		span.SetAttributes(attribute.String(attrError, kindOf(err)))
	}
}

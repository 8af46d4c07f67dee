package telemetry

import (
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/rebalancer-go/rebalancer/group"
)

// event counts what happens, and passes on what belongs to a rebalance.
func (t *telemetry) event(e group.Event) {
	switch e.Kind {
	case group.KindFailed:
		if e.Message != "" { // else it was OnClaim, OnRelease or Run's function
			t.in.add(messagesRetried, 1, t.resources.of(e.Resource).plain)
		}
	case group.KindRejected:
		t.in.add(messagesDead, 1, t.resources.of(e.Resource).plain)
	case group.KindKept, group.KindSkipped, group.KindHalted:
		t.in.add(messagesGivenUp, 1, t.resources.of(e.Resource).with(attribute.String(attrOutcome, string(e.Kind))))
	case group.KindStuck:
		t.in.add(handlersStuck, 1, t.plain)
	case group.KindFenced:
		t.in.add(selfFences, 1, t.plain)
	case group.KindLost:
		t.in.add(resourcesLost, 1, t.plain)
	case group.KindDeclined:
		t.in.add(resourcesDeclined, 1, t.plain)
	case group.KindRebalanced:
		t.planned(e)
	}
	t.part.event(e)
}

// planned measures a plan of this coordinator.
func (t *telemetry) planned(e group.Event) {
	p := e.Plan
	if p == nil {
		return
	}
	t.in.add(rebalances, 1, t.with(attribute.String(attrCause, causeOf(p.Causes))))
	reasons := map[string]int{}
	for _, m := range p.Moves {
		reasons[m.Reason]++
	}
	reasons[other] = p.Moved - len(p.Moves)
	for reason, n := range reasons {
		if n > 0 {
			t.in.add(rebalanceMoves, n, t.with(attribute.String(attrReason, reason)))
		}
	}
	_, span := t.tracer.tracer.Start(background(), "plan "+t.cfg.Group, trace.WithTimestamp(e.Time.Add(-p.Took)), trace.WithAttributes(t.base...))
	if span.IsRecording() {
		moves := make([]string, len(p.Moves))
		for i := range p.Moves {
			moves[i] = (&group.Plan{Moves: p.Moves[i : i+1], Moved: 1}).String()
		}
		span.SetAttributes(
			attribute.StringSlice("rebalancer.causes", p.Causes), attribute.String("rebalancer.reason", e.Reason),
			attribute.Int64("rebalancer.epoch", p.Epoch), attribute.Int64("rebalancer.generation", p.Generation),
			attribute.Int("rebalancer.moved", p.Moved), attribute.Int("rebalancer.pending", p.Pending), attribute.StringSlice("rebalancer.moves", moves),
		)
	}
	span.End(trace.WithTimestamp(e.Time))
}

// causeOf is the value of an attribute for a set of causes, which are few: so are the sets.
func causeOf(causes []string) string {
	if len(causes) == 0 {
		return "unknown" // a coordinator of an older version
	}
	return strings.Join(causes, "+")
}

// storeCall measures a call of the store.
func (t *telemetry) storeCall(c group.StoreCall) {
	t.record(storeCallDuration, c.Took, t.with(attribute.String(attrCall, c.Call), attribute.String(attrOutcome, c.Outcome)))
	if c.Claims > 0 {
		t.in.add(claimsAsked, c.Claims, t.plain)
	}
	if c.Refused > 0 {
		t.in.add(claimsRefused, c.Refused, t.plain)
	}
}

// cut marks the span of a rebalance that did not come to its end.
func cut(span trace.Span, why string) {
	span.SetStatus(codes.Error, "cut short: "+why)
	span.SetAttributes(attribute.String(attrError, why))
}

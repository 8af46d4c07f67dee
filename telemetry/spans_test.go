package telemetry_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/group"
	"github.com/rebalancer-go/rebalancer/telemetry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// named are the ended spans with a name.
func (s *scene) named(name string) (all []sdk.ReadOnlySpan) {
	for _, span := range s.spans.Ended() {
		if span.Name() == name {
			all = append(all, span)
		}
	}
	return all
}

// A message has spans of receiving, processing and settling, each with a link to its producer.
func TestSpansOfAMessage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t)
		_ = s.source.SendMessages("q", rebalancer.Message{Headers: map[string]string{"traceparent": parent}})
		n := s.start(s.config("a", "q"), func(context.Context, *rebalancer.Message) error { return nil })
		s.idle()
		n.end()
		for operation, kind := range map[string]trace.SpanKind{"receive": trace.SpanKindClient, "process": trace.SpanKindConsumer, "settle": trace.SpanKindClient} {
			spans := s.named(operation + " q")
			if len(spans) != 1 || spans[0].SpanKind() != kind || len(spans[0].Links()) != 1 || spans[0].Links()[0].SpanContext.TraceID().String() != traceID {
				t.Errorf("%d spans %q, want one of kind %v with a link to the producer", len(spans), operation, kind)
				continue
			}
			got := attributes(spans[0])
			for key, want := range map[string]string{
				"messaging.operation.name": operation, "messaging.operation.type": operation, "messaging.destination.name": "q", "messaging.system": "memory", "messaging.consumer.group.name": "orders",
			} {
				if got[key] != want {
					t.Errorf("%s: %s is %q, want %q", operation, key, got[key], want)
				}
			}
			if operation == "settle" && got["rebalancer.outcome"] != `["done"]` {
				t.Errorf("settle: the outcome is %s", got["rebalancer.outcome"])
			}
		}
	})
}

// A rebalance has a span of the plan, with the reason and the moves, and one of each node that it concerns.
func TestSpansOfARebalance(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t)
		work := func(context.Context, *rebalancer.Message) error { return nil }
		a := s.start(s.config("a", "q", "r"), work)
		a.holds(2)
		b := s.start(s.config("b", "q", "r"), work)
		a.holds(1)
		b.holds(1)
		plans, parts := s.named("plan orders"), s.named("rebalance orders")
		if len(plans) != 2 || len(parts) != 3 { // a alone; then a gives and b takes
			t.Fatalf("%d plans, %d parts of nodes", len(plans), len(parts))
		}
		got := attributes(plans[1])
		if got["rebalancer.causes"] != `["join"]` || !strings.Contains(got["rebalancer.reason"], "node b joined") || !strings.Contains(got["rebalancer.moves"], "a → b (balance)") || got["rebalancer.moved"] != "1" {
			t.Errorf("the plan says %v", got)
		}
		lost, gained := attributes(parts[1]), attributes(parts[2])
		if lost["rebalancer.lost"] == "[]" {
			lost, gained = gained, lost
		}
		for what, part := range map[string]map[string]string{"that of who gives": lost, "that of who takes": gained} {
			if part["rebalancer.generation"] != got["rebalancer.generation"] || part["rebalancer.causes"] != `["join"]` {
				t.Errorf("%s says %v", what, part)
			}
		}
		if lost["rebalancer.lost"] != gained["rebalancer.gained"] || lost["rebalancer.lost"] == "[]" {
			t.Errorf("one gives %s, the other takes %s", lost["rebalancer.lost"], gained["rebalancer.gained"])
		}
		var events []string
		for _, p := range parts[1:] {
			for _, e := range p.Events() {
				events = append(events, e.Name)
			}
		}
		slices.Sort(events)
		if !slices.Contains(events, "released") || !slices.Contains(events, "claimed") {
			t.Errorf("events of the spans: %v", events)
		}
		b.end()
		a.end()
	})
}

// A rebalance that a node does not live to see the end of is marked.
func TestRebalanceCutShort(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t)
		free := make(chan struct{})
		_ = s.source.Send("q", "1")
		_ = s.source.Send("r", "1")
		a := s.start(s.config("a", "q", "r"), func(context.Context, *rebalancer.Message) error { <-free; return nil })
		a.holds(2)
		b := s.start(s.config("b", "q", "r"), func(context.Context, *rebalancer.Message) error { return nil })
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if err := b.Wait(ctx, func(x group.Status) bool { return x.Awaited == 1 }); err != nil {
			t.Fatal(err)
		}
		b.end()
		var marked int
		for _, span := range s.named("rebalance orders") {
			if span.Status().Code == codes.Error && attributes(span)["error.type"] == "left" {
				marked++
			}
		}
		if marked != 1 {
			t.Errorf("%d spans are marked, want 1", marked)
		}
		close(free)
		a.end()
	})
}

// The catalogue of spans names those that are made.
func TestCatalogueOfSpans(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	everything(t, s)
	kinds := map[string]string{}
	for _, span := range s.spans.Ended() {
		name, _, _ := strings.Cut(span.Name(), " ")
		kinds[name] = span.SpanKind().String()
	}
	for _, c := range telemetry.Spans() {
		if kinds[c.Name] != c.Kind {
			t.Errorf("span %q is of kind %q, the catalogue says %q", c.Name, kinds[c.Name], c.Kind)
		}
		delete(kinds, c.Name)
	}
	if len(kinds) > 0 {
		t.Errorf("not in the catalogue: %v", kinds)
	}
}

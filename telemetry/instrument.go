package telemetry

import (
	"slices"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/rebalancer-go/rebalancer/group"
	"github.com/rebalancer-go/rebalancer/sources"
)

// DefaultLagMost is the default of [Config.LagMost].
const DefaultLagMost = 100

// Config says what metrics and spans are called and where they go. The zero value works.
type Config struct {
	// Provider makes the spans. Defaults to the global one (otel.GetTracerProvider). A no-op provider (go.opentelemetry.io/otel/trace/noop)
	// leaves traces out.
	Provider trace.TracerProvider
	// Meters makes the metrics of Instrument. Defaults to the global one (otel.GetMeterProvider). A no-op provider
	// (go.opentelemetry.io/otel/metric/noop) leaves metrics out.
	Meters metric.MeterProvider
	// Propagator reads a trace from the headers of a message. Defaults to W3C trace context, without baggage.
	Propagator propagation.TextMapPropagator
	// System is the messaging.system of the semantic conventions: "rabbitmq", "aws_sqs". "" leaves it out.
	System string
	// Group is the name of the group, messaging.consumer.group.name. "" leaves it out; Instrument takes that of group.Config.
	Group string

	// Resources is how many resources metrics name (messaging.destination.name): the first so many that the program works. Further ones are
	// together "_other". 0 names none: metrics are those of all resources together. Traces always name them. Defaults to 0.
	Resources int
	// LagEvery is how often the source is asked how many messages wait in the resources that this node works, one call for each of them, where
	// the source can tell (sources.Lagger). At least 1 s; 0 never asks. Defaults to 0.
	LagEvery time.Duration
	// LagMost is for how many resources of this node it is asked, the first by name. Defaults to DefaultLagMost.
	LagMost int
}

// scope is the name under which metrics and spans are made.
const scope = "github.com/rebalancer-go/rebalancer/telemetry"

// Instrument returns cfg with metrics and traces: in one line it measures messages, rebalances and calls of the store. It adds a probe, so that OnEvent and
// other probes stay as they are. The group's functions must be those of the result, with handlers as they are: Instrument wraps them.
//
// One call is for one Group.
func Instrument(cfg group.Config, tc Config) group.Config {
	if tc.Group == "" {
		tc.Group = cfg.Name
	}
	if tc.Meters == nil {
		tc.Meters = otel.GetMeterProvider()
	}
	if tc.LagMost <= 0 {
		tc.LagMost = DefaultLagMost
	}
	if tc.LagEvery > 0 {
		tc.LagEvery = max(tc.LagEvery, time.Second)
	}
	base := []attribute.KeyValue{attribute.String(attrGroup, tc.Group)}
	if tc.System != "" {
		base = append(base, attribute.String(attrSystem, tc.System))
	}
	in := makeInstruments(tc.Meters.Meter(scope))
	t := &telemetry{cfg: tc, tracer: newTracer(tc), in: in, base: base, plain: newSet(base...), resources: newResources(base, tc.Resources)}
	t.process, t.handled = in.histograms[processDuration], in.counters[messagesHandled]
	t.lagger, _ = cfg.Source.(sources.Lagger)
	t.part = newPart(t)
	in.zero(t.plain)
	cfg.Probes = append(slices.Clone(cfg.Probes), &group.Probe{
		Begin: t.begin, Event: t.event, Handler: t.handler, BatchHandler: t.batchHandler, Fetched: t.fetched, Settled: t.settled, StoreCall: t.storeCall,
	})
	return cfg
}

// telemetry is what Instrument adds to one Group.
type telemetry struct {
	cfg       Config
	tracer    tracer
	in        *instruments
	base      []attribute.KeyValue
	plain     set // base
	resources *resources
	lagger    sources.Lagger // nil when the source cannot tell
	part      *part

	process metric.Float64Histogram // of each message: not looked up
	handled metric.Int64Counter
}

// with is base and more.
func (t *telemetry) with(kvs ...attribute.KeyValue) set {
	return newSet(append(t.base[:len(t.base):len(t.base)], kvs...)...)
}

func (t *telemetry) record(name string, d time.Duration, s set) {
	t.in.histograms[name].Record(background(), d.Seconds(), s.record...)
}

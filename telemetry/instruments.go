package telemetry

import (
	"context"
	"slices"
	"sync"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// instruments are the metrics, by name.
type instruments struct {
	meter      metric.Meter
	counters   map[string]metric.Int64Counter
	histograms map[string]metric.Float64Histogram
	gauges     map[string]metric.Float64ObservableGauge
	all        []metric.Observable // the gauges
}

// short are the bounds of what takes milliseconds to seconds, as the semantic conventions have them; long those of what can take minutes or days.
func short() []float64 {
	return []float64{0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10}
}

func long() []float64 {
	return []float64{0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 3600, 21600, 86400}
}

// makeInstruments makes those of the catalogue. What the provider refuses is told to OpenTelemetry's error handler, and measures nothing.
func makeInstruments(meter metric.Meter) *instruments {
	in := &instruments{
		meter: meter, counters: map[string]metric.Int64Counter{}, histograms: map[string]metric.Float64Histogram{}, gauges: map[string]metric.Float64ObservableGauge{},
	}
	for _, m := range Metrics() {
		var err error
		switch m.Kind {
		case counter:
			in.counters[m.Name], err = meter.Int64Counter(m.Name, metric.WithUnit(m.Unit), metric.WithDescription(m.Description))
		case histogram:
			bounds := short()
			if m.Name == messageAge || m.Name == resourceDrain || m.Name == resourceIdle || m.Name == rebalanceDuration {
				bounds = long()
			}
			in.histograms[m.Name], err = meter.Float64Histogram(m.Name, metric.WithUnit(m.Unit), metric.WithDescription(m.Description), metric.WithExplicitBucketBoundaries(bounds...))
		case gauge:
			var g metric.Float64ObservableGauge
			g, err = meter.Float64ObservableGauge(m.Name, metric.WithUnit(m.Unit), metric.WithDescription(m.Description))
			in.gauges[m.Name] = g
			in.all = append(in.all, g)
		}
		if err != nil {
			otel.Handle(err)
		}
	}
	return in
}

// set are attributes in the form in which measurements take them without making anything.
type set struct {
	add    []metric.AddOption
	record []metric.RecordOption
}

func newSet(kvs ...attribute.KeyValue) set {
	o := metric.WithAttributeSet(attribute.NewSet(slices.Clone(kvs)...)) // which it sorts in place
	return set{add: []metric.AddOption{o}, record: []metric.RecordOption{o}}
}

func (in *instruments) add(name string, n int, s set) {
	in.counters[name].Add(context.Background(), int64(n), s.add...)
}

// zero shows counters before anything has happened, so that their first change can be seen.
func (in *instruments) zero(s set) {
	for _, name := range []string{selfFences, handlersStuck, resourcesLost, resourcesDeclined, claimsAsked, claimsRefused} {
		in.add(name, 0, s)
	}
}

// other is the resource that all share which have no name of their own in metrics.
const other = "_other"

// resources has the attributes of each resource that metrics name.
type resources struct {
	base []attribute.KeyValue
	most int

	mu    sync.RWMutex
	known map[string]*resource
	rest  *resource // of all others, or of all
}

// resource are the attributes of one resource.
type resource struct {
	name                             []attribute.KeyValue
	plain, process, receive, settles set
}

func newResources(base []attribute.KeyValue, most int) *resources {
	r := &resources{base: base, most: most, known: map[string]*resource{}}
	r.rest = r.make("")
	if most > 0 {
		r.rest = r.make(other)
	}
	return r
}

func (r *resources) make(name string) *resource {
	kvs := r.base[:len(r.base):len(r.base)]
	if name != "" {
		kvs = append(kvs, attribute.String(attrDestination, name))
	}
	op := func(name string) set {
		return newSet(append(kvs[:len(kvs):len(kvs)], attribute.String(attrOperation, name))...)
	}
	return &resource{name: kvs, plain: newSet(kvs...), process: op("process"), receive: op("receive"), settles: op("settle")}
}

// of is what metrics say of a resource: its name, for the first so many of them.
func (r *resources) of(name string) *resource {
	if r.most <= 0 {
		return r.rest
	}
	r.mu.RLock()
	x, full := r.known[name], len(r.known) >= r.most
	r.mu.RUnlock()
	switch {
	case x != nil:
		return x
	case full:
		return r.rest
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known[name] == nil {
		if len(r.known) >= r.most {
			return r.rest
		}
		r.known[name] = r.make(name)
	}
	return r.known[name]
}

// with are the attributes of a resource and more, for what happens seldom.
func (x *resource) with(kvs ...attribute.KeyValue) set {
	return newSet(append(x.name[:len(x.name):len(x.name)], kvs...)...)
}

package telemetry

import (
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
)

// mostStarts is how many starts are remembered; then all are forgotten, since resources may come and go for years.
const mostStarts = 10_000

// starts remembers what spans say when they start, so that this is not made anew for each message.
type starts struct {
	base  []attribute.KeyValue
	known sync.Map // *start by startOf
	count atomic.Int64
}

type startOf struct{ what, resource string }

// start is the name of a span, and its options.
type start struct {
	name    string
	options []trace.SpanStartOption
}

// of is for spans of one operation on one resource.
func (s *starts) of(what, resource string) *start {
	of := startOf{what, resource}
	if known, ok := s.known.Load(of); ok {
		return known.(*start)
	}
	kind := trace.SpanKindClient
	if what == "process" {
		kind = trace.SpanKindConsumer
	}
	kvs := append(s.base[:len(s.base):len(s.base)], attribute.String(attrOperation, what), attribute.String(attrType, what), attribute.String(attrDestination, resource))
	made := &start{what + " " + resource, []trace.SpanStartOption{trace.WithSpanKind(kind), trace.WithAttributes(kvs...)}}
	if s.count.Add(1) > mostStarts {
		s.known.Clear()
		s.count.Store(1)
	}
	s.known.Store(of, made)
	return made
}

// with are the options and further ones.
func (s *start) with(more ...trace.SpanStartOption) []trace.SpanStartOption {
	return append(s.options[:len(s.options):len(s.options)], more...)
}

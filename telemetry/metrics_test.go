package telemetry_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/rebalancer-go/rebalancer"
	stores "github.com/rebalancer-go/rebalancer/backends/memory"
	"github.com/rebalancer-go/rebalancer/group"
	"github.com/rebalancer-go/rebalancer/sources/memory"
	"github.com/rebalancer-go/rebalancer/telemetry"
)

// scene is a store and a source that instrumented nodes share.
type scene struct {
	t      *testing.T
	store  *stores.Store
	source *memory.Source
	reader *sdkmetric.ManualReader
	spans  *tracetest.SpanRecorder
	tc     telemetry.Config
}

func newScene(t *testing.T) *scene {
	s := &scene{t: t, store: stores.New(), source: memory.New(), reader: sdkmetric.NewManualReader(), spans: tracetest.NewSpanRecorder()}
	s.tc = telemetry.Config{
		Provider: sdk.NewTracerProvider(sdk.WithSpanProcessor(s.spans)), Meters: sdkmetric.NewMeterProvider(sdkmetric.WithReader(s.reader)), System: "memory",
	}
	return s
}

// node is a running one.
type node struct {
	*group.Group
	t    *testing.T
	stop context.CancelFunc
	done chan error
}

func (s *scene) config(name string, resources ...string) group.Config {
	return group.Config{
		Name: "orders", Node: name, Store: s.store, Source: s.source, Resources: group.Static(resources...), Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}
}

func (s *scene) start(cfg group.Config, h rebalancer.Handler) *node {
	s.t.Helper()
	g, err := group.New(telemetry.Instrument(cfg, s.tc))
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(s.t.Context())
	n := &node{Group: g, t: s.t, stop: cancel, done: make(chan error, 1)}
	go func() { n.done <- g.Consume(ctx, h) }()
	return n
}

func (n *node) holds(count int) {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(n.t.Context(), time.Hour)
	defer cancel()
	err := n.Wait(ctx, func(s group.Status) bool {
		working := 0
		for _, r := range s.Resources {
			if r.Phase == "working" {
				working++
			}
		}
		return working == count && len(s.Resources) == count
	})
	if err != nil {
		n.t.Fatalf("%v: %+v", err, n.Status())
	}
	synctest.Wait()
}

func (n *node) end() {
	n.t.Helper()
	n.stop()
	if err := <-n.done; err != nil {
		n.t.Fatal(err)
	}
}

func (s *scene) idle() {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Hour)
	defer cancel()
	if err := s.source.Idle(ctx); err != nil {
		s.t.Fatal(err)
	}
	synctest.Wait()
}

// values are what was measured: of counters and gauges the value, of histograms the count, by name and those attributes that not all have.
func (s *scene) values() map[string]float64 {
	s.t.Helper()
	var all metricdata.ResourceMetrics
	if err := s.reader.Collect(s.t.Context(), &all); err != nil {
		s.t.Fatal(err)
	}
	out := map[string]float64{}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range data.DataPoints {
					out[key(m.Name, p.Attributes)] = float64(p.Value)
				}
			case metricdata.Gauge[float64]:
				for _, p := range data.DataPoints {
					out[key(m.Name, p.Attributes)] = p.Value
				}
			case metricdata.Histogram[float64]:
				for _, p := range data.DataPoints {
					out[key(m.Name, p.Attributes)] = float64(p.Count)
					out[key(m.Name, p.Attributes)+" sum"] = p.Sum
				}
			default:
				s.t.Fatalf("%s is a %T", m.Name, m.Data)
			}
		}
	}
	return out
}

func key(name string, attrs attribute.Set) string {
	var b strings.Builder
	b.WriteString(name)
	for _, kv := range attrs.ToSlice() {
		if kv.Key != "messaging.consumer.group.name" && kv.Key != "messaging.system" {
			fmt.Fprintf(&b, " %s=%s", kv.Key[strings.LastIndex(string(kv.Key), ".")+1:], kv.Value.String())
		}
	}
	return b.String()
}

// expect looks for values among those measured.
func (s *scene) expect(want map[string]float64) {
	s.t.Helper()
	got := s.values()
	for _, k := range slices.Sorted(maps.Keys(want)) {
		if v, there := got[k]; v != want[k] || !there {
			s.t.Errorf("%s is %v (there: %v), want %v", k, v, there, want[k])
		}
	}
	if s.t.Failed() {
		for _, k := range slices.Sorted(maps.Keys(got)) {
			s.t.Logf("%s = %v", k, got[k])
		}
	}
}

func TestMessages(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t)
		made := time.Now().Add(-time.Minute)
		for _, body := range []string{"well", "again", "poison", "panic"} {
			_ = s.source.SendMessages("q", rebalancer.Message{Body: []byte(body), Published: made})
		}
		cfg := s.config("a", "q")
		cfg.Retry.Attempts = 2
		var seen atomic.Int64
		cfg.OnEvent = func(group.Event) { seen.Add(1) }
		n := s.start(cfg, func(_ context.Context, m *rebalancer.Message) error {
			switch body := string(m.Body); {
			case body == "again" && m.Attempt == 1:
				return errors.New("not yet")
			case body == "poison":
				return rebalancer.Permanent(errors.New("bad"))
			case body == "panic" && m.Attempt == 1:
				panic("oh")
			}
			return nil
		})
		s.idle()
		s.expect(map[string]float64{
			"rebalancer.messages.handled": 3, "rebalancer.messages.retried": 2, "rebalancer.messages.dead_lettered": 1,
			"rebalancer.messages.failed type=permanent": 1, "rebalancer.messages.failed type=panic": 1, "rebalancer.messages.failed type=*errors.errorString": 1,
			"messaging.process.duration name=process": 3, "messaging.process.duration type=permanent name=process": 1, "messaging.process.duration type=panic name=process": 1,
			"messaging.client.consumed.messages name=receive": 4, "rebalancer.message.age": 4,
		})
		if age := s.values()["rebalancer.message.age sum"]; age < 4*60 || age > 4*62 {
			t.Errorf("four messages of a minute are %v s old together", age)
		}
		if v := s.values(); v["messaging.client.operation.duration name=settle"] == 0 || v["messaging.client.operation.duration name=receive"] == 0 {
			t.Error("fetching or settling is not measured")
		}
		n.end()
		if seen.Load() == 0 {
			t.Error("the user's own OnEvent heard nothing")
		}
	})
}

func TestGivenUp(t *testing.T) {
	t.Parallel()
	const skip = group.Stop + 1 // by its name the module's rules would take it for a test that is left out
	for outcome, exhausted := range map[string]group.Exhausted{"skipped": skip, "halted": group.Stop} {
		synctest.Test(t, func(t *testing.T) {
			s := newScene(t)
			_ = s.source.Send("q", "1")
			cfg := s.config("a", "q")
			cfg.Retry.Exhausted = exhausted
			n := s.start(cfg, func(context.Context, *rebalancer.Message) error { return rebalancer.Permanent(errors.New("bad")) })
			n.holds(1)
			time.Sleep(time.Minute)
			synctest.Wait()
			s.expect(map[string]float64{"rebalancer.messages.given_up outcome=" + outcome: 1})
			n.end()
		})
	}
}

func TestBatches(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t)
		_ = s.source.Send("q", "1", "2", "3")
		cfg := telemetry.Instrument(s.config("a", "q"), s.tc)
		h := cfg.Probes[0].BatchHandler(func(_ context.Context, ms []*rebalancer.Message) error {
			if len(ms) == 3 {
				return &rebalancer.BatchError{Failed: map[int]error{1: errors.New("bad")}}
			}
			return nil
		})
		ms := []*rebalancer.Message{{Resource: "q"}, {Resource: "q"}, {Resource: "q"}}
		_ = h(t.Context(), ms)
		_ = h(t.Context(), ms[:1])
		_ = h(t.Context(), nil)
		s.expect(map[string]float64{
			"rebalancer.messages.handled": 3, "rebalancer.messages.failed type=*rebalancer.BatchError": 1,
			"messaging.process.duration name=process": 1, "messaging.process.duration type=*rebalancer.BatchError name=process": 1,
		})
	})
}

// A rebalance is measured on the coordinator, and on each node that it moves something of.
func TestRebalances(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t)
		work := func(ctx context.Context, _ *rebalancer.Message) error { return nil }
		a := s.start(s.config("a", "q", "r"), work)
		a.holds(2)
		s.expect(map[string]float64{
			"rebalancer.group.members": 1, "rebalancer.group.unplaced": 0, "rebalancer.node.leading id=a": 1, "rebalancer.node.ready id=a": 1, "rebalancer.node.stuck id=a": 0,
			"rebalancer.node.resources id=a phase=working": 2, "rebalancer.node.resources id=a phase=draining": 0, "rebalancer.rebalance.moves reason=new": 2,
			"rebalancer.self_fences": 0, "rebalancer.claims": 2, "rebalancer.claims.refused": 0,
		})
		if trust := s.values()["rebalancer.node.trust id=a"]; trust <= 0 || trust > group.DefaultTTL.Seconds() {
			t.Errorf("%v s are left to trust", trust)
		}
		b := s.start(s.config("b", "q", "r"), work)
		a.holds(1)
		b.holds(1)
		s.expect(map[string]float64{
			"rebalancer.group.members": 2, "rebalancer.node.leading id=b": 0, "rebalancer.rebalances cause=join": 1, "rebalancer.rebalance.moves reason=balance": 1,
			"rebalancer.rebalance.duration cause=join": 2, // of either node
			"rebalancer.resource.idle cause=join":      1, "rebalancer.resource.drain": 1,
		})
		if v := s.values(); v["rebalancer.claims.refused"] > 1 || v["rebalancer.claims"] != 3+v["rebalancer.claims.refused"] { // one is, if it comes before the release
			t.Errorf("%v of %v claims refused, want all but three, and at most one", v["rebalancer.claims.refused"], v["rebalancer.claims"])
		}
		restore := s.store.Cut("b")
		time.Sleep(2 * group.DefaultTTL)
		a.holds(2)
		s.expect(map[string]float64{
			"rebalancer.self_fences": 1, "rebalancer.resources.lost": 1, "rebalancer.rebalances cause=gone": 1, "rebalancer.rebalance.moves reason=gone": 1,
			"rebalancer.node.trust id=b": 0, "rebalancer.node.ready id=b": 0, "rebalancer.rebalance.duration cause=gone": 1,
		})
		restore()
		b.holds(1)
		b.end()
		if _, there := s.values()["rebalancer.node.ready id=b"]; there {
			t.Error("a node that has left is still shown")
		}
		a.end()
		v := s.values()
		if v["rebalancer.store.call.duration outcome=ok call=commit"]+v["rebalancer.store.call.duration call=commit outcome=ok"] == 0 {
			t.Errorf("calls of the store are not measured: %v", slices.Sorted(maps.Keys(v)))
		}
	})
}

// Metrics name no more resources than they were allowed.
func TestResourcesAreBounded(t *testing.T) {
	t.Parallel()
	for most, want := range map[int]int{0: 1, 1: 2, 3: 4, 50: 20} {
		s := newScene(t)
		s.tc.Resources = most
		h := telemetry.Instrument(s.config("a", "q"), s.tc).Probes[0].Handler(func(context.Context, *rebalancer.Message) error { return nil })
		for i := range 200 {
			_ = h(t.Context(), &rebalancer.Message{Resource: fmt.Sprint("r", i%20)})
		}
		series, sum := 0, 0.0
		for k, v := range s.values() {
			if strings.HasPrefix(k, "rebalancer.messages.handled") {
				series, sum = series+1, sum+v
			}
		}
		if series != want || sum != 200 {
			t.Errorf("Resources %d: %d series with %v messages, want %d with 200", most, series, sum, want)
		}
	}
}

// lagger is a source that knows its lag.
type lagger struct {
	*memory.Source
	asked atomic.Int64
}

func (l *lagger) Lag(_ context.Context, resource string) (int64, error) {
	l.asked.Add(1)
	if resource == "q2" {
		return 0, errors.New("not now")
	}
	return int64(len(resource)) + 5, nil
}

func TestLag(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t)
		l := &lagger{Source: s.source}
		s.tc.LagEvery, s.tc.Resources, s.tc.LagMost = 10*time.Second, 1, 4
		cfg := s.config("a", "q1", "q2", "q3", "q4", "q5")
		cfg.Source = l
		n := s.start(cfg, func(context.Context, *rebalancer.Message) error { return nil })
		n.holds(5)
		time.Sleep(11 * time.Second)
		synctest.Wait()
		s.expect(map[string]float64{"rebalancer.lag id=a name=q1": 7, "rebalancer.lag id=a name=_other": 14})
		if l.asked.Load() != 4 {
			t.Errorf("asked %d times, want for 4 resources", l.asked.Load())
		}
		n.end()
	})
}

// All that is measured is in the catalogue, with its attributes and unit, and everything in the catalogue can be measured.
func TestCatalogue(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.tc.Resources = 1
	everything(t, s)
	var all metricdata.ResourceMetrics
	if err := s.reader.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	known := map[string]telemetry.Metric{}
	for _, m := range telemetry.Metrics() {
		known[m.Name] = m
	}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			c, ok := known[m.Name]
			if !ok || c.Unit != m.Unit || c.Description != m.Description || c.Description == "" {
				t.Errorf("%s (%s) is not in the catalogue like this", m.Name, m.Unit)
			}
			for _, a := range attributesOf(m.Data) {
				if a != "messaging.consumer.group.name" && a != "messaging.system" && !slices.Contains(c.Attributes, a) {
					t.Errorf("%s has an attribute %s, which the catalogue does not tell", m.Name, a)
				}
			}
			delete(known, m.Name)
		}
	}
	for name := range known {
		if !strings.HasPrefix(name, "rebalancer.node.") && !strings.HasPrefix(name, "rebalancer.group.") && name != "rebalancer.lag" { // of a running node: other tests
			t.Errorf("%s is never measured", name)
		}
	}
}

// everything has each metric measured that needs no running node.
func everything(t *testing.T, s *scene) {
	p := telemetry.Instrument(s.config("a", "q"), s.tc).Probes[0]
	now := time.Now()
	h := p.Handler(func(_ context.Context, m *rebalancer.Message) error {
		if m.Attempt > 1 {
			return errors.New("bad")
		}
		return nil
	})
	m := &rebalancer.Message{Resource: "q", Published: now}
	_ = h(t.Context(), m)
	_ = h(t.Context(), &rebalancer.Message{Resource: "q", Attempt: 2})
	p.Fetched(group.Fetched{Resource: "q", Messages: []*rebalancer.Message{m}, Began: now})
	p.Settled(group.Settled{Resource: "q", Began: now, Err: errors.New("bad")})
	p.StoreCall(group.StoreCall{Call: group.CallCommit, Began: now, Outcome: "ok", Claims: 2, Refused: 1})
	share := &group.Share{Epoch: 1, Generation: 1, Causes: []string{"join"}, Gained: []string{"q"}, Lost: []string{"r"}}
	for _, e := range []group.Event{
		{Kind: group.KindFailed, Message: "1"}, {Kind: group.KindRejected}, {Kind: group.KindKept}, {Kind: group.KindStuck}, {Kind: group.KindLost}, {Kind: group.KindDeclined},
		{Kind: group.KindRebalanced, Plan: &group.Plan{Causes: []string{"join"}, Moved: 200, Moves: []group.Move{{Resource: "q", Reason: "new"}}}},
		{Kind: group.KindAssigned, Share: share}, {Kind: group.KindRevoked, Resource: "r"}, {Kind: group.KindReleased, Resource: "r"},
		{Kind: group.KindClaimed, Resource: "q"}, {Kind: group.KindStarted, Resource: "q"}, {Kind: group.KindFenced},
	} {
		e.Time = now
		p.Event(e)
	}
}

func attributesOf(data metricdata.Aggregation) (names []string) {
	add := func(s attribute.Set) {
		for _, kv := range s.ToSlice() {
			names = append(names, string(kv.Key))
		}
	}
	switch data := data.(type) {
	case metricdata.Sum[int64]:
		for _, p := range data.DataPoints {
			add(p.Attributes)
		}
	case metricdata.Histogram[float64]:
		for _, p := range data.DataPoints {
			add(p.Attributes)
		}
	case metricdata.Gauge[float64]:
		for _, p := range data.DataPoints {
			add(p.Attributes)
		}
	}
	return names
}

// Two calls of Instrument, and the probes of the user, stand beside each other; the configuration that was passed stays as it is.
func TestInstrumentChains(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	mine := &group.Probe{}
	cfg := s.config("a", "q")
	cfg.Probes = make([]*group.Probe, 1, 4)
	cfg.Probes[0] = mine
	one, two := telemetry.Instrument(cfg, s.tc), telemetry.Instrument(cfg, s.tc)
	if len(cfg.Probes) != 1 || len(one.Probes) != 2 || len(two.Probes) != 2 || one.Probes[0] != mine || one.Probes[1] == two.Probes[1] {
		t.Error("probes of one configuration got into another")
	}
}

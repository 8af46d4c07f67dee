package telemetry

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/rebalancer-go/rebalancer/group"
)

// phases are those of resources that metrics show always, with 0 when there is none.
func phases() []string { return []string{"working", "claimed", "draining"} }

// begin shows the node's state for as long as it runs.
func (t *telemetry) begin(g *group.Group) (end func()) {
	client := attribute.String(attrClient, g.Status().Node)
	lag := &lagging{t: t, g: g, client: client}
	reg, err := t.in.meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		t.observe(g, o, client)
		lag.observe(o)
		return nil
	}, t.in.all...)
	if err != nil {
		otel.Handle(err)
	}
	stop := lag.start()
	return func() {
		stop()
		if reg != nil {
			if err := reg.Unregister(); err != nil {
				otel.Handle(err)
			}
		}
	}
}

// observe tells what the node is, and has, now.
func (t *telemetry) observe(g *group.Group, o metric.Observer, client attribute.KeyValue) {
	s := g.Status()
	node := metric.WithAttributeSet(attribute.NewSet(append(t.base[:len(t.base):len(t.base)], client)...))
	show := func(name string, v float64, opts ...metric.ObserveOption) {
		o.ObserveFloat64(t.in.gauges[name], v, opts...)
	}
	yes := func(ok bool) float64 {
		if ok {
			return 1
		}
		return 0
	}
	stuck, held := 0, map[string]int{}
	for _, p := range phases() {
		held[p] = 0
	}
	for _, r := range s.Resources {
		held[r.Phase]++
		if r.Stuck {
			stuck++
		}
	}
	for _, phase := range slices.Sorted(maps.Keys(held)) {
		show(nodeResources, float64(held[phase]), metric.WithAttributeSet(attribute.NewSet(append(t.base[:len(t.base):len(t.base)], client, attribute.String(attrPhase, phase))...)))
	}
	show(nodeStuck, float64(stuck), node)
	left := time.Duration(0)
	if !s.TrustedUntil.IsZero() {
		left = max(time.Until(s.TrustedUntil), 0)
	}
	show(nodeTrust, left.Seconds(), node)
	show(nodeReady, yes(g.Ready() == nil), node)
	show(nodeLeading, yes(s.Leading), node)
	if s.Leading {
		all := metric.WithAttributeSet(attribute.NewSet(slices.Clone(t.base)...))
		show(groupMembers, float64(s.Members), all)
		show(groupUnplaced, float64(s.Unplaced), all)
		show(groupPending, float64(s.Pending), all)
	}
}

// lagTimeout bounds one question for the lag of a resource.
const lagTimeout = 10 * time.Second

// lagging asks the source, now and then, how many messages wait.
type lagging struct {
	t      *telemetry
	g      *group.Group
	client attribute.KeyValue

	mu  sync.Mutex
	lag map[string]int64 // by resource, as of the last round; what the source could not tell is not in it
}

// start returns what ends it.
func (l *lagging) start() (stop func()) {
	if l.t.lagger == nil || l.t.cfg.LagEvery <= 0 {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(l.t.cfg.LagEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				l.ask(ctx)
			case <-ctx.Done():
				return
			}
		}
	}()
	return func() {
		cancel()
		select {
		case <-done:
		case <-time.After(lagTimeout): // a source that does not heed its context
		}
	}
}

// ask is one round.
func (l *lagging) ask(ctx context.Context) {
	lag := map[string]int64{}
	n := 0
	for _, r := range l.g.Status().Resources { // sorted by name
		if r.Phase != "working" {
			continue
		}
		if n++; n > l.t.cfg.LagMost {
			break
		}
		one, cancel := context.WithTimeout(ctx, lagTimeout)
		waits, err := l.t.lagger.Lag(one, r.Name)
		cancel()
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			lag[r.Name] = waits
		}
	}
	l.mu.Lock()
	l.lag = lag
	l.mu.Unlock()
}

// observe tells the lags, those of resources without a name of their own together.
func (l *lagging) observe(o metric.Observer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	sums := map[*resource]int64{}
	for _, name := range slices.Sorted(maps.Keys(l.lag)) { // so that the same get names
		sums[l.t.resources.of(name)] += l.lag[name]
	}
	for x, sum := range sums {
		kvs := append(x.name[:len(x.name):len(x.name)], l.client)
		o.ObserveFloat64(l.t.in.gauges[lagMessages], float64(sum), metric.WithAttributeSet(attribute.NewSet(kvs...)))
	}
}

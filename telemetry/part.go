package telemetry

import (
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/rebalancer-go/rebalancer/group"
)

// maxNamed is how many resources a span names of each kind.
const maxNamed = 100

// part follows what a node has to do in rebalances, from event to event: a new share, the claims of what it gains, the return of what it loses.
type part struct {
	t *telemetry

	mu           sync.Mutex
	began        time.Time // zero: nothing is to be done
	causes       []string
	gained, lost map[string]bool
	span         trace.Span
	named        int // events of the span
	epoch, gen   int64

	claims map[string]claim     // that are not worked yet
	drains map[string]time.Time // when they were revoked
}

// claim is a resource that is held but not open yet.
type claim struct {
	free  time.Time // since when it was free
	cause string
}

func newPart(t *telemetry) *part {
	return &part{t: t, gained: map[string]bool{}, lost: map[string]bool{}, claims: map[string]claim{}, drains: map[string]time.Time{}}
}

func (p *part) event(e group.Event) {
	switch e.Kind {
	case group.KindAssigned, group.KindClaimed, group.KindStarted, group.KindRevoked, group.KindReleased, group.KindLost, group.KindDeclined, group.KindFenced, group.KindLeft:
	default:
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e.Kind {
	case group.KindAssigned:
		p.assigned(e)
	case group.KindClaimed:
		p.claims[e.Resource] = claim{e.Time.Add(-e.Waited), causeOf(p.causes)}
	case group.KindStarted:
		p.started(e)
	case group.KindRevoked:
		p.drains[e.Resource] = e.Time
	case group.KindReleased:
		if revoked, ok := p.drains[e.Resource]; ok {
			p.t.record(resourceDrain, e.Time.Sub(revoked), p.t.plain)
		}
	case group.KindFenced, group.KindLeft:
		p.over(e)
		return
	}
	p.note(e)
}

// assigned begins a rebalance, or goes on with the one that another share overtakes.
func (p *part) assigned(e group.Event) {
	s := e.Share
	if s == nil {
		return
	}
	causes := s.Causes
	if s.Epoch == p.epoch && s.Generation == p.gen {
		causes = []string{"rejoin"} // nothing was planned: the node had lost what it held
	}
	p.epoch, p.gen = s.Epoch, s.Generation
	clear(p.gained)
	clear(p.lost)
	for _, r := range s.Gained {
		p.gained[r] = true
	}
	for _, r := range s.Lost {
		p.lost[r] = true
	}
	if len(p.gained)+len(p.lost) == 0 && p.began.IsZero() {
		return
	}
	if p.began.IsZero() {
		p.began, p.causes, p.named = e.Time, nil, 0
		_, p.span = p.t.tracer.tracer.Start(background(), "rebalance "+p.t.cfg.Group, trace.WithTimestamp(e.Time), trace.WithAttributes(p.t.base...))
	}
	p.causes = append(slices.Clone(p.causes), causes...)
	slices.Sort(p.causes)
	p.causes = slices.Compact(p.causes)
	if p.span.IsRecording() {
		p.span.SetAttributes(
			attribute.StringSlice("rebalancer.causes", p.causes), attribute.Int64("rebalancer.epoch", s.Epoch), attribute.Int64("rebalancer.generation", s.Generation),
			attribute.StringSlice("rebalancer.gained", s.Gained[:min(len(s.Gained), maxNamed)]), attribute.StringSlice("rebalancer.lost", s.Lost[:min(len(s.Lost), maxNamed)]),
		)
	}
}

// started measures how long a resource stood idle between two nodes.
func (p *part) started(e group.Event) {
	if c, ok := p.claims[e.Resource]; ok {
		p.t.record(resourceIdle, e.Time.Sub(c.free), p.t.with(attribute.String(attrCause, c.cause)))
		delete(p.claims, e.Resource)
	}
}

// note ticks off what an event brings to its end, and tells the span.
func (p *part) note(e group.Event) {
	switch e.Kind {
	case group.KindClaimed:
		delete(p.gained, e.Resource)
	case group.KindDeclined:
		delete(p.gained, e.Resource)
		delete(p.claims, e.Resource)
	case group.KindReleased, group.KindLost:
		delete(p.lost, e.Resource)
		delete(p.drains, e.Resource)
		delete(p.claims, e.Resource)
	}
	if p.began.IsZero() {
		return
	}
	if e.Resource != "" && p.named < 2*maxNamed && p.span.IsRecording() {
		p.named++
		p.span.AddEvent(string(e.Kind), trace.WithTimestamp(e.Time), trace.WithAttributes(attribute.String(attrDestination, e.Resource), attribute.Int64("rebalancer.fence", e.Fence)))
	}
	if len(p.gained)+len(p.lost) == 0 {
		p.t.record(rebalanceDuration, e.Time.Sub(p.began), p.t.with(attribute.String(attrCause, causeOf(p.causes))))
		p.end(e.Time)
	}
}

// over ends everything, because the node has nothing any more.
func (p *part) over(e group.Event) {
	clear(p.claims)
	clear(p.drains)
	clear(p.gained)
	clear(p.lost)
	if !p.began.IsZero() {
		cut(p.span, string(e.Kind))
		p.end(e.Time)
	}
}

func (p *part) end(at time.Time) {
	p.span.End(trace.WithTimestamp(at))
	p.began, p.span = time.Time{}, nil
}

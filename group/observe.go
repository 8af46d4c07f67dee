package group

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/rebalancer-go/rebalancer/coord"
)

const (
	// maxEvents is how many events wait for a slow OnEvent, or log.
	maxEvents = 1024
	// repeatEvery is how often the same trouble is logged above the level of debugging.
	repeatEvery = 10 * time.Second
)

// observer logs events and passes them to OnEvent, in order. emit never blocks: a log that nobody reads must not cost the node
// its renewals, nor a slow OnEvent the log.
type observer struct {
	probes *probes
	lines  *queue
	events *queue // nil when nobody observes
}

func newObserver(cfg *Config) *observer {
	l := &eventLog{log: cfg.Logger.With("group", cfg.Name, "node", cfg.Node)}
	o := &observer{lines: newQueue(l.write), probes: &probes{cfg.Probes, l.log}}
	if cfg.OnEvent != nil {
		o.events = newQueue(func(e Event) {
			defer func() {
				if r := recover(); r != nil {
					l.log.Error("OnEvent panicked", "event", string(e.Kind), "panic", r)
				}
			}()
			cfg.OnEvent(e)
		})
	}
	return o
}

func (o *observer) emit(e Event) {
	e.Time = time.Now()
	if o.probes.on() {
		o.probes.event(e)
	}
	o.lines.add(e)
	if o.events != nil {
		o.events.add(e)
	}
}

// close passes on what waits and ends the goroutines; it does not wait longer than that for one that hangs.
func (o *observer) close(patience time.Duration) {
	over := time.Now().Add(patience)
	for _, q := range []*queue{o.events, o.lines} { // OnEvent first: its panics are logged
		if q != nil {
			q.close()
			sleep(q.done, time.Until(over))
		}
	}
}

// queue passes events to f, in order, from a goroutine of its own. What does not fit is counted and dropped.
type queue struct {
	f    func(Event)
	done chan struct{} // closed when the goroutine has ended
	kick chan struct{} // of capacity 1

	mu      sync.Mutex
	waiting []Event
	dropped int
	closed  bool
}

func newQueue(f func(Event)) *queue {
	q := &queue{f: f, kick: make(chan struct{}, 1), done: make(chan struct{})}
	go q.run()
	return q
}

func (q *queue) add(e Event) {
	q.mu.Lock()
	switch {
	case q.closed:
	case len(q.waiting) >= maxEvents:
		q.dropped++
	default:
		q.tellDropped(e.Time)
		q.waiting = append(q.waiting, e)
	}
	q.mu.Unlock()
	signal(q.kick)
}

func (q *queue) tellDropped(at time.Time) {
	if q.dropped > 0 {
		q.waiting = append(q.waiting, Event{Kind: KindDropped, Reason: fmt.Sprintf("%d events", q.dropped), Time: at})
		q.dropped = 0
	}
}

func (q *queue) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	signal(q.kick)
}

func (q *queue) run() {
	defer close(q.done)
	for range q.kick {
		q.mu.Lock()
		closed := q.closed
		if closed {
			q.tellDropped(time.Now())
		}
		batch := q.waiting
		q.waiting = nil
		q.mu.Unlock()
		for _, e := range batch {
			q.f(e)
		}
		if closed {
			return
		}
	}
}

// eventLog writes events as lines. A trouble that repeats itself is logged now and then only.
type eventLog struct {
	log      *slog.Logger
	lastText string
	lastAt   time.Time
}

func (l *eventLog) write(e Event) {
	level := levelOf(e)
	if !l.log.Enabled(context.Background(), level) {
		return
	}
	if level >= slog.LevelWarn {
		text := string(e.Kind) + e.Resource + e.Reason + fmt.Sprint(e.Err)
		if text == l.lastText && e.Time.Sub(l.lastAt) < repeatEvery {
			level = slog.LevelDebug
		} else {
			l.lastText, l.lastAt = text, e.Time
		}
		if !l.log.Enabled(context.Background(), level) {
			return
		}
	}
	r := slog.NewRecord(e.Time, level, string(e.Kind), 0)
	r.AddAttrs(attrsOf(e)...)
	_ = l.log.Handler().Handle(context.Background(), r) // as slog itself does
}

func attrsOf(e Event) []slog.Attr {
	attrs := make([]slog.Attr, 0, 8)
	text := func(key, value string) {
		if value != "" {
			attrs = append(attrs, slog.String(key, value))
		}
	}
	text("resource", e.Resource)
	if e.Fence != 0 {
		attrs = append(attrs, slog.Int64("fence", e.Fence))
	}
	text("other", e.Node)
	text("message", e.Message)
	if e.Attempt != 0 {
		attrs = append(attrs, slog.Int("attempt", e.Attempt))
	}
	text("reason", e.Reason)
	if e.Plan != nil {
		text("moves", e.Plan.String())
	}
	if e.Share != nil {
		text("causes", strings.Join(e.Share.Causes, ","))
		attrs = append(attrs, slog.Int("gained", len(e.Share.Gained)), slog.Int("lost", len(e.Share.Lost)))
	}
	if e.Err != nil {
		attrs = append(attrs, slog.String("err", e.Err.Error()))
		var p *panicError
		if errors.As(e.Err, &p) {
			attrs = append(attrs, slog.String("stack", string(p.stack)))
		}
	}
	return attrs
}

func levelOf(e Event) slog.Level {
	switch e.Kind {
	case KindStuck, KindHalted:
		return slog.LevelError
	case KindFenced, KindLost, KindDeclined, KindStore, KindFailed, KindRejected, KindKept, KindSkipped, KindSource:
		return slog.LevelWarn
	case KindResources:
		if e.Err != nil {
			return slog.LevelWarn
		}
		return slog.LevelInfo
	case KindClaimed, KindRevoked, KindReleased, KindStarted, KindAssigned:
		return slog.LevelDebug
	}
	return slog.LevelInfo
}

func eventOf(n coord.Notify) Event {
	return Event{
		Kind: EventKind(n.Kind), Resource: n.Resource, Fence: n.Fence, Node: n.Node, Reason: n.Reason, Err: n.Err,
		Plan: planOf(n.Plan), Share: shareOf(n.Share), Waited: time.Duration(n.Waited),
	}
}

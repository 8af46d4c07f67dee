package group

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/rebalancer-go/rebalancer/coord"
)

const (
	// maxEvents is how many events wait for a slow OnEvent.
	maxEvents = 1024
	// repeatEvery is how often the same trouble is logged above the level of debugging.
	repeatEvery = 10 * time.Second
)

// observer logs events and passes them to OnEvent, in order, from a goroutine of its own. emit never blocks.
type observer struct {
	log     *slog.Logger
	onEvent func(Event)
	done    chan struct{} // closed when the goroutine has ended

	mu      sync.Mutex
	queue   []Event
	dropped int
	closed  bool
	kick    chan struct{} // of capacity 1

	lastText string
	lastAt   time.Time
}

func newObserver(cfg *Config) *observer {
	o := &observer{
		log:     cfg.Logger.With("group", cfg.Name, "node", cfg.Node),
		onEvent: cfg.OnEvent,
		kick:    make(chan struct{}, 1),
		done:    make(chan struct{}),
	}
	if o.onEvent == nil {
		close(o.done)
		return o
	}
	go o.run()
	return o
}

func (o *observer) emit(e Event) {
	e.Time = time.Now()
	o.write(e)
	if o.onEvent == nil {
		return
	}
	o.mu.Lock()
	switch {
	case o.closed:
	case len(o.queue) >= maxEvents:
		o.dropped++
	default:
		if o.dropped > 0 {
			o.queue = append(o.queue, Event{Kind: KindDropped, Reason: fmt.Sprintf("%d events", o.dropped), Time: e.Time})
			o.dropped = 0
		}
		o.queue = append(o.queue, e)
	}
	o.mu.Unlock()
	o.wake()
}

func (o *observer) wake() {
	select {
	case o.kick <- struct{}{}:
	default:
	}
}

func (o *observer) run() {
	defer close(o.done)
	for range o.kick {
		o.mu.Lock()
		batch, closed := o.queue, o.closed
		o.queue = nil
		if closed && o.dropped > 0 {
			batch = append(batch, Event{Kind: KindDropped, Reason: fmt.Sprintf("%d events", o.dropped), Time: time.Now()})
			o.dropped = 0
		}
		o.mu.Unlock()
		for _, e := range batch {
			o.deliver(e)
		}
		if closed {
			return
		}
	}
}

func (o *observer) deliver(e Event) {
	defer func() {
		if r := recover(); r != nil {
			o.log.Error("OnEvent panicked", "event", string(e.Kind), "panic", r)
		}
	}()
	o.onEvent(e)
}

// close passes on what waits and ends the goroutine; it does not wait longer than that for an OnEvent that hangs.
func (o *observer) close(patience time.Duration) {
	o.mu.Lock()
	o.closed = true
	o.mu.Unlock()
	o.wake()
	sleep(o.done, patience)
}

// write logs an event. A trouble that repeats itself is logged now and then only.
func (o *observer) write(e Event) {
	level := levelOf(e)
	if !o.log.Enabled(context.Background(), level) {
		return
	}
	if level >= slog.LevelWarn {
		text := string(e.Kind) + e.Resource + e.Reason + fmt.Sprint(e.Err)
		o.mu.Lock()
		repeats := text == o.lastText && e.Time.Sub(o.lastAt) < repeatEvery
		if !repeats {
			o.lastText, o.lastAt = text, e.Time
		}
		o.mu.Unlock()
		if repeats {
			level = slog.LevelDebug
		}
	}
	o.log.LogAttrs(context.Background(), level, string(e.Kind), attrsOf(e)...)
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
	case KindClaimed, KindRevoked, KindReleased, KindStarted, KindAssigned, KindWaiting:
		return slog.LevelDebug
	}
	return slog.LevelInfo
}

func eventOf(n coord.Notify) Event {
	return Event{Kind: EventKind(n.Kind), Resource: n.Resource, Fence: n.Fence, Node: n.Node, Reason: n.Reason, Err: n.Err}
}

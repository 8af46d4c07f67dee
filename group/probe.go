package group

import (
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/sources"
)

// Probe is told what happens on a node, at once and in the goroutine where it happens, for metrics and traces; package telemetry makes one. Each
// function may be nil, and then costs nothing. Those that are set run in many goroutines at once, some in the group's own loop: they must return
// at once, and call nothing of the Group but Status, Ready and Live. What panics is logged, and left out. What they are passed belongs to the group: it is not to be changed, nor slices
// kept after the call.
type Probe struct {
	// Begin is called when Consume, ConsumeBatch or Run begins; the function that it returns, unless it is nil, when that ends.
	Begin func(g *Group) (end func())
	// Event gets each event, as OnEvent does, but before it and without one left out.
	Event func(e Event)
	// Handler wraps the handler of Consume, BatchHandler that of ConsumeBatch, each time when these are called. The wrappers of later probes are around those of
	// earlier ones.
	Handler      func(next rebalancer.Handler) rebalancer.Handler
	BatchHandler func(next rebalancer.BatchHandler) rebalancer.BatchHandler
	// Fetched is called when a Fetch brought messages or failed.
	Fetched func(f Fetched)
	// Settled is called after each Settle.
	Settled func(s Settled)
	// StoreCall is called after each call of the store, but for subscriptions to hints.
	StoreCall func(c StoreCall)
}

// Fetched is one call of a source's Fetch.
type Fetched struct {
	Resource string
	Fence    int64
	// Messages that it brought; none when Err is not nil. Attempt is as the source counts it, at least 1 from the handler on.
	Messages []*rebalancer.Message
	Began    time.Time
	Took     time.Duration
	Err      error
}

// Settled is one call of a source's Settle.
type Settled struct {
	Resource    string
	Fence       int64
	Settlements []sources.Settlement
	Began       time.Time
	Took        time.Duration
	// Err is a *sources.SettleError when some of the settlements failed. Those that failed may be passed again.
	Err error
}

// The calls of a store that a [StoreCall] tells of.
const (
	CallOpen           = "open" // a session
	CallClose          = "close"
	CallRenew          = "renew"
	CallSupersede      = "supersede"
	CallRead           = "read"
	CallCommit         = "commit"
	CallLoadCheckpoint = "load_checkpoint"
	CallSaveCheckpoint = "save_checkpoint"
)

// StoreCall is one call of the store.
type StoreCall struct {
	// Call is one of CallOpen, CallClose and so on.
	Call  string
	Began time.Time
	Took  time.Duration
	// Outcome is "ok", or one word for how it failed: "timeout", "unknown" (it may have happened), "session_lost", "superseded", "reincarnated" (the
	// store's data is of another incarnation), "conflict" (a checkpoint), "failed", "fatal". A commit in which
	// single transactions were refused is "ok".
	Outcome string
	// Err is why; nil when Outcome is "ok".
	Err error
	// Claims is how many claims a commit asked for, Refused how many of them were refused because the resource is somebody else's, or
	// was given to somebody else meanwhile.
	Claims, Refused int
}

// probes are those of a configuration.
type probes struct {
	list []*Probe
	log  *slog.Logger
}

// on tells whether there is anybody to tell.
func (p *probes) on() bool { return p != nil && len(p.list) > 0 }

// each calls f for each probe. What panics is logged.
func (p *probes) each(f func(*Probe)) {
	for _, probe := range p.list {
		if probe != nil {
			p.guarded(func() { f(probe) })
		}
	}
}

func (p *probes) guarded(f func()) {
	defer func() {
		if r := recover(); r != nil {
			p.log.Error("a probe panicked", "panic", r, "stack", string(debug.Stack()))
		}
	}()
	f()
}

// begin returns what is to be called at the end.
func (p *probes) begin(g *Group) (end func()) {
	var ends []func()
	p.each(func(probe *Probe) {
		if probe.Begin == nil {
			return
		}
		if end := probe.Begin(g); end != nil {
			ends = append(ends, end)
		}
	})
	return func() {
		for _, end := range ends {
			p.guarded(end)
		}
	}
}

func (p *probes) event(e Event) {
	p.each(func(probe *Probe) {
		if probe.Event != nil {
			probe.Event(e)
		}
	})
}

func (p *probes) fetched(w *worker, began time.Time, ms []*rebalancer.Message, err error) {
	f := Fetched{Resource: w.claim.Resource, Fence: w.claim.Fence, Messages: ms, Began: began, Took: time.Since(began), Err: err}
	p.each(func(probe *Probe) {
		if probe.Fetched != nil {
			probe.Fetched(f)
		}
	})
}

func (p *probes) settled(w *worker, began time.Time, batch []sources.Settlement, err error) {
	s := Settled{Resource: w.claim.Resource, Fence: w.claim.Fence, Settlements: batch, Began: began, Took: time.Since(began), Err: err}
	p.each(func(probe *Probe) {
		if probe.Settled != nil {
			probe.Settled(s)
		}
	})
}

func (p *probes) storeCall(c StoreCall) {
	c.Took = time.Since(c.Began)
	p.each(func(probe *Probe) {
		if probe.StoreCall != nil {
			probe.StoreCall(c)
		}
	})
}

// wrap puts the wrappers of all probes around the handlers of a task.
func (p *probes) wrap(t task) task {
	p.each(func(probe *Probe) {
		if t.handle != nil && probe.Handler != nil {
			if h := probe.Handler(t.handle); h != nil {
				t.handle = h
			}
		}
		if t.batch != nil && probe.BatchHandler != nil {
			if h := probe.BatchHandler(t.batch); h != nil {
				t.batch = h
			}
		}
	})
	return t
}

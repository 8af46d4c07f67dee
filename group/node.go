package group

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/coord"
)

// node is one life of a Group, from the call of Consume or Run to its return. Its loop, in the goroutine of that call, owns
// the machine: it takes events, steps the machine, and carries out the actions. It never blocks but for events.
type node struct {
	env
	g        *Group
	calls    *storeCalls
	observer *observer
	events   chan coord.Event
	over     chan struct{} // closed when the loop has ended: nobody takes events any more
	renewal  time.Duration
	troubles chan struct{} // of capacity 1: what keeps resources from getting on has changed
	told     time.Time     // when that was told last
	telling  bool          // tell runs
	tell     *time.Timer   // until it may be told again

	due     atomic.Int64 // coord.Time by which the loop turns
	trust   atomic.Int64 // what env.trusted points to
	mu      sync.Mutex   // guards machine; held for a step of it
	machine *coord.Machine
	tracer  *tracer    // nil: nobody wants a trace
	wmu     sync.Mutex // guards workers; never held while anything else is done, so that Live need not wait for a step
	workers map[workerKey]*worker
	wg      sync.WaitGroup

	finished bool
	result   error
	base     context.Context // Consume's, for its values
}

// workerKey tells a worker from that of an earlier claim of the resource, which may not have ended yet.
type workerKey struct {
	resource string
	fence    int64
}

func newNode(ctx context.Context, g *Group, t task) *node {
	n := &node{
		g:       g,
		events:  make(chan coord.Event, 64),
		over:    make(chan struct{}),
		workers: map[workerKey]*worker{},
		renewal: g.cfg.Tuning.Renew, troubles: make(chan struct{}, 1),
		base: ctx,
	}
	n.observer = newObserver(&g.cfg)
	n.env = env{
		cfg: &g.cfg, task: t, clock: newClock(g.hooks.boot), trusted: &n.trust,
		post: n.post, emit: n.observer.emit, probes: n.observer.probes, watch: &g.watch,
		trouble: func() { signal(n.troubles) },
	}
	if g.cfg.MaxConcurrency > 0 {
		n.slots = make(chan struct{}, g.cfg.MaxConcurrency)
	}
	n.task = n.probes.wrap(t)
	n.calls = newStoreCalls(ctx, &g.cfg, n.post)
	n.calls.tell = n.probes
	n.calls.about.warned = func(w string) { n.emit(Event{Kind: KindStore, Reason: w}) }
	n.machine = coord.New(n.traced(g.machineConfig()))
	n.due.Store(int64(n.clock.now()))
	return n
}

func (g *Group) machineConfig() coord.Config {
	c := &g.cfg
	var seed [8]byte
	_, _ = rand.Read(seed[:]) // never fails
	mode := coord.ResourceBarrier
	if c.GlobalBarrier {
		mode = coord.GlobalBarrier
	}
	return coord.Config{
		Group: c.Name, Node: c.Node, Instance: rand.Text(),
		Mode: mode, Origin: c.Resources.origin, Static: g.names,
		TTL: coord.Duration(c.TTL), Renew: coord.Duration(c.Tuning.Renew), Margin: coord.Duration(c.Tuning.Margin),
		Debounce: coord.Duration(c.Tuning.Debounce), DebounceMax: coord.Duration(c.Tuning.DebounceMax),
		ListEvery: coord.Duration(c.Resources.every),
		Priority:  c.Priority, Weight: c.Weight, MaxResources: c.MaxResources, Labels: c.Labels, StaticID: c.Static,
		Measure: true, MaxActive: c.MaxActive, FailBack: c.FailBack, MaxMoving: c.MaxMoving, MaxMovingNode: c.MaxMovingPerNode,
		Version: version(), History: true, Seed: binary.LittleEndian.Uint64(seed[:]), Observe: g.hooks.observe,
	}
}

// version is that of this library in the running program, "" when it is not known.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	const path = "github.com/rebalancer-go/rebalancer"
	if info.Main.Path == path {
		return info.Main.Version
	}
	for _, d := range info.Deps {
		if d.Path == path {
			return d.Version
		}
	}
	return ""
}

// post hands an event to the loop; it blocks while the loop is busy, so the loop itself must not call it.
func (n *node) post(ev coord.Event) {
	select {
	case n.events <- ev:
	case <-n.over:
	}
}

// run is the loop.
func (n *node) run(ctx context.Context) error {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	leave := ctx.Done()
	n.step(coord.Start{})
	n.drain()
	for !n.finished {
		timer.Reset(n.untilWake())
		select {
		case ev := <-n.events:
			n.step(ev)
		case <-n.calls.hints.kick:
			for _, a := range n.calls.hints.take() {
				n.step(coord.Hinted{Address: a})
			}
		case <-n.troubles:
			n.tellTroubles()
		case <-n.g.drained:
			n.drain()
		case <-timer.C:
			n.step(coord.Tick{})
		case <-leave:
			leave = nil
			n.step(coord.Leave{})
		}
	}
	return n.cleanUp()
}

// untilWake is how long the loop may sleep. Timers stand still while the machine is suspended; where that can be seen it
// is looked for every second, so that handlers learn soon after that their claims are lost.
func (n *node) untilWake() time.Duration {
	now := n.clock.now()
	wait := min(time.Duration(max(0, n.machine.Wake()-now)), time.Hour)
	if n.clock.boot != nil {
		wait = min(wait, time.Second)
	}
	n.due.Store(int64(now) + int64(wait))
	return wait
}

// step takes one event through the machine and carries out what it asks for.
func (n *node) step(ev coord.Event) {
	if n.finished {
		return
	}
	switch ev := ev.(type) {
	case coord.Stopped:
		n.forget(workerKey{ev.Resource, ev.Fence})
	case coord.CannotOpen:
		n.forget(workerKey{ev.Resource, ev.Fence})
	}
	now := n.clock.refresh()
	n.mu.Lock()
	actions := n.machine.Step(now, ev)
	n.trust.Store(int64(n.machine.TrustedUntil()))
	n.mu.Unlock()
	n.tracer.write()
	for _, a := range actions {
		n.do(a)
	}
	n.watch.changed()
}

func (n *node) do(a coord.Action) {
	switch a := a.(type) {
	case coord.OpenSession:
		n.calls.open(a)
	case coord.CloseSession:
		n.calls.closeSession(a)
	case coord.Renew:
		n.calls.renew(a)
	case coord.Supersede:
		n.calls.supersede(a)
	case coord.Read:
		n.calls.read(a)
	case coord.Commit:
		n.calls.commit(a)
	case coord.Listen:
		n.calls.listen(a)
	case coord.List:
		n.calls.list(a, n.cfg)
	case coord.StartWork:
		n.startWork(a)
	case coord.Revoke:
		if w := n.worker(a.Resource, a.Fence); w != nil {
			w.revoke(a.Stopping)
		}
	case coord.Lose:
		if w := n.worker(a.Resource, a.Fence); w != nil {
			w.lose()
		}
	case coord.Notify:
		n.emit(eventOf(a))
	case coord.Finish:
		n.finished, n.result = true, a.Err
	}
}

func (n *node) forget(k workerKey) {
	n.wmu.Lock()
	defer n.wmu.Unlock()
	delete(n.workers, k)
}

func (n *node) worker(resource string, fence int64) *worker {
	n.wmu.Lock()
	defer n.wmu.Unlock()
	return n.workers[workerKey{resource, fence}]
}

func (n *node) startWork(a coord.StartWork) {
	session, ttl := n.calls.latest()
	claim := &rebalancer.Claim{Group: n.cfg.Name, Node: n.cfg.Node, Resource: a.Resource, Fence: a.Fence, TTL: ttl}
	w := newWorker(n.base, &n.env, claim)
	claim.Checkpoint = &checkpoint{
		resource: a.Resource, fence: a.Fence, session: session, incarnation: &n.calls.incarnation,
		ours:  func() bool { return !w.over() && n.trusts(true) },
		doubt: func() { n.post(coord.Doubt(a)) }, probes: n.probes,
	}
	n.wmu.Lock()
	n.workers[workerKey{a.Resource, a.Fence}] = w
	n.wmu.Unlock()
	n.wg.Add(1)
	w.onDone = n.wg.Done
	go w.main()
}

// cleanUp ends what is left when the machine has finished: only handlers that are stuck outlive it.
func (n *node) cleanUp() error {
	close(n.over)
	if n.tell != nil {
		n.tell.Stop()
	}
	n.trust.Store(0)
	n.wmu.Lock()
	for _, w := range n.workers {
		w.lose()
	}
	left := len(n.workers)
	n.wmu.Unlock()
	err := n.result
	if left > 0 && !n.workersEnd() && !errors.Is(err, ErrStuck) {
		err = errors.Join(err, ErrStuck)
	}
	if !n.calls.close() {
		n.emit(Event{Kind: KindStore, Reason: fmt.Sprintf("calls of the store did not return within %v of their context's end", 2*closeTimeout)})
	}
	n.observer.close(n.cfg.Grace)
	return err
}

// workersEnd waits for the workers, for as long as a handler may take to return. Those that are stuck have had their time.
func (n *node) workersEnd() bool {
	done := make(chan struct{})
	go func() { n.wg.Wait(); close(done) }()
	patience := n.cfg.Grace
	if errors.Is(n.result, ErrStuck) {
		patience = 0
	}
	return !sleep(done, patience)
}

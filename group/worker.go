package group

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/coord"
	"github.com/rebalancer-go/rebalancer/internal/draining"
	"github.com/rebalancer-go/rebalancer/sources"
)

const (
	openTimeout   = 30 * time.Second
	settleTimeout = 30 * time.Second
	closeTimeout  = 5 * time.Second
	listTimeout   = time.Minute
	openTries     = 3 // failures in a row after which the node leaves the resource to others
	fetchTries    = 3 // failures in a row after which the source is opened again, unless it has messages to keep (sources.Keeper)
	fetchPatience = 5 // failures in a row after which the backoff grows no more: it may have messages, too
	trustRecheck  = 100 * time.Millisecond
	// hangTimeout is longer than a source takes to settle and to close within its deadlines: one that takes longer hangs.
	hangTimeout = 3 * settleTimeout
)

var errGoexit = errors.New("a handler ended its goroutine (runtime.Goexit, or FailNow of a test)")

// task is what a node does with the resources it holds; one field is set.
type task struct {
	handle rebalancer.Handler
	batch  rebalancer.BatchHandler
	run    func(ctx context.Context, c *rebalancer.Claim) error
}

// env is what workers know of their node.
type env struct {
	cfg     *Config
	task    task
	clock   *clock
	trusted *atomic.Int64 // coord.Time up to which the node's claims are its own
	post    func(coord.Event)
	emit    func(Event)
	probes  *probes
	slots   chan struct{} // of capacity MaxConcurrency; nil for no limit. Waiters of a channel take turns.
	watch   *watch
	trouble func() // a worker's err changed; nil when nobody wants to know
}

// trusts looks at both clocks when fresh, else as clock.now does.
func (e *env) trusts(fresh bool) bool {
	if fresh {
		return int64(e.clock.refresh()) < e.trusted.Load()
	}
	return int64(e.clock.now()) < e.trusted.Load()
}

// worker works one resource under one claim, from StartWork to Stopped.
type worker struct {
	env   *env
	claim *rebalancer.Claim
	since time.Time

	ctx       context.Context // of the handlers
	cancel    context.CancelCauseFunc
	fetchCtx  context.Context // of opening and fetching: ends at the revoke
	stopFetch context.CancelFunc
	claimCtx  context.Context // of settling: ends at the loss
	endClaim  context.CancelFunc
	draining  chan struct{}   // closed at the revoke or loss
	gone      <-chan struct{} // closed at the loss: the end of claimCtx

	closing  atomic.Bool  // revoked or lost
	lost     atomic.Bool  // settle nothing any more
	inFlight atomic.Int32 // calls of the user's code that run
	halted   atomic.Bool
	stuck    atomic.Bool
	err      atomic.Pointer[error] // why it does not get on
	lastErr  atomic.Pointer[coord.LastError]

	mu       sync.Mutex
	stopping bool // the node leaves, rather than the resource
	ended    bool
	timers   []*time.Timer
	hangs    time.Time // when a source that is busy without a handler is taken to hang; zero: it need not be yet
	// endRelease ends the context of an OnRelease that runs.
	endRelease context.CancelCauseFunc

	reader    sources.Reader // owned by the worker's goroutine, but for lose
	closeOnce *sync.Once
	onClaimed bool
	unwell    bool   // the source had trouble while a batch was filled; owned by the worker's goroutine
	onDone    func() // a test's view, or the node's
}

func newWorker(ctx context.Context, e *env, claim *rebalancer.Claim) *worker {
	w := &worker{
		env: e, claim: claim, since: time.Now(),
		draining: make(chan struct{}),
	}
	ctx = draining.With(context.WithoutCancel(ctx), w.draining)
	w.claimCtx, w.endClaim = context.WithCancel(ctx)
	w.gone = w.claimCtx.Done()
	w.ctx, w.cancel = context.WithCancelCause(ctx)
	w.fetchCtx, w.stopFetch = context.WithCancel(ctx)
	return w
}

// revoke asks the worker to drain. It does not block.
func (w *worker) revoke(stopping bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopping = w.stopping || stopping
	if w.ended || w.closing.Swap(true) {
		return
	}
	close(w.draining)
	w.stopFetch()
	drain, grace := w.env.cfg.Drain, w.env.cfg.Grace
	if w.env.task.run != nil {
		w.cancel(w.causeLocked()) // nothing to finish: its ctx says that it is to return
	} else {
		w.timers = append(w.timers, time.AfterFunc(drain, w.drainOver))
	}
	w.timers = append(w.timers, time.AfterFunc(drain+grace, w.checkStuck))
}

func (w *worker) drainOver() {
	w.mu.Lock()
	cause := w.causeLocked()
	w.mu.Unlock()
	w.cancel(cause)
}

func (w *worker) causeLocked() error {
	if w.stopping {
		return rebalancer.ErrStopped
	}
	return rebalancer.ErrRevoked
}

// lose ends everything at once: the claim is not ours any more. It does not block.
func (w *worker) lose() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended || w.lost.Swap(true) {
		return
	}
	if !w.closing.Swap(true) {
		close(w.draining)
		w.stopFetch()
	}
	w.endClaim()
	w.cancel(rebalancer.ErrLost)
	if w.endRelease != nil {
		w.endRelease(rebalancer.ErrLost)
	}
	w.timers = append(w.timers, time.AfterFunc(w.env.cfg.Grace, w.checkStuck))
	if w.reader != nil { // do not leave the source open for as long as a handler takes
		go w.closeReader(w.reader, w.closeOnce)
	}
}

// checkStuck runs when the time to return is over. Settling and closing have deadlines of their own, and are stuck only when
// the source does not keep to those.
func (w *worker) checkStuck() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended || w.stuck.Load() {
		return
	}
	if w.hangs.IsZero() {
		w.hangs = time.Now().Add(hangTimeout + 2*w.env.cfg.Grace)
	}
	if w.inFlight.Load() == 0 && time.Now().Before(w.hangs) {
		w.timers = append(w.timers, time.AfterFunc(w.env.cfg.Grace, w.checkStuck))
		return
	}
	w.stuck.Store(true)
	w.env.watch.changed()
	go w.env.post(coord.Stuck{Resource: w.claim.Resource, Fence: w.claim.Fence})
}

// main is the worker's goroutine.
func (w *worker) main() {
	returned := false
	defer func() {
		if !returned { // a handler ended the goroutine; what is left to do needs another one
			go w.end(errGoexit)
		}
	}()
	err := w.body()
	returned = true
	w.end(err)
}

// body works until the revoke or loss (nil), or until it cannot go on.
func (w *worker) body() error {
	if err := w.checkCanonical(); err != nil {
		return err
	}
	if !w.sleep(w.env.cfg.StartDelay) || !w.claimed() {
		return nil
	}
	if w.env.task.run != nil {
		return w.runTask()
	}
	for {
		r, err := w.open()
		if r == nil {
			return err
		}
		again := w.consume(r)
		if w.closing.Load() {
			return nil
		}
		w.closeReader(r, w.closeOnce)
		if !again {
			return errGoexit
		}
	}
}

// checkCanonical refuses a name that the source spells differently: under two names one resource would have two owners.
func (w *worker) checkCanonical() error {
	name := w.claim.Resource
	if w.env.task.run != nil {
		return nil
	}
	canon, err := canonical(w.env.cfg.Source, []string{name})
	if err != nil {
		return fmt.Errorf("resource %q: %w", name, err)
	}
	if canon[0] != name {
		return fmt.Errorf("resource %q: the source calls it %q: register it under that name", name, canon[0])
	}
	return nil
}

// end settles the worker's affairs and says that it has stopped. No handler runs any more.
func (w *worker) end(err error) {
	if w.onClaimed && w.env.cfg.OnRelease != nil {
		w.released()
	}
	if w.reader != nil {
		w.closeReader(w.reader, w.closeOnce)
	}
	w.mu.Lock()
	w.ended = true
	gaveUp := err != nil && !w.closing.Load()
	for _, t := range w.timers {
		t.Stop()
	}
	w.mu.Unlock()
	w.stopFetch()
	w.endClaim()
	w.cancel(rebalancer.ErrLost) // nothing of this claim goes on, whatever keeps the context
	if w.onDone != nil {
		w.onDone()
	}
	w.env.watch.changed()
	if gaveUp {
		w.env.post(coord.CannotOpen{Resource: w.claim.Resource, Fence: w.claim.Fence, Err: err})
		return
	}
	w.env.post(coord.Stopped{Resource: w.claim.Resource, Fence: w.claim.Fence})
}

// over tells whether nothing may be done under the claim any more.
func (w *worker) over() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ended || w.lost.Load()
}

// sleep waits; false when the resource is to be given back.
func (w *worker) sleep(d time.Duration) bool { return sleep(w.draining, d) }

// admit waits until the claim is trusted; false when the resource is to be given back instead. Past the trust the loss is
// only a moment away: the machine is told that time has passed.
func (w *worker) admit() bool {
	for {
		if w.closing.Load() {
			return false
		}
		if w.env.trusts(false) {
			return true
		}
		w.env.post(coord.Tick{})
		if !w.sleep(trustRecheck) {
			return false
		}
	}
}

// troubled notes why the resource does not get on; nil when it does again.
func (w *worker) troubled(err error) {
	if w.halted.Load() && !errors.Is(err, ErrHalted) {
		return
	}
	if err == nil {
		if w.err.Load() == nil {
			return
		}
		w.err.Store(nil)
	} else {
		w.err.Store(&err)
		w.lastErr.Store(&coord.LastError{Error: troubleText(err), At: time.Now().UnixMicro()})
	}
	w.env.watch.changed()
	if w.env.trouble != nil {
		w.env.trouble()
	}
}

func (w *worker) emit(e Event) {
	e.Resource, e.Fence = w.claim.Resource, w.claim.Fence
	w.env.emit(e)
}

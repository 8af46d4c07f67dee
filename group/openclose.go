package group

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/sources"
)

// claimed runs OnClaim until it succeeds; false when the resource is to be given back.
func (w *worker) claimed() bool {
	if w.env.cfg.OnClaim == nil {
		w.onClaimed = true
		return !w.closing.Load()
	}
	for n := 0; ; n++ {
		if !w.admit() {
			return false
		}
		err := w.guarded(func() error { return w.env.cfg.OnClaim(w.ctx, w.claim) })
		if err == nil {
			w.onClaimed = true
			w.troubled(nil)
			return !w.closing.Load()
		}
		err = fmt.Errorf("OnClaim of resource %q: %w", w.claim.Resource, err)
		w.troubled(err)
		w.emit(Event{Kind: KindFailed, Err: err, Attempt: n + 1})
		if !w.sleep(w.backoff(n)) {
			return false
		}
	}
}

// released runs OnRelease, with time to return; after a loss its context has ended.
func (w *worker) released() {
	// Not derived from w.ctx, which ended when the drain time was over: what OnRelease closes may still need time.
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(w.ctx))
	defer cancel(nil)
	w.mu.Lock()
	w.endRelease = cancel
	if w.lost.Load() {
		cancel(rebalancer.ErrLost)
	}
	w.mu.Unlock()
	ctx, done := context.WithTimeout(ctx, w.env.cfg.Grace)
	defer done()
	late := time.AfterFunc(2*w.env.cfg.Grace, w.checkStuck)
	defer late.Stop()
	ended := make(chan struct{})
	go func() { // of its own: it may end its goroutine, and the claim is to be given back all the same
		defer close(ended)
		if err := w.guarded(func() error { w.env.cfg.OnRelease(ctx, w.claim); return nil }); err != nil {
			w.emit(Event{Kind: KindFailed, Err: fmt.Errorf("OnRelease of resource %q: %w", w.claim.Resource, err)})
		}
	}()
	<-ended
}

// open opens the source. It returns no reader and no error when the resource is to be given back, and an error when this
// node cannot open it. A resource that does not exist is waited for.
func (w *worker) open() (sources.Reader, error) {
	for n, gone := 0, false; ; {
		if !w.admit() {
			return nil, nil
		}
		ctx, cancel := context.WithTimeout(w.fetchCtx, openTimeout)
		r, err := w.env.cfg.Source.Open(ctx, w.claim)
		cancel()
		if err == nil {
			if !w.keep(r) {
				return nil, nil
			}
			w.troubled(nil)
			w.emit(Event{Kind: KindStarted})
			return r, nil
		}
		if w.closing.Load() {
			return nil, nil
		}
		err = fmt.Errorf("source of resource %q cannot be opened: %w", w.claim.Resource, err)
		wait := w.env.cfg.Retry.Max
		switch {
		case !errors.Is(err, sources.ErrGone):
			if n++; n >= openTries {
				return nil, err
			}
			gone = false
			wait = w.backoff(n)
			w.trouble(err)
		case !gone:
			gone = true
			w.trouble(err)
		}
		if !w.sleep(wait) {
			return nil, nil
		}
	}
}

// trouble reports a failure of the source.
func (w *worker) trouble(err error) {
	w.troubled(err)
	w.emit(Event{Kind: KindSource, Err: err})
}

// keep takes an open reader; false when the resource is to be given back already.
func (w *worker) keep(r sources.Reader) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reader, w.closeOnce = r, new(sync.Once)
	return !w.closing.Load()
}

// closeReader closes a reader once, and waits for that when another goroutine does it.
func (w *worker) closeReader(r sources.Reader, once *sync.Once) {
	once.Do(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(w.ctx), closeTimeout)
		defer cancel()
		if err := r.Close(ctx); err != nil {
			w.emit(Event{Kind: KindSource, Err: fmt.Errorf("source of resource %q: close: %w", w.claim.Resource, err)})
		}
	})
}

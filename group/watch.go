package group

import (
	"context"
	"sync"
	"sync/atomic"
)

// watch wakes those who wait for a change of the status. It costs next to nothing while nobody does.
type watch struct {
	waiters atomic.Int32
	mu      sync.Mutex
	ch      chan struct{}
}

func (w *watch) changed() {
	if w.waiters.Load() == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ch != nil {
		close(w.ch)
		w.ch = nil
	}
}

func (w *watch) next() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ch == nil {
		w.ch = make(chan struct{})
	}
	return w.ch
}

// wait returns when until holds, or with ctx's error.
func (w *watch) wait(ctx context.Context, until func() bool) error {
	w.waiters.Add(1)
	defer w.waiters.Add(-1)
	for {
		next := w.next() // before the look, so that no change between the two is missed
		if until() {
			return nil
		}
		select {
		case <-next:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

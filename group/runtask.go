package group

import (
	"errors"
	"fmt"
	"time"
)

// errReturned is why Run's function is called again when it returned nil though nobody asked it to.
var errReturned = errors.New("returned before the resource was to be given back")

// runTask calls Run's function, again and again while the resource is held.
func (w *worker) runTask() error {
	for n := 0; ; n++ {
		if !w.admit() {
			return nil
		}
		began := time.Now()
		w.emit(Event{Kind: KindStarted})
		err := w.guarded(func() error { return w.env.task.run(w.ctx, w.claim) })
		if w.closing.Load() {
			return nil
		}
		if time.Since(began) > w.env.cfg.Retry.Max {
			n = 0 // it ran well for a while
		}
		if err == nil {
			err = errReturned
		}
		err = fmt.Errorf("function for resource %q: %w", w.claim.Resource, err)
		w.troubled(err)
		w.emit(Event{Kind: KindFailed, Attempt: n + 1, Err: err})
		if !w.sleep(w.backoff(n)) {
			return nil
		}
	}
}

package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/group"
)

// endings ends a consume after a number of messages, or after some time without one.
type endings struct {
	count int           // 0: no limit
	idle  time.Duration // 0: never
	stop  context.CancelCauseFunc
	// unlisted tells why there is no list of resources, nil when there is one; it may be nil itself.
	unlisted func() error

	mu      sync.Mutex
	status  func() group.Status
	trouble error // what stood in the way when nothing had come for a while
	running int
	done    int
	changed chan struct{} // closed and made anew when a place may have become free
	timer   *time.Timer
}

var (
	errCount = errors.New("the number of messages is reached")
	errIdle  = errors.New("no message came for a while")
)

func (e *endings) begin(status func() group.Status) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.status = status
	e.changed = make(chan struct{})
	if e.idle > 0 {
		e.timer = time.AfterFunc(e.idle, e.idled)
	}
}

func (e *endings) end() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.timer != nil {
		e.timer.Stop()
	}
}

// idled is called by the timer, which may have been started again meanwhile.
func (e *endings) idled() {
	trouble := troubleOf(e.status())
	if e.unlisted != nil {
		trouble = errors.Join(trouble, e.unlisted())
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.running == 0 {
		e.trouble = trouble
		e.stop(errIdle)
	}
}

// troubleOf is why a node without messages may have some all the same, nil when nothing is known to stand in the way.
func troubleOf(s group.Status) error {
	if !s.Applied {
		return fmt.Errorf("group %s was not joined within --exit-idle%s", s.Group, because(s.Waiting))
	}
	var errs []error
	for _, r := range s.Resources {
		if r.Err != nil {
			errs = append(errs, fmt.Errorf("resource %s does not get on: %w", r.Name, r.Err))
		}
	}
	return errors.Join(errs...)
}

func because(why string) string {
	if why == "" {
		return ""
	}
	return ": " + why
}

// unwell is why an end for want of messages is a failure.
func (e *endings) unwell() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.trouble
}

func (e *endings) worked() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.done
}

// wrap counts what h works. No more than count messages are worked, however many resources there are.
func (e *endings) wrap(h rebalancer.Handler) rebalancer.Handler {
	return func(ctx context.Context, m *rebalancer.Message) (err error) {
		if err := e.enter(ctx); err != nil {
			return err
		}
		ok := false
		defer func() { e.leave(ok) }()
		err = h(ctx, m)
		ok = err == nil
		return err
	}
}

// enter waits until the message may be worked. While the others may still reach the count it is not: it is then given
// back by the drain.
func (e *endings) enter(ctx context.Context) error {
	for {
		e.mu.Lock()
		if e.count == 0 || e.done+e.running < e.count {
			e.running++
			if e.timer != nil {
				e.timer.Stop()
			}
			e.mu.Unlock()
			return nil
		}
		changed := e.changed
		e.mu.Unlock()
		select {
		case <-changed:
		case <-rebalancer.Draining(ctx):
			return errCount
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (e *endings) leave(ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.running--
	if ok {
		e.done++
	}
	if e.timer != nil && e.running == 0 {
		e.timer.Reset(e.idle)
	}
	if e.count > 0 && e.done >= e.count {
		e.stop(errCount)
	}
	close(e.changed)
	e.changed = make(chan struct{})
}

package group

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/coord"
)

// hints collects addresses that were woken, each once, until the loop takes them: a storm of hints is one event.
type hints struct {
	mu      sync.Mutex
	waiting map[string]bool
	kick    chan struct{} // of capacity 1
}

// add never blocks.
func (h *hints) add(address string) {
	h.mu.Lock()
	h.waiting[address] = true
	h.mu.Unlock()
	select {
	case h.kick <- struct{}{}:
	default:
	}
}

// take empties the collection, in a fixed order.
func (h *hints) take() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := make([]string, 0, len(h.waiting))
	for a := range h.waiting {
		out = append(out, a)
	}
	clear(h.waiting)
	slices.Sort(out)
	return out
}

// listen keeps a subscription for as long as the session lives, and tries again when it cannot be had.
func (c *storeCalls) listen(a coord.Listen) {
	s, err := c.session(a.Session)
	if err != nil {
		return
	}
	c.wg.Add(1)
	go func() {
		defer c.wg.Done()
		for wait := time.Second; ; wait = min(2*wait, time.Minute) {
			err := s.Listen(s.ctx, a.Address, func() { c.hints.add(a.Address) })
			switch {
			case err == nil:
				c.hints.add(a.Address) // what was woken before it listened
				return
			case errors.Is(err, backends.ErrNoHints):
				c.post(coord.NoHints{})
				return
			case errors.Is(err, backends.ErrSessionLost), errors.Is(err, backends.ErrClosed):
				return // a renewal will tell
			}
			if !sleep(s.ctx.Done(), wait) {
				return
			}
		}
	}()
}

// sleep waits; false when end came first.
func sleep(end <-chan struct{}, d time.Duration) bool {
	if d <= 0 {
		select {
		case <-end:
			return false
		default:
			return true
		}
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-end:
		return false
	case <-t.C:
		return true
	}
}

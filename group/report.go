package group

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rebalancer-go/rebalancer/coord"
)

// fillStatus adds what the node knows to a status.
func (n *node) fillStatus(s *Status) {
	now := n.clock.refresh()
	n.mu.Lock()
	m := n.machine.Status()
	n.mu.Unlock()
	n.wmu.Lock()
	defer n.wmu.Unlock()
	s.State, s.Coordinator, s.Leading = m.State, m.Coordinator, m.Leading
	s.Epoch, s.Generation, s.Applied = m.Epoch, m.Generation, m.Applied
	s.Waiting, s.Awaited = m.Waiting, m.WaitingFor
	s.Members, s.Unplaced, s.Pending = m.Members, m.Unplaced, m.Pending
	s.Warnings = n.calls.about.warnings()
	if until := coord.Time(n.trust.Load()); until > now {
		s.TrustedUntil = n.clock.wall(until)
	}
	seen := make(map[workerKey]bool, len(m.Held))
	for _, h := range m.Held {
		r := ResourceStatus{Name: h.Resource, Fence: h.Fence, Since: n.clock.wall(h.Since), Phase: h.Phase, Stuck: h.Stuck, Paused: h.Paused}
		k := workerKey{h.Resource, h.Fence}
		seen[k] = true
		if w := n.workers[k]; w != nil {
			w.fillStatus(&r)
		}
		s.Resources = append(s.Resources, r)
	}
	for k, w := range n.workers {
		if !seen[k] { // it still works under a claim that is gone
			r := ResourceStatus{Name: k.resource, Fence: k.fence, Since: w.since, Phase: "lost"}
			w.fillStatus(&r)
			s.Resources = append(s.Resources, r)
		}
	}
	slices.SortFunc(s.Resources, func(a, b ResourceStatus) int {
		return strings.Compare(a.Name, b.Name)*2 + compare(a.Fence, b.Fence)
	})
}

func compare(a, b int64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func (w *worker) fillStatus(r *ResourceStatus) {
	r.InFlight = int(w.inFlight.Load())
	r.Draining = w.closing.Load()
	r.Stuck = r.Stuck || w.stuck.Load()
	if err := w.err.Load(); err != nil {
		r.Err = *err
	}
}

// ready tells why the node is not ready.
func (n *node) ready() error {
	if err := n.turns(); err != nil {
		return fmt.Errorf("%w: %w", ErrNotReady, err) // and do not wait for it
	}
	now := n.clock.refresh()
	n.mu.Lock()
	m := n.machine.Status()
	n.mu.Unlock()
	waiting := ""
	if m.Waiting != "" {
		waiting = ": " + m.Waiting
	}
	switch {
	case m.State != StateActive:
		return fmt.Errorf("%w: %s%s", ErrNotReady, m.State, waiting)
	case int64(now) >= n.trust.Load():
		return fmt.Errorf("%w: the node does not trust its claims: the store did not answer for too long", ErrNotReady)
	case !m.Applied:
		return fmt.Errorf("%w: no assignment yet%s", ErrNotReady, waiting)
	}
	return nil
}

// turns tells whether the loop turned when it was to.
func (n *node) turns() error {
	late := time.Duration(int64(n.clock.now()) - n.due.Load())
	if late > max(n.renewal, time.Second) {
		return fmt.Errorf("the group's loop has not turned for %v longer than it should", late.Round(time.Millisecond))
	}
	return nil
}

// standing tells which resources stand still.
func (n *node) standing() error {
	n.wmu.Lock()
	defer n.wmu.Unlock()
	var errs []error
	for k, w := range n.workers {
		switch {
		case w.stuck.Load():
			errs = append(errs, fmt.Errorf("resource %q: %w", k.resource, ErrStuck))
		case w.halted.Load():
			errs = append(errs, fmt.Errorf("resource %q: %w", k.resource, ErrHalted))
		}
	}
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(errs...)
}

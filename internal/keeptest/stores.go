// Package keeptest helps to run the suite of sources with files that stay where they are.
package keeptest

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/internal/checkpointtest"
	"github.com/rebalancer-go/rebalancer/internal/files/seen"
)

// Stores are the checkpoints of the resources of one fixture. The zero value is ready.
type Stores struct {
	mu   sync.Mutex
	each map[string]*checkpointtest.Store
}

// Of is that of one resource.
func (s *Stores) Of(resource string) *checkpointtest.Store {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.each == nil {
		s.each = map[string]*checkpointtest.Store{}
	}
	if s.each[resource] == nil {
		s.each[resource] = checkpointtest.New()
	}
	return s.each[resource]
}

// Claim is sourcetest.Fixture's Checkpoint.
func (s *Stores) Claim(resource string) rebalancer.Checkpoint { return s.Of(resource).Claim() }

// Names are those that are remembered with one of the outcomes, in order.
func (s *Stores) Names(tb testing.TB, resource string, outcomes ...seen.Outcome) (names []string) {
	tb.Helper()
	all, err := seen.Read(context.Background(), s.Of(resource).Owner())
	if err != nil {
		tb.Fatal(err)
	}
	for name, r := range all {
		if slices.Contains(outcomes, r.Outcome) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Worked is how many files are done or given up.
func (s *Stores) Worked(tb testing.TB, resource string) int {
	tb.Helper()
	return len(s.Names(tb, resource, seen.Done, seen.Failed))
}

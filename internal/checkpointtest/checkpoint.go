// Package checkpointtest has checkpoints in memory, with the faults that a store can have: calls that fail before they are
// applied or after, writes that arrive late, and owners who have lost their claim. For tests.
package checkpointtest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"

	"github.com/rebalancer-go/rebalancer"
)

// ErrInjected is wrapped by every error that this package makes up.
var ErrInjected = errors.New("injected fault")

// most is the size of the greatest value that a group's checkpoint takes.
const most = 64 << 10

// Fault says what becomes of a call. The zero Fault lets it pass.
type Fault struct {
	Before bool // fail without applying
	After  bool // apply, then lose the answer
	Late   bool // of a write: fail, and apply it when Arrive is called, if its checks hold then
}

// Store has the checkpoint of one resource. Make it with New. It is safe for concurrent use.
type Store struct {
	mu      sync.Mutex
	values  map[string]rebalancer.CheckpointEntry
	version int64
	fence   int64
	late    []func()
	plan    func(call string) Fault
	saves   int
	bytes   int
}

// New makes an empty one.
func New() *Store { return &Store{values: map[string]rebalancer.CheckpointEntry{}} }

// Claim takes the resource: what was claimed before is refused from now on. Fences begin at 1.
func (s *Store) Claim() *Checkpoint {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fence++
	return &Checkpoint{s, s.fence}
}

// Owner is the checkpoint under the claim that stands, for those who look.
func (s *Store) Owner() *Checkpoint {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &Checkpoint{s, s.fence}
}

// Plan decides about all calls from now on: "load" or "save". nil ends all faults.
func (s *Store) Plan(decide func(call string) Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.plan = decide
}

// Arrive applies the late writes, in the order of their calls, those whose claim and checks hold.
func (s *Store) Arrive() {
	s.mu.Lock()
	defer s.mu.Unlock()
	late := s.late
	s.late = nil
	for _, apply := range late {
		apply()
	}
}

// Values is a copy of all values.
func (s *Store) Values() map[string][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make(map[string][]byte, len(s.values))
	for k, e := range s.values {
		out[k] = e.Value
	}
	return out
}

// Set replaces all values, as a damage or a loss of data would.
func (s *Store) Set(values map[string][]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.values)
	for k, v := range values {
		s.version++
		s.values[k] = rebalancer.CheckpointEntry{Value: v, Version: s.version}
	}
}

// Saves is how many writes were applied, and how many bytes of values they had.
func (s *Store) Saves() (writes, bytes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.saves, s.bytes
}

// Checkpoint is a rebalancer.VersionedCheckpoint under one claim.
type Checkpoint struct {
	s     *Store
	fence int64
}

var _ rebalancer.VersionedCheckpoint = (*Checkpoint)(nil)

// Fence is that of the claim.
func (c *Checkpoint) Fence() int64 { return c.fence }

// Load reads all keys.
func (c *Checkpoint) Load(ctx context.Context) (map[string][]byte, error) {
	entries, err := c.LoadEntries(ctx)
	if err != nil {
		return nil, err
	}
	out := make(map[string][]byte, len(entries))
	for k, e := range entries {
		out[k] = e.Value
	}
	return out, nil
}

// LoadEntries reads some keys, or all.
func (c *Checkpoint) LoadEntries(ctx context.Context, keys ...string) (map[string]rebalancer.CheckpointEntry, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	if f := c.s.decide("load"); f != (Fault{}) {
		return nil, fmt.Errorf("%w: load", ErrInjected)
	}
	if c.fence != c.s.fence {
		return nil, fmt.Errorf("load: %w", rebalancer.ErrLost)
	}
	if len(keys) == 0 {
		return maps.Clone(c.s.values), nil
	}
	out := map[string]rebalancer.CheckpointEntry{}
	for _, k := range keys {
		if e, ok := c.s.values[k]; ok {
			out[k] = e
		}
	}
	return out, nil
}

// Save writes the changes in one write.
func (c *Checkpoint) Save(ctx context.Context, changes map[string][]byte) error {
	_, err := c.SaveIf(ctx, nil, changes)
	return err
}

// SaveIf writes the changes if the checks hold.
func (c *Checkpoint) SaveIf(ctx context.Context, checks map[string]int64, changes map[string][]byte) (map[string]int64, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for k, v := range changes {
		if k == "" || len(v) > most {
			return nil, fmt.Errorf("value of %q has %d bytes: at most %d are allowed", k, len(v), most)
		}
	}
	checks, changes = maps.Clone(checks), maps.Clone(changes)
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	f := c.s.decide("save")
	switch {
	case f.Before:
		return nil, fmt.Errorf("%w: save failed before it was applied", ErrInjected)
	case f.Late:
		c.s.late = append(c.s.late, func() { _, _ = c.apply(checks, changes) })
		return nil, fmt.Errorf("%w: save is late", ErrInjected)
	}
	versions, err := c.apply(checks, changes)
	if f.After {
		return nil, fmt.Errorf("%w: the answer to a save is lost", ErrInjected)
	}
	return versions, err
}

func (s *Store) decide(call string) Fault {
	if s.plan == nil {
		return Fault{}
	}
	return s.plan(call)
}

// apply carries a write out; the lock is held.
func (c *Checkpoint) apply(checks map[string]int64, changes map[string][]byte) (map[string]int64, error) {
	if c.fence != c.s.fence {
		return nil, fmt.Errorf("save: %w", rebalancer.ErrLost)
	}
	for k, v := range checks {
		if c.s.values[k].Version != v {
			return nil, fmt.Errorf("save: %q: %w", k, rebalancer.ErrStale)
		}
	}
	c.s.version++
	c.s.saves++
	versions := map[string]int64{}
	for k, v := range changes {
		if v == nil {
			delete(c.s.values, k)
			continue
		}
		c.s.bytes += len(v)
		versions[k] = c.s.version
		c.s.values[k] = rebalancer.CheckpointEntry{Value: append([]byte{}, v...), Version: c.s.version}
	}
	return versions, nil
}

package seen

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/rebalancer-go/rebalancer"
)

const (
	// Prefix is before all keys that the state has in a resource's checkpoint; the rest is free for others.
	Prefix = "files.seen/"
	// MaxNames is how many names a resource can have.
	MaxNames = 200_000
	// MaxName is the length of the longest, in bytes.
	MaxName = maxName
	// DefaultPace is the least time between two writes.
	DefaultPace = 200 * time.Millisecond

	keyHead     = Prefix + "head"
	keyJournal  = Prefix + "journal"
	prefixChunk = Prefix + "chunk/"

	journalMost = 256 // names
	paceMost    = 100 // settlements that do not wait for others
)

func chunkKey(number uint32) string { return prefixChunk + strconv.FormatUint(uint64(number), 10) }

// Options say what a State is for.
type Options struct {
	Resource string // of the claim
	Fence    int64  // of the claim
	// Pace is the least time between the starts of two writes of fewer than 100 settlements. 0: DefaultPace; negative: none.
	Pace time.Duration
	// Hurry, when it is closed, ends all waits for Pace. nil: nothing does.
	Hurry <-chan struct{}
	// Logger is told when a listing is not believed and when names are forgotten. nil: nobody is.
	Logger *slog.Logger

	// Most is how many names the resource can have. 0: MaxNames.
	Most int
}

// State is what is known of the files of one resource. Make it with Open. Look, Room and a listing may run beside a Settle; of
// several writers one writes at a time.
type State struct {
	cp  rebalancer.VersionedCheckpoint
	opt Options

	writing chan struct{} // held by the writer, also across calls of the store; guards the next block
	nonce   uint64
	seq     uint64 // of the last head that was tried to write
	applied uint64 // of the head that is in the store
	headV   int64  // the versions that the next write relies on
	jourV   int64
	next    uint32              // the next chunk's number
	trash   []uint32            // chunks that were perhaps written and that no head has
	unsure  bool                // the store may not be as the last write left it
	tried   map[uint64]*rewrite // what may still arrive at the store, by seq
	broken  error               // another State has taken over
	lastPut time.Time

	chunksMost int // maxChunks, but in tests

	mu sync.Mutex // guards the rest; never held across a call of the store
	table
	listing   uint32          // the number of the last listing that began
	names     int             // that the last plausible one had
	returned  map[string]bool // names that are there, and missing as the store has it
	stale     int             // entries whose absence the store does not have
	forget    int             // entries that can go
	lastTidy  time.Time
	listedOld int // names as the store has it
}

// Look returns what is known of a name.
func (s *State) Look(name string) (Record, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.find(name); e != nil {
		return e.Record, true
	}
	return Record{}, false
}

// Len returns how many names are known.
func (s *State) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.count
}

// Room returns how many names that are not known can still be settled, however long they are.
func (s *State) Room() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	// Chunks are divided when they are full, so they can all be half empty before the head has no room for more.
	free := s.chunksMost * (fill / 2)
	for _, l := range s.leaves {
		free -= l.size
	}
	for name := range s.young {
		free -= len(name) + mostRecord
	}
	return max(0, min(s.opt.Most-s.count, free/(maxName+mostRecord)))
}

// Full is the error of a resource that has no room.
func (s *State) Full() error {
	return fmt.Errorf("resource %q has %d worked files that are kept: %w", s.opt.Resource, s.Len(), ErrFull)
}

// lock waits for other writers.
func (s *State) lock(ctx context.Context) error {
	select {
	case s.writing <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *State) unlock() { <-s.writing }

// pace waits before a write of n settlements.
func (s *State) pace(ctx context.Context, n int) error {
	wait := time.Until(s.lastPut.Add(s.opt.Pace))
	if wait <= 0 || n >= paceMost {
		return nil
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
	case <-s.opt.Hurry:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

func (s *State) wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("memory of the worked files of resource %q: %w", s.opt.Resource, err)
}

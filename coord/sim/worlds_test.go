package sim

import (
	"bytes"
	"flag"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var (
	seedFlag   = flag.Int64("seed", -1, "run this world alone, with its history if -v")
	firstFlag  = flag.Int64("first", 0, "the first seed of -worlds")
	worldsFlag = flag.Int64("worlds", 300, "how many worlds to run")
	stepsFlag  = flag.Int("steps", 2_000_000, "give up a world after so many steps of its machines")
)

// TestWorlds runs many worlds. None may break a promise.
func TestWorlds(t *testing.T) {
	t.Parallel()
	if *seedFlag >= 0 {
		replay(t, *seedFlag)
		return
	}
	var next, bad atomic.Int64
	next.Store(*firstFlag)
	var mu sync.Mutex
	var total totals
	var slowest time.Duration
	var slowestSeed int64
	var wg sync.WaitGroup
	begin := time.Now()
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for bad.Load() < 3 {
				seed := next.Add(1) - 1
				if seed >= *firstFlag+*worldsFlag {
					return
				}
				s := NewSetup(seed)
				faults := NewSchedule(&s)
				w := NewWorld(s, faults)
				w.limit = *stepsFlag
				one := time.Now()
				if v := w.Run(); v != nil {
					bad.Add(1)
					t.Errorf("%s", Report(s, faults, v))
				}
				mu.Lock()
				total.add(seed, &s, w.Stats())
				if d := time.Since(one); d > slowest {
					slowest, slowestSeed = d, seed
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	t.Logf("%d worlds in %v: %+v; longest time to settle %.1f ttl (seed %d); slowest %v (seed %d)", *worldsFlag, time.Since(begin).Round(time.Millisecond),
		total.Stats, total.longest, total.longestSeed, slowest, slowestSeed)
}

func replay(t *testing.T, seed int64) {
	s := NewSetup(seed)
	faults := NewSchedule(&s)
	w := NewWorld(s, faults)
	if testing.Verbose() {
		w.Record(os.Stdout)
	}
	if v := w.Run(); v != nil {
		t.Errorf("%s", Report(s, faults, v))
	}
	t.Logf("%+v", w.Stats())
}

// TestSameSeedSameHistory: a world is a function of its seed, byte for byte.
func TestSameSeedSameHistory(t *testing.T) {
	t.Parallel()
	for seed := range int64(5) {
		var logs [2]bytes.Buffer
		for i := range logs {
			s := NewSetup(seed)
			w := NewWorld(s, NewSchedule(&s))
			w.Record(&logs[i])
			w.Run()
		}
		if !bytes.Equal(logs[0].Bytes(), logs[1].Bytes()) {
			t.Errorf("two runs of seed %d differ; replay: go test ./coord/sim -run TestSameSeedSameHistory", seed)
		}
		if logs[0].Len() == 0 {
			t.Errorf("seed %d has no history", seed)
		}
	}
}

// totals sums up what many worlds did.
type totals struct {
	Stats
	longest     float64 // to settle, in ttls
	longestSeed int64
}

func (t *totals) add(seed int64, s *Setup, x Stats) {
	t.Steps += x.Steps
	t.Faults += x.Faults
	t.Claims += x.Claims
	t.Rebalances += x.Rebalances
	t.Elections += x.Elections
	t.Fenced += x.Fenced
	t.Losses += x.Losses
	if l := float64(x.Settled) / float64(s.TTL); l > t.longest {
		t.longest, t.longestSeed = l, seed
	}
}

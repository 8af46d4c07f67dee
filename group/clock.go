package group

import (
	"sync/atomic"
	"time"

	"github.com/rebalancer-go/rebalancer/coord"
)

const (
	// clockStart is the node's time when its clock starts: not 0, which the machine takes for "no such moment".
	clockStart = int64(time.Second)
	// bootEvery is how old the last reading of the clock that counts suspended time may be when a message is delivered.
	bootEvery = int64(10 * time.Millisecond)
	// driftLimit: wall and monotonic time that drifted further apart than this since that reading ask for another one.
	driftLimit = int64(5 * time.Millisecond)
)

// clock is the node's time: the larger advance, since the clock was made, of Go's monotonic clock and of the one that
// counts suspended time. It is safe for concurrent use and never goes back.
type clock struct {
	start     time.Time
	wallStart int64                // start on the wall clock, in nanoseconds
	boot      func() (int64, bool) // reads the clock that counts suspended time; nil where there is none
	base      int64                // what boot said when start was taken

	skew  atomic.Int64 // how far boot has advanced beyond the monotonic clock
	drift atomic.Int64 // how far the wall clock had, at the last reading of boot
	read  atomic.Int64 // when that was, on the monotonic clock
}

// newClock makes a clock. boot is nil, or a test's own clock; then the system's is not used.
func newClock(boot func() (int64, bool)) *clock {
	c := &clock{start: time.Now(), boot: boot}
	c.wallStart = c.start.UnixNano()
	if boot == nil && !virtualTime() {
		c.boot = readBoot
	}
	if c.boot != nil {
		base, ok := c.boot()
		if !ok {
			c.boot = nil
		}
		c.base = base
	}
	return c
}

// now is the node's time. It reads the monotonic clock, and the other one only when that is due.
func (c *clock) now() coord.Time {
	t := time.Now()
	mono := int64(t.Sub(c.start))
	if c.boot == nil {
		return coord.Time(clockStart + mono)
	}
	drift := t.UnixNano() - c.wallStart - mono
	moved := drift - c.drift.Load()
	if mono-c.read.Load() > bootEvery || moved > driftLimit || moved < -driftLimit {
		c.look(mono, drift)
	}
	return coord.Time(clockStart + mono + c.skew.Load())
}

// refresh is now with a fresh reading of both clocks.
func (c *clock) refresh() coord.Time {
	if c.boot != nil {
		t := time.Now()
		mono := int64(t.Sub(c.start))
		c.look(mono, t.UnixNano()-c.wallStart-mono)
	}
	return c.now()
}

// look reads the clock that counts suspended time. A thread that is held up between the two readings makes the skew too
// large, which is safe, and rare: it is read again.
func (c *clock) look(mono, drift int64) {
	var skew int64
	for range 3 {
		boot, ok := c.boot()
		if !ok {
			return
		}
		skew = boot - c.base - mono
		after := int64(time.Since(c.start))
		if after-mono < int64(time.Millisecond) {
			break
		}
		mono = after
	}
	for {
		old := c.skew.Load()
		if skew <= old || c.skew.CompareAndSwap(old, skew) {
			break
		}
	}
	c.drift.Store(drift)
	c.read.Store(mono)
}

// wall is the wall clock's time at a moment of the node's.
func (c *clock) wall(at coord.Time) time.Time {
	return time.Now().Add(time.Duration(at - c.now()))
}

package group

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rebalancer-go/rebalancer/coord"
)

func TestClockTakesTheLargerAdvance(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var suspended time.Duration
		reads := 0
		c := newClock(func() (int64, bool) { reads++; return int64(time.Since(began)+suspended) + 12345, true })
		start := c.now()
		time.Sleep(time.Minute)
		suspended = time.Hour
		if d := c.now() - start; d != coord.Time(time.Minute+time.Hour) {
			t.Fatalf("advanced by %v", time.Duration(d))
		}
		n := reads
		_ = c.now()
		if reads != n {
			t.Fatal("read although it was read a moment ago")
		}
		suspended = 2 * time.Hour
		if d := c.refresh() - start; d != coord.Time(time.Minute+2*time.Hour) {
			t.Fatalf("advanced by %v", time.Duration(d))
		}
		suspended = 0 // it may not go back
		if d := c.refresh() - start; d != coord.Time(time.Minute+2*time.Hour) {
			t.Fatalf("went back to %v", time.Duration(d))
		}
		if w := c.wall(c.now() + coord.Time(time.Second)); time.Until(w) != time.Second {
			t.Fatalf("wall time: %v", w)
		}
	})
}

func TestClockInABubble(t *testing.T) {
	t.Parallel()
	if c := newClock(nil); c.boot != nil && virtualTime() {
		t.Fatal("takes the real time for virtual")
	}
	synctest.Test(t, func(t *testing.T) {
		c := newClock(nil)
		if c.boot != nil {
			t.Fatal("the machine's clock is used in virtual time")
		}
		start := c.now()
		time.Sleep(time.Hour)
		if d := c.now() - start; d != coord.Time(time.Hour) {
			t.Fatalf("advanced by %v", time.Duration(d))
		}
	})
}

// TestClockSeesDrift: wall and monotonic time drifted apart, so the other clock is read before its time.
func TestClockSeesDrift(t *testing.T) {
	t.Parallel()
	var boot int64
	c := newClock(func() (int64, bool) { return boot, true })
	_ = c.refresh()
	boot += int64(time.Hour)
	c.drift.Add(2 * driftLimit) // as if the wall clock had been stepped back since
	c.read.Store(int64(time.Since(c.start)))
	if d := c.now(); d < coord.Time(time.Hour) {
		t.Fatalf("the clock stands at %v", time.Duration(d))
	}
}

// TestSystemClock: a group works on the machine's own clocks too.
func TestSystemClock(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_ = w.source.Send("q", "1", "2")
	r := w.start(w.config("a", "q"), nil)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := w.source.Idle(ctx); err != nil {
		t.Fatal(err)
	}
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
}

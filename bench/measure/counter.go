package measure

import (
	"runtime"
	"sync/atomic"
	"time"
)

// warm is how many messages go by before the measuring begins.
const warm = 1024

// counter counts handled messages, from any goroutine, and measures from the one after the warm-up to the last.
type counter struct {
	from, to int64
	seen     atomic.Int64
	end      func()

	began, ended   time.Time
	before, after  runtime.MemStats
	first, counted int64
}

func newCounter(n int, end func()) *counter {
	return &counter{from: warm, to: int64(n) + warm, end: end}
}

func (c *counter) add(n int) {
	now := c.seen.Add(int64(n))
	was := now - int64(n)
	if was < c.from && now >= c.from {
		runtime.ReadMemStats(&c.before)
		c.first, c.began = now, time.Now()
	}
	if was < c.to && now >= c.to {
		c.ended, c.counted = time.Now(), now-c.first
		runtime.ReadMemStats(&c.after)
		c.end()
	}
}

// cost is that of one message. Call it when the group has ended.
func (c *counter) cost() Cost {
	return Cost{
		Time:   c.ended.Sub(c.began) / time.Duration(c.counted),
		Allocs: float64(c.after.Mallocs-c.before.Mallocs) / float64(c.counted),
	}
}

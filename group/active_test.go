package group

import (
	"slices"
	"testing"
	"time"
)

// activeOf is the configuration of a node of a group with one active node.
func (c *cast) activeOf(node string, priority int, resources ...string) Config {
	c.active = 1
	cfg := c.config(node, resources...)
	cfg.MaxActive, cfg.Priority = 1, priority
	return cfg
}

// worker is the process that works all n resources; nil when there is none.
func (c *cast) worker(n int) *proc {
	for _, p := range c.procs {
		if !p.dead && len(p.works()) == n {
			return p
		}
	}
	return nil
}

// TestSingleActiveNode: the active one crashes, again and again; another takes over, and never two work at once.
func TestSingleActiveNode(t *testing.T) {
	castOf(t, func(t *testing.T, c *cast) {
		for _, n := range names(5) {
			c.proc(n, c.activeOf(n, 0, names(4)...))
		}
		c.within(time.Minute, "one works", func() bool { return c.worker(4) != nil })
		for range 4 {
			time.Sleep(time.Minute)
			was := c.worker(4)
			was.crash()
			d := c.within(DefaultTTL+250*time.Millisecond, "another one works", func() bool { return c.worker(4) != nil })
			t.Logf("after the crash of %s, %s took over in %v", was.label, c.worker(4).label, d)
		}
	})
}

// TestActiveNodeLeaves: a graceful stop hands over at once.
func TestActiveNodeLeaves(t *testing.T) {
	castOf(t, func(t *testing.T, c *cast) {
		for _, n := range names(3) {
			c.proc(n, c.activeOf(n, 0, names(4)...))
		}
		c.within(time.Minute, "one works", func() bool { return c.worker(4) != nil })
		for range 2 {
			was := c.worker(4)
			was.slow = time.Second // what drains is not worked twice
			if err := was.ends(); err != nil {
				t.Fatal(err)
			}
			c.within(3*time.Second, "another one works", func() bool { return c.worker(4) != nil && c.worker(4) != was })
		}
	})
}

// TestNoFailBack: a better node that comes, or comes back, does not take over from one that is well.
func TestNoFailBack(t *testing.T) {
	castOf(t, func(t *testing.T, c *cast) {
		low := c.proc("low", c.activeOf("low", 0, names(4)...))
		c.share(time.Minute, map[*proc]int{low: 4})
		mark := time.Now()
		high := c.proc("high", c.activeOf("high", 9, names(4)...))
		mid := c.proc("mid", c.activeOf("mid", 5, names(4)...))
		time.Sleep(5 * time.Minute)
		c.nothingMoved(mark)
		low.crash()
		c.share(DefaultTTL+250*time.Millisecond, map[*proc]int{high: 4, mid: 0})
	})
}

func TestFailBack(t *testing.T) {
	castOf(t, func(t *testing.T, c *cast) {
		cfg := func(node string, priority int) Config {
			cfg := c.activeOf(node, priority, names(4)...)
			cfg.FailBack = true
			return cfg
		}
		low := c.proc("low", cfg("low", 0))
		low.slow = 10 * time.Second
		c.share(time.Minute, map[*proc]int{low: 4})
		high := c.proc("high", cfg("high", 9))
		c.share(time.Minute, map[*proc]int{low: 0, high: 4})
		if err := high.ends(); err != nil {
			t.Fatal(err)
		}
		c.share(5*time.Second, map[*proc]int{low: 4})
	})
}

// TestTwoActiveNodes: the rest stands by.
func TestTwoActiveNodes(t *testing.T) {
	castOf(t, func(t *testing.T, c *cast) {
		c.active = 2
		for i, n := range names(4) {
			cfg := c.config(n, names(6)...)
			cfg.MaxActive, cfg.Priority = 2, i
			c.proc(n, cfg)
		}
		shares := func() []int {
			var out []int
			for _, p := range c.procs {
				out = append(out, len(p.works()))
			}
			slices.Sort(out)
			return out
		}
		c.within(time.Minute, "two work three each", func() bool { return slices.Equal(shares(), []int{0, 0, 3, 3}) })
		i := slices.IndexFunc(c.procs, func(p *proc) bool { return len(p.works()) > 0 })
		c.procs[i].crash()
		// The resources of the dead one do not go to the other active one for good: a third takes over from it.
		c.within(2*DefaultTTL, "two work three each again", func() bool { return slices.Equal(shares(), []int{0, 0, 3, 3}) })
	})
}

// TestDrainedActiveNode: the active one is drained; the next works, and the drained one does not come back for it.
func TestDrainedActiveNode(t *testing.T) {
	castOf(t, func(t *testing.T, c *cast) {
		a := c.proc("a", c.activeOf("a", 1, names(4)...))
		c.share(time.Minute, map[*proc]int{a: 4})
		b := c.proc("b", c.activeOf("b", 0, names(4)...))
		b.wait("active", func(s Status) bool { return s.State == StateActive })
		a.Drain()
		c.share(5*time.Second, map[*proc]int{a: 0, b: 4})
		mark := time.Now()
		a.Undrain()
		time.Sleep(time.Minute)
		c.nothingMoved(mark)
	})
}

// TestMaxActiveWithStaticNames: the active node restarts; it stays the active one.
func TestMaxActiveWithStaticNames(t *testing.T) {
	castOf(t, func(t *testing.T, c *cast) {
		cfg := func(node string) Config {
			cfg := c.activeOf(node, 0, names(4)...)
			cfg.Static = true
			return cfg
		}
		a, b := c.proc("a", cfg("a")), c.proc("b", cfg("b"))
		c.within(time.Minute, "one works", func() bool { return c.worker(4) != nil })
		was := c.worker(4)
		mark := time.Now()
		if err := was.ends(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		c.nothingMoved(mark)
		again := c.proc("again", cfg(was.cfg.Node))
		c.share(3*time.Second, map[*proc]int{again: 4})
		if err := again.ends(); err != nil {
			t.Fatal(err)
		}
		other := a
		if was == a {
			other = b
		}
		c.share(DefaultTTL+5*time.Second, map[*proc]int{other: 4})
	})
}

package group

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer"
)

// trio starts three static nodes that work three of nine resources each.
func (c *cast) trio() (x, y, z *proc) {
	c.t.Helper()
	all := names(9)
	x, y, z = c.proc("x", c.static("x", all...)), c.proc("y", c.static("y", all...)), c.proc("z", c.static("z", all...))
	c.share(time.Minute, map[*proc]int{x: 3, y: 3, z: 3})
	return x, y, z
}

// each runs a test for each role of the node that it is about: the coordinator, and another one.
func each(t *testing.T, f func(t *testing.T, c *cast, who *proc, others []*proc)) {
	for name, leads := range map[string]bool{"coordinator": true, "other": false} {
		t.Run(name, func(t *testing.T) {
			castOf(t, func(t *testing.T, c *cast) {
				x, y, z := c.trio()
				all := []*proc{x, y, z}
				i := slices.IndexFunc(all, func(p *proc) bool { return p.Status().Leading == leads })
				who := all[i]
				f(t, c, who, slices.Delete(all, i, i+1))
			})
		})
	}
}

func TestStaticRestartAfterACrash(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, c *cast, who *proc, others []*proc) {
		share := who.works()
		time.Sleep(10 * time.Second)
		mark := time.Now()
		who.crash()
		time.Sleep(5 * time.Second)
		again := c.proc("again", c.static(who.cfg.Node, names(9)...))
		took := c.share(DefaultTTL, map[*proc]int{again: 3})
		t.Logf("back after %v", took)
		time.Sleep(2 * DefaultTTL)
		if got := again.works(); !slices.Equal(got, share) {
			t.Errorf("share %q, before %q", got, share)
		}
		c.nothingMoved(mark, again)
	})
}

func TestStaticRestartAfterAStop(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, c *cast, who *proc, others []*proc) {
		share := who.works()
		mark := time.Now()
		if err := who.ends(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(DefaultTTL - 5*time.Second)
		again := c.proc("again", c.static(who.cfg.Node, names(9)...))
		c.share(3*time.Second, map[*proc]int{again: 3})
		time.Sleep(2 * DefaultTTL)
		if got := again.works(); !slices.Equal(got, share) {
			t.Errorf("share %q, before %q", got, share)
		}
		c.nothingMoved(mark, again)
	})
}

func TestStaticThatStaysAway(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(*proc){"crash": (*proc).crash, "stop": func(p *proc) { _ = p.ends() }} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, c *cast, who *proc, others []*proc) {
				mark := time.Now()
				leave(who)
				// A crashed node's session may have been renewed up to a renewal ago.
				time.Sleep(DefaultTTL - DefaultTTL/6 - time.Second)
				c.nothingMoved(mark)
				all := 0
				c.within(DefaultTTL/6+4*time.Second, "everything is worked", func() bool {
					all = len(others[0].works()) + len(others[1].works())
					return all == 9
				})
			})
		})
	}
}

// TestReservedShareOutlivesTheCoordinator: the one that wrote it down leaves before it ends.
func TestReservedShareOutlivesTheCoordinator(t *testing.T) {
	castOf(t, func(t *testing.T, c *cast) {
		x, y, z := c.trio()
		all := []*proc{x, y, z}
		i := slices.IndexFunc(all, func(p *proc) bool { return !p.Status().Leading })
		who := all[i]
		share, mark := who.works(), time.Now()
		if err := who.ends(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		j := slices.IndexFunc(all, func(p *proc) bool { return p.Status().Leading })
		if err := all[j].ends(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		c.nothingMoved(mark)
		again := c.proc("again", c.static(who.cfg.Node, names(9)...))
		c.share(3*time.Second, map[*proc]int{again: 3})
		if got := again.works(); !slices.Equal(got, share) {
			t.Errorf("share %q, before %q", got, share)
		}
		c.nothingMoved(mark, again)
		c.within(2*DefaultTTL, "the coordinator's share moves in the end", func() bool {
			return len(again.works())+len(all[3-i-j].works()) == 9
		})
	})
}

// TestSuperseded: a second process of a name takes over from one that works; the older one hands over and ends.
func TestSuperseded(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, c *cast, who *proc, others []*proc) {
		share, mark := who.works(), time.Now()
		again := c.proc("again", c.static(who.cfg.Node, names(9)...))
		if err := who.ended(); !errors.Is(err, ErrSuperseded) {
			t.Fatalf("the older one: %v", err)
		}
		c.share(5*time.Second, map[*proc]int{again: 3})
		time.Sleep(2 * DefaultTTL)
		if got := again.works(); !slices.Equal(got, share) {
			t.Errorf("share %q, before %q", got, share)
		}
		c.nothingMoved(mark, again)
	})
}

// TestSupersededDrains: what the older process works is worked to its end before the newer one begins.
func TestSupersededDrains(t *testing.T) {
	castOf(t, func(t *testing.T, c *cast) {
		x := c.proc("x", c.static("x", names(3)...))
		x.slow = DefaultDrain / 2
		c.share(time.Minute, map[*proc]int{x: 3})
		again := c.proc("again", c.static("x", names(3)...))
		if d := c.share(DefaultTTL+5*time.Second, map[*proc]int{again: 3}); d < x.slow {
			t.Errorf("taken over after %v", d)
		}
		if err := x.ended(); !errors.Is(err, ErrSuperseded) {
			t.Fatalf("the older one: %v", err)
		}
	})
}

// TestThawedOldProcess: the old process is away from the store while a newer one takes its name. It does not come back,
// whenever it wakes up; until it gives back what it held, or its session ends, the newer one waits.
func TestThawedOldProcess(t *testing.T) {
	t.Parallel()
	for name, away := range map[string]time.Duration{"soon": 8 * time.Second, "after its session": 3 * DefaultTTL} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, c *cast, who *proc, others []*proc) {
				mark := time.Now()
				who.cut()
				time.Sleep(3 * time.Second)
				again := c.proc("again", c.static(who.cfg.Node, names(9)...))
				time.Sleep(2 * time.Second)
				if w := again.works(); len(w) > 0 {
					t.Fatalf("works %q, which the old session holds", w)
				}
				time.Sleep(away - 5*time.Second)
				who.mend()
				if err := who.ended(); !errors.Is(err, ErrSuperseded) {
					t.Fatalf("the older one: %v", err)
				}
				c.share(2*time.Second, map[*proc]int{again: 3})
				time.Sleep(2 * DefaultTTL)
				c.share(0, map[*proc]int{again: 3})
				c.nothingMoved(mark, again)
			})
		})
	}
}

// TestSupersededSettles: with a source, no message is handed out to two readers at once, and none is lost.
func TestSupersededSettles(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		cfg := w.config("a", "q")
		cfg.Static = true
		h := func(_ context.Context, m *rebalancer.Message) error {
			time.Sleep(time.Second)
			w.note("a", m)
			return nil
		}
		var bodies []string
		bodies = append(bodies, names(20)...)
		_ = w.source.Send("q", bodies...)
		var last *running
		for range 4 {
			next := w.start(cfg, h)
			next.holds("q")
			if last != nil {
				if err := <-last.done; !errors.Is(err, ErrSuperseded) {
					t.Fatalf("the older one: %v", err)
				}
			}
			time.Sleep(2500 * time.Millisecond)
			last = next
		}
		w.idle()
		if got := w.bodies("q"); !slices.Equal(got, bodies) {
			t.Errorf("worked %q", got)
		}
		if n := w.source.Overlaps(); n > 0 {
			t.Errorf("%d overlaps", n)
		}
		_ = last.end()
	})
}

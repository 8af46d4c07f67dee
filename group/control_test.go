package group

import (
	"slices"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/coord"
)

// pausedAt tells whether a process holds a resource that is paused there.
func (p *proc) pausedAt(resource string) bool {
	return slices.ContainsFunc(p.Status().Resources, func(r ResourceStatus) bool { return r.Name == resource && r.Paused })
}

// holdsAny tells whether a process holds a claim of a resource, worked or not.
func (p *proc) holdsAny(resource string) bool {
	return slices.ContainsFunc(p.Status().Resources, func(r ResourceStatus) bool { return r.Name == resource })
}

// TestPauseKeepsTheClaim: the work stops, the claim stays, and the work goes on at once.
func TestPauseKeepsTheClaim(t *testing.T) {
	castOf(t, func(t *testing.T, c *cast) {
		a, b := c.proc("a", c.config("a", names(4)...)), c.proc("b", c.config("b", names(4)...))
		c.share(time.Minute, map[*proc]int{a: 2, b: 2})
		r := a.works()[0]
		fence := fenceOf(a, r)
		c.control(coord.PauseKey(r), coord.Control{Resource: r, Keep: true})
		c.within(5*time.Second, "the work stops", func() bool { return !slices.Contains(a.works(), r) && a.pausedAt(r) })
		mark := time.Now()
		time.Sleep(3 * DefaultTTL)
		if f := fenceOf(a, r); f != fence {
			t.Fatalf("fence %d, before %d", f, fence)
		}
		c.nothingMoved(mark)
		c.operator(nil, coord.PauseKey(r))
		c.within(2*time.Second, "the work goes on", func() bool { return slices.Contains(a.works(), r) && !a.pausedAt(r) })
		if f := fenceOf(a, r); f != fence {
			t.Fatalf("fence %d, before %d", f, fence)
		}
		c.nothingMoved(mark, a)
	})
}

func fenceOf(p *proc, resource string) int64 {
	for _, r := range p.Status().Resources {
		if r.Name == resource {
			return r.Fence
		}
	}
	return 0
}

// TestPauseSurvives: a paused resource stays paused when its node goes and when all do.
func TestPauseSurvives(t *testing.T) {
	for name, keep := range map[string]bool{"keep": true, "release": false} {
		t.Run(name, func(t *testing.T) {
			castOf(t, func(t *testing.T, c *cast) {
				a, b := c.proc("a", c.config("a", names(4)...)), c.proc("b", c.config("b", names(4)...))
				c.share(time.Minute, map[*proc]int{a: 2, b: 2})
				r := a.works()[0]
				c.control(coord.PauseKey(r), coord.Control{Resource: r, Keep: keep})
				c.within(5*time.Second, "the work stops", func() bool { return !slices.Contains(a.works(), r) && a.holdsAny(r) == keep })
				a.crash()
				c.within(2*DefaultTTL, "b works the others", func() bool { return len(b.works()) == 3 && b.pausedAt(r) == keep })
				if err := b.ends(); err != nil {
					t.Fatal(err)
				}
				d := c.proc("d", c.config("d", names(4)...))
				c.within(time.Minute, "d works the others", func() bool { return len(d.works()) == 3 && d.pausedAt(r) == keep })
				time.Sleep(time.Minute)
				if slices.Contains(d.works(), r) || d.holdsAny(r) != keep {
					t.Fatalf("%s", c)
				}
				c.operator(nil, coord.PauseKey(r))
				c.share(2*time.Second, map[*proc]int{d: 4})
			})
		})
	}
}

func TestPauseGroup(t *testing.T) {
	for name, keep := range map[string]bool{"keep": true, "release": false} {
		t.Run(name, func(t *testing.T) {
			castOf(t, func(t *testing.T, c *cast) {
				a, b := c.proc("a", c.config("a", names(4)...)), c.proc("b", c.config("b", names(4)...))
				c.share(time.Minute, map[*proc]int{a: 2, b: 2})
				c.control(coord.PauseGroupKey, coord.Control{Keep: keep})
				c.share(5*time.Second, map[*proc]int{a: 0, b: 0})
				mark := time.Now()
				time.Sleep(3 * DefaultTTL)
				c.nothingMoved(mark)
				for _, p := range []*proc{a, b} {
					if n := len(p.Status().Resources); n > 0 != keep {
						t.Errorf("%s holds %d", p.label, n)
					}
				}
				c.operator(nil, coord.PauseGroupKey)
				c.share(5*time.Second, map[*proc]int{a: 2, b: 2})
			})
		})
	}
}

// TestDrainOfANode: by itself, and by an operator.
func TestDrainOfANode(t *testing.T) {
	ways := map[string][2]func(*cast, *proc){
		"Group.Drain": {func(_ *cast, p *proc) { p.Drain() }, func(_ *cast, p *proc) { p.Undrain() }},
		"control": {
			func(c *cast, p *proc) { c.control(coord.DrainKey(p.cfg.Node), coord.Control{Node: p.cfg.Node}) },
			func(c *cast, p *proc) { c.operator(nil, coord.DrainKey(p.cfg.Node)) },
		},
	}
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, c *cast, who *proc, others []*proc) {
				who.slow = 3 * time.Second // it finishes what it works
				way[0](c, who)
				c.within(20*time.Second, "others work what it had", func() bool {
					return len(who.works()) == 0 && len(others[0].works())+len(others[1].works()) == 9
				})
				if s := who.Status(); s.State != StateDraining || len(s.Resources) > 0 {
					t.Fatalf("status: %+v", s)
				}
				if err := who.Ready(); err != nil {
					t.Logf("Ready: %v", err)
				}
				mark := time.Now()
				time.Sleep(3 * DefaultTTL)
				c.nothingMoved(mark)
				way[1](c, who)
				c.share(time.Minute, map[*proc]int{who: 3, others[0]: 3, others[1]: 3})
				if s := who.Status(); s.State != StateActive {
					t.Fatalf("status: %+v", s)
				}
			})
		})
	}
}

// TestDrainBeforeConsume: a node that is drained before it joins is given nothing.
func TestDrainBeforeConsume(t *testing.T) {
	castOf(t, func(t *testing.T, c *cast) {
		c.control(coord.DrainKey("a"), coord.Control{Node: "a"})
		a, b := c.proc("a", c.config("a", names(4)...)), c.proc("b", c.config("b", names(4)...))
		c.share(time.Minute, map[*proc]int{a: 0, b: 4})
		a.Drain()
		c.operator(nil, coord.DrainKey("a"))
		time.Sleep(time.Minute)
		c.share(0, map[*proc]int{a: 0, b: 4}) // either is enough
		a.Undrain()
		c.share(10*time.Second, map[*proc]int{a: 2, b: 2})
	})
}

// TestMaxMoving: a node joins, and takes its share one by one; all the others work meanwhile.
func TestMaxMoving(t *testing.T) {
	limits := map[string]func(*Config, int){
		"group": func(c *Config, n int) { c.MaxMoving = n },
		"node":  func(c *Config, n int) { c.MaxMovingPerNode = n },
	}
	for name, limit := range limits {
		for most := 1; most <= 2; most++ {
			t.Run(name, func(t *testing.T) {
				castOf(t, func(t *testing.T, c *cast) {
					cfg := c.config("a", names(12)...)
					limit(&cfg, most)
					a := c.proc("a", cfg)
					a.slow = 2 * time.Second
					c.share(time.Minute, map[*proc]int{a: 12})
					cfg = c.config("b", names(12)...)
					limit(&cfg, most)
					b := c.proc("b", cfg)
					least, pending := 12, 0
					c.within(2*time.Minute, "b has its share", func() bool {
						draining := 0
						for _, r := range a.Status().Resources {
							if r.Draining {
								draining++
							}
						}
						if draining > most {
							t.Errorf("%d in hand-over", draining)
						}
						if draining > 0 {
							pending++
						}
						least = min(least, 12-draining)
						return len(a.works()) == 6 && len(b.works()) == 6
					})
					if least != 12-most || pending == 0 {
						t.Errorf("not limited by it: least %d", least)
					}
				})
			})
		}
	}
}

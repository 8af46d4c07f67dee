package group

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/coord"
)

// registered is the configuration of a node whose resources are kept in the store.
func (c *cast) registered(node string, labels map[string]string) Config {
	cfg := c.config(node)
	cfg.Resources, cfg.Labels = Registered(), labels
	return cfg
}

func (c *cast) register(rs ...coord.Registration) {
	c.t.Helper()
	puts := map[string][]byte{}
	for _, r := range rs {
		puts[coord.ResourceKey(r.Name)] = coord.EncodeRegistration(r)
	}
	c.operator(puts)
}

func TestWeightsOfNodes(t *testing.T) {
	castOf(t, func(t *testing.T, c *cast) {
		cfg := c.config("a", names(12)...)
		cfg.Weight = 2
		a, b, d := c.proc("a", cfg), c.proc("b", c.config("b", names(12)...)), c.proc("d", c.config("d", names(12)...))
		c.share(time.Minute, map[*proc]int{a: 6, b: 3, d: 3})
		if err := d.ends(); err != nil {
			t.Fatal(err)
		}
		c.share(10*time.Second, map[*proc]int{a: 8, b: 4})
	})
}

// TestWeightsOfResources: one heavy resource counts as much as six light ones.
func TestWeightsOfResources(t *testing.T) {
	castOf(t, func(t *testing.T, c *cast) {
		rs := []coord.Registration{{Name: "heavy", Weight: 6}}
		for _, n := range names(6) {
			rs = append(rs, coord.Registration{Name: n})
		}
		a, b := c.proc("a", c.registered("a", nil)), c.proc("b", c.registered("b", nil))
		c.register(rs...)
		c.within(time.Minute, "6 light ones on one node, the heavy one on the other", func() bool {
			x, y := a.works(), b.works()
			return len(x)+len(y) == 7 && (slices.Equal(x, []string{"heavy"}) || slices.Equal(y, []string{"heavy"}))
		})
		mark := time.Now()
		time.Sleep(time.Minute)
		c.nothingMoved(mark)
	})
}

func TestMaxResources(t *testing.T) {
	castOf(t, func(t *testing.T, c *cast) {
		cfg := c.config("a", names(6)...)
		cfg.MaxResources = 1
		a, b := c.proc("a", cfg), c.proc("b", c.config("b", names(6)...))
		c.share(time.Minute, map[*proc]int{a: 1, b: 5})
	})
}

func TestLabelsRequired(t *testing.T) {
	castOf(t, func(t *testing.T, c *cast) {
		a := c.proc("a", c.registered("a", map[string]string{"zone": "1", "net": "dmz"}))
		b := c.proc("b", c.registered("b", map[string]string{"zone": "2"}))
		c.register(
			coord.Registration{Name: "dmz1", Require: []string{"net=dmz"}}, coord.Registration{Name: "dmz2", Require: []string{"net=dmz", "zone=1"}},
			coord.Registration{Name: "zone2", Require: []string{"zone=2"}}, coord.Registration{Name: "nowhere", Require: []string{"zone=3"}},
			coord.Registration{Name: "any"},
		)
		c.within(time.Minute, "each is where it may be", func() bool {
			return slices.Equal(a.works(), []string{"dmz1", "dmz2"}) && slices.Equal(b.works(), []string{"any", "zone2"})
		})
		c.within(time.Minute, "the one that no node may take is reported", func() bool { return c.unplaced("nowhere", a, b) })
		// The only node that it may be on goes: it waits, and is worked when such a node comes.
		if err := a.ends(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if w := b.works(); !slices.Equal(w, []string{"any", "zone2"}) {
			t.Fatalf("b works %q", w)
		}
		d := c.proc("d", c.registered("d", map[string]string{"zone": "3", "net": "dmz"}))
		c.within(time.Minute, "a node of the third zone takes what it may", func() bool {
			w := d.works()
			return slices.Contains(w, "dmz1") && slices.Contains(w, "nowhere") && !slices.Contains(w, "dmz2")
		})
	})
}

// unplaced tells whether one of the processes reported that no live node may take a resource.
func (c *cast) unplaced(resource string, ps ...*proc) bool {
	for _, p := range ps {
		c.world.mu.Lock()
		for _, e := range c.events[p.cfg.Node] {
			if e.Kind == KindResources && e.Resource == resource && strings.Contains(e.Reason, "no live node") {
				c.world.mu.Unlock()
				return true
			}
		}
		c.world.mu.Unlock()
	}
	return false
}

func TestLabelsPreferred(t *testing.T) {
	castOf(t, func(t *testing.T, c *cast) {
		a, b := c.proc("a", c.registered("a", map[string]string{"zone": "1"})), c.proc("b", c.registered("b", map[string]string{"zone": "2"}))
		var rs []coord.Registration
		for i, n := range names(6) {
			rs = append(rs, coord.Registration{Name: n, Prefer: []string{fmt.Sprintf("zone=%d", i%2+1)}})
		}
		c.register(rs...)
		c.within(time.Minute, "each is where it likes to be", func() bool {
			return slices.Equal(a.works(), []string{"r00", "r02", "r04"}) && slices.Equal(b.works(), []string{"r01", "r03", "r05"})
		})
		if err := a.ends(); err != nil {
			t.Fatal(err)
		}
		c.share(10*time.Second, map[*proc]int{b: 6}) // better there than nowhere
	})
}

func TestPinAndMove(t *testing.T) {
	castOf(t, func(t *testing.T, c *cast) {
		a, b := c.proc("a", c.config("a", names(6)...)), c.proc("b", c.config("b", names(6)...))
		c.share(time.Minute, map[*proc]int{a: 3, b: 3})
		r := a.works()[0]
		c.control(coord.MoveKey(r), coord.Control{Resource: r, Node: "b"})
		c.within(5*time.Second, r+" moves to b", func() bool { return slices.Contains(b.works(), r) })
		c.within(5*time.Second, "the move is taken back", func() bool { return !c.present(coord.MoveKey(r)) })
		mark := time.Now()
		time.Sleep(time.Minute)
		c.nothingMoved(mark) // and it stays there, now that nothing ties it
		c.share(0, map[*proc]int{a: 3, b: 3})

		p := a.works()[0]
		c.control(coord.PinKey(p), coord.Control{Resource: p, Node: "b"})
		c.within(5*time.Second, p+" is pinned to b", func() bool { return slices.Contains(b.works(), p) })
		if err := b.ends(); err != nil {
			t.Fatal(err)
		}
		c.share(5*time.Second, map[*proc]int{a: 6}) // idle is worse than elsewhere
		again := c.proc("again", c.config("b", names(6)...))
		c.within(time.Minute, "it goes back to b", func() bool { return slices.Contains(again.works(), p) })
		c.operator(nil, coord.PinKey(p))
		c.control(coord.MoveKey(p), coord.Control{Resource: p, Node: "a"})
		c.within(5*time.Second, "unpinned and moved", func() bool { return slices.Contains(a.works(), p) })
		// A move to a node that is not there is forgotten.
		c.control(coord.MoveKey(p), coord.Control{Resource: p, Node: "nobody"})
		c.within(DefaultTTL, "the move is taken back", func() bool { return !c.present(coord.MoveKey(p)) })
	})
}

func TestPlacementMismatch(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"MaxActive":        func(c *Config) { c.MaxActive = 1 },
		"FailBack":         func(c *Config) { c.MaxActive, c.FailBack = 2, true },
		"MaxMoving":        func(c *Config) { c.MaxMoving = 1 },
		"MaxMovingPerNode": func(c *Config) { c.MaxMovingPerNode = 1 },
	} {
		t.Run(name, func(t *testing.T) {
			castOf(t, func(t *testing.T, c *cast) {
				cfg := c.config("a", "r")
				if name == "FailBack" {
					cfg.MaxActive = 2
				}
				a := c.proc("a", cfg)
				c.share(time.Minute, map[*proc]int{a: 1})
				cfg.Node = "b"
				change(&cfg)
				if err := c.proc("b", cfg).ended(); !errors.Is(err, ErrMismatch) {
					t.Fatalf("b: %v", err)
				}
				c.share(0, map[*proc]int{a: 1})
			})
		})
	}
}

func TestPlacementValidation(t *testing.T) {
	t.Parallel()
	for field, breakIt := range map[string]func(*Config){
		"Node":             func(c *Config) { c.Static, c.Node = true, "" },
		"MaxResources":     func(c *Config) { c.MaxResources = -1 },
		"MaxActive":        func(c *Config) { c.MaxActive = -1 },
		"FailBack":         func(c *Config) { c.FailBack = true },
		"MaxMoving":        func(c *Config) { c.MaxMoving = -1 },
		"MaxMovingPerNode": func(c *Config) { c.MaxMovingPerNode = -1 },
		"Weight":           func(c *Config) { c.Weight = 1001 },
	} {
		cfg := newWorld(t).config("a", "q")
		breakIt(&cfg)
		if _, err := New(cfg); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), field+" is ") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", field, err)
		}
	}
}

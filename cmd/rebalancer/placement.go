package main

import (
	"strings"

	"github.com/rebalancer-go/rebalancer/admin"
	"github.com/rebalancer-go/rebalancer/group"
)

// placementFlags are those of consume that decide who works what.
type placementFlags struct {
	groupFlags
	static               bool
	weight, maxResources int
	labels               list
}

// groupFlags are those on which all nodes of a group agree.
type groupFlags struct {
	maxActive                   int
	failBack                    bool
	maxMoving, maxMovingPerNode int
}

func (g *groupFlags) define(f *flags) {
	f.IntVar(&g.maxActive, "max-active", 0, "how many nodes of the group may hold resources at once, those of the highest --priority; the others\n"+
		"stand by. 1 is active-backup. Defaults to all.")
	f.explain("max-active", "N")
	f.BoolVar(&g.failBack, "fail-back", false, "with --max-active: a node of a higher priority takes over from an active one that is well")
	f.explain("fail-back", "")
	f.IntVar(&g.maxMoving, "max-moving", 0, "how many resources of the group may be in hand-over at a time; the rest waits. Defaults to all.")
	f.explain("max-moving", "N")
	f.IntVar(&g.maxMovingPerNode, "max-moving-per-node", 0, "the same for the resources of one node")
	f.explain("max-moving-per-node", "N")
}

func (g *groupFlags) check(bad func(wrong bool, format string, args ...any)) {
	bad(g.maxActive < 0, "--max-active is %d: it must be at least 0 (all nodes)", g.maxActive)
	bad(g.failBack && g.maxActive == 0, "--fail-back needs --max-active")
	bad(g.maxMoving < 0, "--max-moving is %d: it must be at least 0 (no limit)", g.maxMoving)
	bad(g.maxMovingPerNode < 0, "--max-moving-per-node is %d: it must be at least 0 (no limit)", g.maxMovingPerNode)
}

func (g *groupFlags) settings(s *admin.Settings) {
	s.MaxActive, s.FailBack, s.MaxMoving, s.MaxMovingPerNode = g.maxActive, g.failBack, g.maxMoving, g.maxMovingPerNode
}

func (c *placementFlags) define(f *flags) {
	f.BoolVar(&c.static, "static", false, "the name of --node outlives its process: a restart within --ttl keeps its resources")
	f.explain("static", "")
	f.IntVar(&c.weight, "weight", 1, "this node's share of the resources in proportion to that of the others")
	f.explain("weight", "N")
	f.IntVar(&c.maxResources, "max-resources", 0, "how many resources this node is given at most. Defaults to any number.")
	f.explain("max-resources", "N")
	f.Var(&c.labels, "label", "what registered resources may require or prefer of this node; give it once for each. In the environment:\n"+
		"separated by commas.")
	f.explain("label", "KEY=VALUE")
	c.groupFlags.define(f)
}

func (c *placementFlags) check(node string, bad func(wrong bool, format string, args ...any)) {
	bad(c.static && node == "", "--static needs --node NAME: the name that the next process of this node has too")
	bad(c.weight < 1 || c.weight > 1000, "--weight is %d: it must be 1 to 1000", c.weight)
	bad(c.maxResources < 0, "--max-resources is %d: it must be at least 0 (no limit)", c.maxResources)
	seen := map[string]bool{}
	for _, l := range c.labels {
		key, _, ok := strings.Cut(l, "=")
		bad(!ok || key == "", "--label is %q: it must be KEY=VALUE", l)
		bad(seen[key], "--label %s is given twice", key)
		seen[key] = true
	}
	c.groupFlags.check(bad)
}

func (c *placementFlags) config(cfg *group.Config) {
	cfg.Static, cfg.Weight, cfg.MaxResources = c.static, c.weight, c.maxResources
	cfg.MaxActive, cfg.FailBack, cfg.MaxMoving, cfg.MaxMovingPerNode = c.maxActive, c.failBack, c.maxMoving, c.maxMovingPerNode
	for _, l := range c.labels {
		if cfg.Labels == nil {
			cfg.Labels = map[string]string{}
		}
		key, value, _ := strings.Cut(l, "=")
		cfg.Labels[key] = value
	}
}

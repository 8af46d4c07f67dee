package main

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/admin"
	"github.com/rebalancer-go/rebalancer/group"
	"github.com/rebalancer-go/rebalancer/internal/waittest"
)

// The flags of placement reach the node's configuration, given as flags or by the environment.
func TestPlacementFlags(t *testing.T) {
	t.Parallel()
	env := map[string]string{
		"REBALANCER_STATIC": "true", "REBALANCER_NODE": "n", "REBALANCER_WEIGHT": "3", "REBALANCER_MAX_RESOURCES": "9",
		"REBALANCER_LABEL": "zone=a,net=x=y", "REBALANCER_MAX_ACTIVE": "2", "REBALANCER_FAIL_BACK": "true",
		"REBALANCER_MAX_MOVING": "5", "REBALANCER_MAX_MOVING_PER_NODE": "1",
	}
	args := []string{
		"--static", "--node", "n", "--weight", "3", "--max-resources", "9", "--label", "zone=a", "--label", "net=x=y",
		"--max-active", "2", "--fail-back", "--max-moving", "5", "--max-moving-per-node", "1",
	}
	read := func(args []string, env map[string]string) group.Config {
		c := &consumeFlags{}
		cmd := consumeCommand(newWorld(t).program(nil, nil))
		f := newFlags(&cmd)
		c.define(f, newWorld(t).program(nil, nil))
		if _, _, err := f.parse(args, func(k string) (string, bool) { v, ok := env[k]; return v, ok }); err != nil {
			t.Fatal(err)
		}
		var cfg group.Config
		cfg.Node = c.node
		c.placement.config(&cfg)
		return cfg
	}
	want := group.Config{
		Node: "n", Static: true, Weight: 3, MaxResources: 9, Labels: map[string]string{"zone": "a", "net": "x=y"},
		MaxActive: 2, FailBack: true, MaxMoving: 5, MaxMovingPerNode: 1,
	}
	for name, got := range map[string]group.Config{"flags": read(args, nil), "environment": read(nil, env)} {
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := read(nil, nil); !reflect.DeepEqual(got, group.Config{Weight: 1}) {
		t.Errorf("without any: %+v", got)
	}
}

// running is a node of the group g, with registered resources.
func (w *world) running(flags ...string) (ended <-chan result, stop func()) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan result, 1)
	args := append([]string{"consume", "g", "--source", "file://" + w.dir, "--registered", "--ttl", "5s"}, flags...)
	go func() { done <- w.run(ctx, append(args, "--", "true")...) }()
	return done, cancel
}

func (w *world) describe() admin.Description {
	w.t.Helper()
	d, err := admin.Describe(w.t.Context(), w.store, "g")
	if err != nil {
		w.t.Fatal(err)
	}
	return d
}

// A group is created with all it agrees on; nodes and operators act on it.
func TestPlacementOfNodes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.want(codeDone, "", "", "create", "g", "--registered", "--ttl", "5s", "--max-active", "1", "--fail-back", "--max-moving", "4", "--max-moving-per-node", "2")
	w.want(codeDone, "Max active   1, fail-back\nMax moving   4\nPer node     2 moving at most\n", "", "describe", "g")
	w.want(codeDone, "", "in registered", "resources", "add", "g", "in")
	all := []string{"--max-active", "1", "--fail-back", "--max-moving", "4", "--max-moving-per-node", "2"}

	w.want(codeRefused, "", "active nodes", "consume", "g", "--source", "file://"+w.dir, "--registered", "--ttl", "5s", "--", "true")
	one, stopOne := w.running(append(all, "--node", "one", "--static", "--weight", "3", "--max-resources", "7", "--label", "zone=a")...)
	waittest.Until(t, "one is active", func() bool { d := w.describe(); return len(d.Nodes) == 1 && d.Nodes[0].Holds == 1 })
	if n := w.describe().Nodes[0]; !n.Static || n.Weight != 3 || n.Max != 7 || n.Labels["zone"] != "a" {
		t.Errorf("%+v", n)
	}
	two, stopTwo := w.running(append(all, "--node", "two")...)
	waittest.Until(t, "two stands by", func() bool { return w.run(t.Context(), "nodes", "list", "g").out == "one\tactive\ntwo\tstandby\n" })
	w.want(codeRefused, "", "on standby", "resources", "move", "g", "in", "--to", "two")
	w.want(codeDone, "", "one drained\naway drained", "nodes", "drain", "g", "one", "away")
	waittest.Until(t, "two took over", func() bool {
		return w.run(t.Context(), "nodes", "list", "g").out == "one\tdrained\ntwo\tactive\naway\taway\n" && w.describe().Nodes[1].Holds == 1
	})
	w.want(codeDone, "", "one undrained\nother was not drained", "nodes", "undrain", "g", "one", "other")
	stopOne()
	stopTwo()
	for _, ended := range []<-chan result{one, two} {
		if r := <-ended; r.code != codeDone {
			t.Errorf("exit %d: %s", r.code, r.err)
		}
	}
}

// A second process under a static name ends the first with the code for what is refused.
func TestSuperseded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.want(codeDone, "", "", "create", "g", "--registered", "--ttl", "5s")
	w.want(codeDone, "", "", "resources", "add", "g", "in")
	first, _ := w.running("--static", "--node", "n")
	waittest.Until(t, "the first works", func() bool { d := w.describe(); return len(d.Nodes) == 1 && d.Nodes[0].Holds == 1 })
	second, stop := w.running("--static", "--node", "n")
	if r := <-first; r.code != codeRefused || !strings.Contains(r.err, "newer process") && !strings.Contains(r.err, "superseded") {
		t.Errorf("exit %d: %s", r.code, r.err)
	}
	stop()
	if r := <-second; r.code != codeDone {
		t.Errorf("exit %d: %s", r.code, r.err)
	}
}

func TestOperatorsOfResources(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.want(codeNotFound, "", "no such group", "resources", "pause", "g", "a")
	w.want(codeNotFound, "", "no such group", "nodes", "drain", "g", "n")
	w.want(codeNotFound, "", "no such group", "nodes", "list", "g")
	w.want(codeDone, "", "", "create", "g", "--registered")
	w.want(codeDone, "", "a registered\nb registered", "resources", "add", "g", "a", "b", "--weight", "3", "--require", "zone=x", "--require", "net=y", "--prefer", "disk=ssd")
	w.want(codeDone, "", "a was registered already", "resources", "add", "g", "a")
	w.want(codeDone, "weight 3, requires net=y, requires zone=x, prefers disk=ssd", "", "describe", "g")
	w.want(codeDone, "", "b registered", "resources", "add", "g", "b", "--weight", "2")
	w.want(codeUsage, "", `require "zone"`, "resources", "add", "g", "a", "--require", "zone")
	w.want(codeUsage, "", "weight -1", "resources", "add", "g", "a", "--weight", "-1")

	w.want(codeDone, "", "a paused\nb paused", "resources", "pause", "g", "a", "b", "--keep")
	w.want(codeDone, "", "a was paused so already", "resources", "pause", "g", "a", "--keep")
	w.want(codeDone, "", "a paused", "resources", "pause", "g", "a")
	w.want(codeDone, "", "group g paused", "resources", "pause", "g", "--all", "--keep")
	w.want(codeDone, "the whole group (claims kept)", "", "describe", "g")
	w.want(codeDone, "", "group g was paused so already", "resources", "pause", "g", "--all", "--keep")
	d := w.describe()
	if a, b := d.Resources[0], d.Resources[1]; a.Paused != admin.PausedReleased || b.Paused != admin.PausedKept || a.Weight != 3 || b.Weight != 2 || len(b.Require) > 0 {
		t.Errorf("%+v", d.Resources)
	}
	w.want(codeDone, "", "group g resumed", "resources", "resume", "g", "--all")
	w.want(codeDone, "", "group g was not paused", "resources", "resume", "g", "--all")
	w.want(codeDone, "", "a resumed\nc was not paused", "resources", "resume", "g", "a", "c")

	w.want(codeDone, "", "a pinned", "resources", "pin", "g", "a", "--to", "n")
	w.want(codeDone, "", "a was pinned to it already", "resources", "pin", "g", "a", "--to", "n")
	w.want(codeDone, "pinned to n", "", "describe", "g")
	w.want(codeRefused, "", `node "n" is not there`, "resources", "move", "g", "a", "--to", "n")
	w.want(codeDone, "", "a unpinned\nb was not pinned", "resources", "unpin", "g", "a", "b")
	for _, r := range w.describe().Resources {
		if r.Pinned != "" || r.Name == "a" && r.Paused != "" {
			t.Errorf("%+v", r)
		}
	}
}

// The flags of these commands come from the environment too.
func TestOperatorsFromTheEnvironment(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for k, v := range map[string]string{
		"MAX_ACTIVE": "2", "FAIL_BACK": "true", "MAX_MOVING": "4", "MAX_MOVING_PER_NODE": "1", "REGISTERED": "true",
		"WEIGHT": "5", "REQUIRE": "zone=x,net=y", "PREFER": "disk=ssd", "KEEP": "true", "TO": "n",
	} {
		w.env["REBALANCER_"+k] = v
	}
	w.want(codeDone, "", "", "create", "g")
	w.want(codeDone, "", "", "resources", "add", "g", "a")
	w.want(codeDone, "", "", "resources", "pause", "g", "a")
	w.want(codeDone, "", "", "resources", "pin", "g", "a")
	d := w.describe()
	set := admin.Settings{Barrier: "resource", Origin: "registered", TTL: group.DefaultTTL, MaxActive: 2, FailBack: true, MaxMoving: 4, MaxMovingPerNode: 1}
	if d.Settings != set {
		t.Errorf("%+v", d.Settings)
	}
	if r := d.Resources[0]; r.Weight != 5 || !slices.Equal(r.Require, []string{"net=y", "zone=x"}) || !slices.Equal(r.Prefer, []string{"disk=ssd"}) ||
		r.Paused != admin.PausedKept || r.Pinned != "n" {
		t.Errorf("%+v", r)
	}
	w.env["REBALANCER_ALL"] = "true"
	w.want(codeDone, "", "group g paused", "resources", "pause", "g")
}

// A resource moves when an operator asks for it.
func TestMoveOfAResource(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.want(codeDone, "", "", "create", "g", "--registered", "--ttl", "5s")
	w.want(codeDone, "", "", "resources", "add", "g", "in")
	one, stopOne := w.running("--node", "one")
	waittest.Until(t, "one works", func() bool { d := w.describe(); return len(d.Nodes) == 1 && d.Nodes[0].Holds == 1 })
	two, stopTwo := w.running("--node", "two")
	waittest.Until(t, "two is there", func() bool { return len(w.describe().Nodes) == 2 })
	w.want(codeDone, "", "in is to be moved", "resources", "move", "g", "in", "--to", "two")
	waittest.Until(t, "two works it", func() bool { r := w.describe().Resources[0]; return r.Owner == "two" && r.Move == "" })
	stopOne()
	stopTwo()
	for _, ended := range []<-chan result{one, two} {
		select {
		case r := <-ended:
			if r.code != codeDone {
				t.Errorf("exit %d: %s", r.code, r.err)
			}
		case <-time.After(30 * time.Second):
			t.Fatal("a node does not end")
		}
	}
}

package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/admin"
	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/coord"
	"github.com/rebalancer-go/rebalancer/internal/waittest"
)

// What operators do is in the history, with who did it and why; what concerns a resource can be asked for alone.
func TestHistoryOfAGroup(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.want(codeNotFound, "", "no such group", "history", "g")
	w.want(codeUsage, "", "--output", "history", "g", "-o", "xml")
	w.env["USER"] = "ann"
	w.want(codeDone, "", "", "create", "g", "--registered", "--ttl", "5s")
	w.want(codeDone, "", "", "resources", "add", "g", "in", "other", "--reason", "new customers")
	w.want(codeDone, "", "in paused", "resources", "pause", "g", "in", "--actor", "bob", "--keep")
	w.want(codeDone, "in is unshared: no node is there\n", "", "history", "g", "--resource", "in")
	w.want(codeNotFound, "", `no resource "none"`, "history", "g", "--resource", "none")
	out := w.run(t.Context(), "history", "g").out
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != 5 || !strings.HasPrefix(lines[0], "TIME") || !strings.Contains(lines[1], "create") || !strings.Contains(lines[1], "ann@") ||
		!strings.Contains(lines[2], "new customers") || !strings.Contains(lines[4], "bob") || !strings.Contains(lines[4], "claims are kept") {
		t.Errorf("%s", out)
	}
	if alone := w.run(t.Context(), "history", "g", "--resource", "in").out; strings.Contains(alone, "other") || !strings.Contains(alone, "create") {
		t.Errorf("of one resource:\n%s", alone)
	}

	ended, stop := w.running("--node", "one")
	waittest.Until(t, "one works", func() bool { d := w.describe(); return len(d.Nodes) == 1 && d.Nodes[0].Holds == 2 })
	var h jsonHistory
	if err := json.Unmarshal([]byte(w.run(t.Context(), "history", "g", "--resource", "in", "-o", "json").out), &h); err != nil {
		t.Fatal(err)
	}
	if h.Group != "g" || h.Resource == nil || h.Resource.Owner != "one" || h.Resource.Since == nil || h.Resource.Reason == "" {
		t.Errorf("%+v", h.Resource)
	}
	r := h.History[len(h.History)-1]
	if r.Kind != admin.KindRebalance || r.Resource != "in" || r.From != "" || r.To != "one" || r.Actor != "one" || !strings.Contains(r.Reason, "joined") || r.Epoch == 0 {
		t.Errorf("%+v", r)
	}
	w.want(codeDone, "in: - → one", "", "history", "g")
	stop()
	if r := <-ended; r.code != codeDone {
		t.Errorf("exit %d: %s", r.code, r.err)
	}
}

func TestWeightOfResources(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.want(codeNotFound, "", "no such group", "resources", "weight", "g", "a", "--weight", "2")
	w.want(codeDone, "", "", "create", "g", "--registered")
	w.want(codeRefused, "", `"a" is not registered`, "resources", "weight", "g", "a", "--weight", "2")
	w.want(codeDone, "", "", "resources", "add", "g", "a", "b", "--require", "zone=x")
	w.want(codeUsage, "", "weight 0", "resources", "weight", "g", "a")
	w.want(codeDone, "", "a changed\nb changed", "resources", "weight", "g", "a", "b", "--weight", "2")
	w.want(codeDone, "", "a has this weight already", "resources", "weight", "g", "a", "--weight", "2")
	w.want(codeDone, "weight 2, requires zone=x", "", "describe", "g")
}

// A node that is evicted ends with the code for what is refused, and the command waits for it.
func TestEvictionOfANode(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.want(codeNotFound, "", "no such group", "nodes", "evict", "g", "one")
	w.want(codeUsage, "", "name of the node", "nodes", "evict", "g", "a/b")
	w.want(codeDone, "", "", "create", "g", "--registered", "--ttl", "5s")
	w.want(codeDone, "", "", "resources", "add", "g", "in")
	ended, _ := w.running("--node", "one")
	waittest.Until(t, "one works", func() bool { d := w.describe(); return len(d.Nodes) == 1 && d.Nodes[0].Holds == 1 })
	w.want(codeDone, "", "one evicted\ntwo is no member", "nodes", "evict", "g", "one", "two", "--wait", "1m")
	if n := len(w.describe().Nodes); n > 0 {
		t.Errorf("%d nodes are there still", n)
	}
	select {
	case r := <-ended:
		if r.code != codeRefused || !strings.Contains(r.err, "evicted") {
			t.Errorf("exit %d: %s", r.code, r.err)
		}
	case <-time.After(time.Minute):
		t.Fatal("it goes on")
	}
	w.want(codeDone, "", "one is no member", "nodes", "evict", "g", "one", "--wait", "1m")
}

func TestStepDownOfTheCoordinator(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.want(codeNotFound, "", "no such group", "step-down", "g")
	w.want(codeDone, "", "", "create", "g", "--registered", "--ttl", "5s")
	w.want(codeDone, "", "no node coordinated", "step-down", "g")
	ended, stop := w.running("--node", "one")
	waittest.Until(t, "one coordinates", func() bool { return w.describe().Coordinator == "one" })
	epoch := w.describe().Epoch
	w.want(codeDone, "one\n", "", "step-down", "g", "--reason", "a test")
	waittest.Until(t, "it was elected again", func() bool { d := w.describe(); return d.Coordinator == "one" && d.Epoch > epoch })
	stop()
	if r := <-ended; r.code != codeDone {
		t.Errorf("exit %d: %s", r.code, r.err)
	}
}

func TestCheckpointsOfAGroup(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, verb := range []string{"list", "export"} {
		w.want(codeNotFound, "", "no such group", "checkpoints", verb, "g")
	}
	w.want(codeNotFound, "", "no such group", "checkpoints", "reset", "g", "in")
	w.want(codeDone, "", "", "create", "g", "--registered", "--ttl", "5s")
	w.want(codeUsage, "", "name of the resource", "checkpoints", "reset", "g", "")
	s, err := w.store.Open(t.Context(), backends.SessionOptions{Group: "g", TTL: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	put := func(key, value string, bound bool) {
		txn := backends.Txn{Puts: []backends.Put{{Key: key, Value: []byte(value), Bound: bound}}}
		r, err := s.Commit(t.Context(), backends.CommitRequest{Incarnation: s.Opened().Incarnation, Txns: []backends.Txn{txn}})
		if err != nil || r.Results[0].Err != nil {
			t.Fatal(err, r.Results)
		}
	}
	put(coord.CheckpointPrefix("in")+"k", "v", false)
	put(coord.CheckpointPrefix("a b")+"k", "w", false)
	w.want(codeDone, "a b\t1\nin\t1\n", "", "checkpoints", "list", "g")
	w.want(codeDone, `{"resource":"in","key":"k","version":`, "", "checkpoints", "export", "g")
	if out := w.run(t.Context(), "checkpoints", "export", "g", "in").out; strings.Count(out, "\n") != 1 || !strings.Contains(out, `"value":"dg=="`) {
		t.Errorf("%s", out)
	}
	w.want(codeDone, "", "in would be reset (1 key)\nnone has no checkpoint\nnothing was changed", "checkpoints", "reset", "g", "in", "none")
	w.want(codeDone, "a b\t1\nin\t1\n", "", "checkpoints", "list", "g")
	put(coord.ClaimKey("a b"), `1{"resource":"a b","node":"n"}`, true)
	w.want(codeRefused, "", `"n" holds resource "a b"`, "checkpoints", "reset", "g", "in", "a b", "--execute")
	w.want(codeDone, "", "in reset (1 key)", "checkpoints", "reset", "g", "in", "--execute")
	w.want(codeDone, "a b\t1\n", "", "checkpoints", "list", "g")
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestDeletionOfAGroup(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.want(codeNotFound, "", "no such group", "delete", "g", "--confirm", "g")
	w.want(codeDone, "", "", "create", "g", "--registered", "--ttl", "5s")
	w.want(codeUsage, "", `--confirm is ""`, "delete", "g")
	w.want(codeUsage, "", `--confirm is "h"`, "delete", "g", "--confirm", "h")
	ended, stop := w.running("--node", "one")
	waittest.Until(t, "one is there", func() bool { return len(w.describe().Nodes) == 1 })
	w.want(codeRefused, "", "it has 1 member", "delete", "g", "--confirm", "g")
	stop()
	<-ended
	w.want(codeDone, "", "", "delete", "g", "--confirm", "g")
	w.want(codeDone, "", "was deleted already", "delete", "g", "--confirm", "g")
	w.want(codeNotFound, "", "no such group", "describe", "g")
	w.want(codeDone, "", "", "groups")
	w.want(codeDone, "delete", "", "history", "g")
	ended, _ = w.running("--node", "one")
	if r := <-ended; r.code != codeRefused || !strings.Contains(r.err, "deleted") {
		t.Errorf("a node of it: exit %d: %s", r.code, r.err)
	}
}

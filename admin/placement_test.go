package admin

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/backends/memory"
	"github.com/rebalancer-go/rebalancer/coord"
	"github.com/rebalancer-go/rebalancer/group"
)

func TestDescribeReserved(t *testing.T) {
	t.Parallel()
	inGroup(t, registered, func(t *testing.T, store *memory.Store) {
		if _, err := AddResources(t.Context(), store, "g", "a", "b"); err != nil {
			t.Fatal(err)
		}
		stop := startNode(t, store, "one", func(c *group.Config) { c.Static = true })
		defer startNode(t, store, "two")()
		d := settledAfter(t, store)
		if !d.Nodes[0].Static || d.Nodes[1].Static || d.Nodes[0].Holds != 1 || len(d.Reserved) > 0 {
			t.Fatalf("%+v", d)
		}
		stop()
		left := time.Now()
		d = settledAfter(t, store)
		if len(d.Reserved) != 1 || d.Reserved[0].Node != "one" || len(d.Reserved[0].Resources) != 1 {
			t.Fatalf("%+v", d)
		}
		until := d.Reserved[0].Until
		if in := until.Sub(left); in < 29*time.Second || in > 31*time.Second {
			t.Errorf("kept for %v", in)
		}
		r := named(d, d.Reserved[0].Resources[0])
		if want := "kept for one, which has left, until " + until.Format(time.RFC3339); r.State != StateReserved || r.Reason != want || r.Owner != "" {
			t.Errorf("%+v, want %q", r, want)
		}
		if d = settledAfter(t, store); len(d.Reserved) > 0 || d.Nodes[0].Holds != 2 {
			t.Errorf("after its end: %+v", d)
		}
	})
}

func TestDescribeStandby(t *testing.T) {
	t.Parallel()
	set := registered
	set.MaxActive, set.FailBack = 1, true
	inGroup(t, set, func(t *testing.T, store *memory.Store) {
		if _, err := AddResources(t.Context(), store, "g", "a", "b"); err != nil {
			t.Fatal(err)
		}
		active := func(c *group.Config) { c.MaxActive, c.FailBack = 1, true }
		defer startNode(t, store, "low", active)()
		stop := startNode(t, store, "top", active, func(c *group.Config) { c.Priority = 1 })
		d := settledAfter(t, store)
		if !d.Nodes[0].Standby || d.Nodes[1].Standby || d.Nodes[1].Holds != 2 || d.MaxActive != 1 || !d.FailBack {
			t.Errorf("%+v", d)
		}
		if _, err := Move(t.Context(), store, "g", "low", "a"); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "on standby") {
			t.Errorf("move to a node on standby: %v", err)
		}
		stop()
		if d = settledAfter(t, store); len(d.Nodes) != 1 || d.Nodes[0].Standby || d.Nodes[0].Holds != 2 {
			t.Errorf("%+v", d)
		}
	})
}

func TestMoveRefused(t *testing.T) {
	t.Parallel()
	inGroup(t, registered, func(t *testing.T, store *memory.Store) {
		ctx := t.Context()
		if _, err := Register(ctx, store, "g", Registration{Name: "a"}, Registration{Name: "far", Require: []string{"zone=y"}}); err != nil {
			t.Fatal(err)
		}
		defer startNode(t, store, "one", func(c *group.Config) { c.Labels = map[string]string{"zone": "y"} })()
		defer startNode(t, store, "two")()
		if _, err := Pin(ctx, store, "g", "one", "pinned", "a"); err != nil {
			t.Fatal(err)
		}
		settledAfter(t, store)
		for _, c := range []struct{ node, resource, want string }{
			{"three", "a", `node "three" is not there`},
			{"two", "nothing", `resource "nothing" is not there`},
			{"one", "pinned", `resource "pinned" is not there`},
			{"two", "a", `resource "a" is pinned to "one"`},
			{"two", "far", `resource "far" cannot go to node "two", which lacks zone=y`},
		} {
			if _, err := Move(ctx, store, "g", c.node, "a", c.resource); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%+v: %v", c, err)
			}
		}
		if r, err := session(t, store).Read(ctx, backends.ReadRequest{Keys: []string{coord.MoveKey("a")}}); err != nil || len(r.Entries) > 0 {
			t.Errorf("something was asked for: %+v, %v", r.Entries, err)
		}
	})
}

// What cannot be placed says why, node by node.
func TestDescribeUnplaced(t *testing.T) {
	t.Parallel()
	inGroup(t, registered, func(t *testing.T, store *memory.Store) {
		ctx := t.Context()
		if _, err := AddResources(ctx, store, "g", "a", "b", "c"); err != nil {
			t.Fatal(err)
		}
		defer startNode(t, store, "one", func(c *group.Config) { c.MaxResources = 2 })()
		defer startNode(t, store, "two")()
		if _, err := Drain(ctx, store, "g", "two"); err != nil {
			t.Fatal(err)
		}
		d := settledAfter(t, store)
		i := slices.IndexFunc(d.Resources, func(r Resource) bool { return r.State == StateUnshared })
		if i < 0 || d.Resources[i].Reason != "no node may take it: one has as many as it takes (2); two is drained" {
			t.Errorf("%+v", d.Resources)
		}
	})
}

// The coordinator says how many moves wait for others.
func TestDescribePending(t *testing.T) {
	t.Parallel()
	store := memory.New()
	if _, err := Create(t.Context(), store, "g", registered); err != nil {
		t.Fatal(err)
	}
	s := session(t, store)
	for key, value := range map[string]string{
		coord.LeaderKey: `1{"node":"one"}`, coord.StatusKey("one"): `1{"pending":7}`, coord.StatusKey("two"): `1{"pending":3}`,
	} {
		put := backends.Put{Key: key, Value: []byte(value), Bound: true}
		if err := commit(t.Context(), s, backends.Txn{Puts: []backends.Put{put}}); err != nil {
			t.Fatal(err)
		}
	}
	if d, err := Describe(t.Context(), store, "g"); err != nil || d.Pending != 7 {
		t.Errorf("%d, %v", d.Pending, err)
	}
}

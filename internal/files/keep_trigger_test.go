package files

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/internal/checkpointtest"
	"github.com/rebalancer-go/rebalancer/sources"
)

// TestKeptTriggerAgain: a round ends although files of it prove to be worked already, or a listing has no more to say of them.
func TestKeptTriggerAgain(t *testing.T) {
	t.Parallel()
	bothListings(t, func(t *testing.T, p *fake) {
		r := keeper(t, p, checkpointtest.New(), Options{Trigger: "GO"})
		for i := range 100 {
			p.put(fmt.Sprintf("%03d", i), "x")
		}
		for round := range 4 {
			p.put(fmt.Sprintf("new%d", round), "x")
			p.put("GO", fmt.Sprint(round))
			for {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				ms, err := r.Fetch(ctx, 50)
				cancel()
				if err != nil {
					break
				}
				settle(t, r, sources.Done, ms...)
			}
			if p.has("GO") {
				t.Fatalf("round %d: the trigger stays", round)
			}
		}
	})
}

// TestKeptTriggerTakenBack: a file of the round that turns into the one that was worked does not hold it up.
func TestKeptTriggerTakenBack(t *testing.T) {
	t.Parallel()
	bothListings(t, func(t *testing.T, p *fake) {
		r := keeper(t, p, checkpointtest.New(), Options{Trigger: "GO", StableFor: 10 * time.Second})
		p.put("a", "x")
		p.put("GO", "1")
		ms, _ := fetch(t, r, 1)
		settle(t, r, sources.Done, ms...)
		nothing(t, r, time.Minute)
		old := p.files["a"]
		p.put("a", "another")
		p.put("GO", "2")
		p.set(func(p *fake) {
			p.fail = func(op, name string) error {
				if op == "stat" && name == "a" && r.round != nil {
					p.files["a"] = old
				}
				return nil
			}
		})
		if p.exact { // which is not looked at until it is to be delivered
			time.AfterFunc(15*time.Second, func() { p.set(func(p *fake) { p.files["a"] = old }) })
		}
		nothing(t, r, time.Hour)
		if p.has("GO") {
			t.Error("the trigger stays")
		}
	})
}

func TestKeptSetsAndTriggers(t *testing.T) {
	t.Parallel()
	bothListings(t, func(t *testing.T, p *fake) {
		store := checkpointtest.New()
		o := Options{Set: []string{"*.xml", "*.pdf"}, Trigger: "go"}
		r := keeper(t, p, store, o)
		for _, name := range []string{"a.xml", "a.pdf", "b.xml", "b.pdf", "go"} {
			p.put(name, name)
		}
		ms, keys := fetch(t, r, 2)
		if !slices.Equal(keys, []string{"a.xml", "b.xml"}) || len(ms[0].Members) != 1 {
			t.Fatalf("got %q", keys)
		}
		settle(t, r, sources.Done, ms...)
		nothing(t, r, time.Minute)
		if p.files["go"] != nil || p.names() != 4 {
			t.Errorf("%d files are left", p.names())
		}
		p.put("b.pdf", "new") // a member, not the leader
		p.put("go", "")
		r = keeper(t, p, store, o)
		if ms, keys = fetch(t, r, 1); keys[0] != "b.xml" {
			t.Fatalf("got %q", keys)
		}
		settle(t, r, sources.Done, ms...)
		nothing(t, r, time.Minute)
	})
}

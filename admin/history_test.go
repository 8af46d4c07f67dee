package admin

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/backends/memory"
	"github.com/rebalancer-go/rebalancer/coord"
)

// history is that of the group g.
func history(t *testing.T, store backends.Store) []Record {
	t.Helper()
	list, err := History(t.Context(), store, "g")
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func (r Record) words() string {
	return strings.Join(strings.Fields(fmt.Sprint(r.Kind, " ", r.Actor, " ", r.Node, r.Resource, " ", r.To, " ", r.Detail, " ", r.Reason)), " ")
}

// Each operation that changes something is in the history, with who did it and why, and one that changes nothing is not.
func TestOperationsAreRecorded(t *testing.T) {
	t.Parallel()
	store, ctx := memory.New(), t.Context()
	if _, err := History(ctx, store, "g"); !errors.Is(err, ErrNotFound) {
		t.Errorf("no group: %v", err)
	}
	if _, err := History(ctx, store, "a/b"); !errors.Is(err, ErrInvalid) {
		t.Errorf("wrong name: %v", err)
	}
	ann := As(store, "ann", "a test")
	group := func(changed bool, err error) ([]string, error) { return nil, err }
	for _, c := range []struct {
		want []string
		do   func(s backends.Store) ([]string, error)
	}{
		{[]string{"create ann barrier resource, resources static, ttl 30s a test"},
			func(s backends.Store) ([]string, error) {
				return group(Create(ctx, s, "g", Settings{TTL: 30 * time.Second}))
			}},
		{[]string{"settings ann barrier resource, resources registered, ttl 30s a test"},
			func(s backends.Store) ([]string, error) { return group(Change(ctx, s, "g", registered)) }},
		{[]string{"register ann a a test", "register ann b a test"},
			func(s backends.Store) ([]string, error) { return AddResources(ctx, s, "g", "a", "b") }},
		{[]string{"register ann c weight 3, requires zone=x, prefers disk=ssd a test"}, func(s backends.Store) ([]string, error) {
			return Register(ctx, s, "g", Registration{Name: "c", Weight: 3, Require: []string{"zone=x"}, Prefer: []string{"disk=ssd"}})
		}},
		{[]string{"remove ann c a test"}, func(s backends.Store) ([]string, error) { return RemoveResources(ctx, s, "g", "c", "d") }},
		{[]string{"pause ann a claims are kept a test"}, func(s backends.Store) ([]string, error) { return Pause(ctx, s, "g", true, "a") }},
		{[]string{"pause ann b a test"}, func(s backends.Store) ([]string, error) { return Pause(ctx, s, "g", false, "b") }},
		{[]string{"resume ann a a test"}, func(s backends.Store) ([]string, error) { return Resume(ctx, s, "g", "x", "a") }},
		{[]string{"pause ann claims are kept a test"}, func(s backends.Store) ([]string, error) { return group(PauseGroup(ctx, s, "g", true)) }},
		{[]string{"resume ann a test"}, func(s backends.Store) ([]string, error) { return group(ResumeGroup(ctx, s, "g")) }},
		{[]string{"drain ann n a test", "drain ann m a test"}, func(s backends.Store) ([]string, error) { return Drain(ctx, s, "g", "n", "m") }},
		{[]string{"undrain ann n a test"}, func(s backends.Store) ([]string, error) { return Undrain(ctx, s, "g", "n", "l") }},
		{[]string{"pin ann a n a test"}, func(s backends.Store) ([]string, error) { return Pin(ctx, s, "g", "n", "a") }},
		{[]string{"unpin ann a a test"}, func(s backends.Store) ([]string, error) { return Unpin(ctx, s, "g", "a", "b") }},
	} {
		had := 0
		if len(c.want) > 0 && !strings.HasPrefix(c.want[0], "create") {
			had = len(history(t, store))
		}
		for range 2 { // the second time changes nothing
			if _, err := c.do(ann); err != nil {
				t.Fatalf("%q: %v", c.want, err)
			}
		}
		list := history(t, store)
		var got []string
		for _, r := range list[:len(list)-had] {
			got = append(got, r.words())
			if r.At.IsZero() || time.Since(r.At) > time.Minute {
				t.Errorf("%q: at %v", r.words(), r.At)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
	if _, err := Drain(ctx, store, "g", "anonymous"); err != nil {
		t.Fatal(err)
	}
	if got := history(t, store)[0].words(); got != "drain anonymous" {
		t.Errorf("without a name: %q", got)
	}
}

// The history keeps the last 75 operations and never more than 100, with the newest first, and what is too long is cut.
func TestHistoryIsBounded(t *testing.T) {
	t.Parallel()
	store, ctx := memory.New(), t.Context()
	if _, err := Create(ctx, store, "g", registered); err != nil {
		t.Fatal(err)
	}
	const n = coord.HistorySlots + 50
	for i := range n {
		if _, err := Drain(ctx, store, "g", fmt.Sprintf("n%03d", i)); err != nil {
			t.Fatal(err)
		}
	}
	list := history(t, store)
	if len(list) > coord.HistorySlots || len(list) < coord.HistorySlots-oldest {
		t.Errorf("%d records", len(list))
	}
	if newest := fmt.Sprintf("n%03d", n-1); list[0].Node != newest {
		t.Errorf("the newest is about %q, want %q", list[0].Node, newest)
	}
	kept := map[string]bool{}
	for i, r := range list {
		kept[r.Node] = true
		if i > 0 && r.At.After(list[i-1].At) {
			t.Errorf("record %d is newer than the one before it", i)
		}
	}
	for i := n - coord.HistorySlots + oldest; i < n; i++ {
		if name := fmt.Sprintf("n%03d", i); !kept[name] {
			t.Errorf("%s is not there any more", name)
		}
	}

	many := make([]string, 5000)
	for i := range many {
		many[i] = fmt.Sprintf("resource-%05d", i)
	}
	if _, err := AddResources(ctx, As(store, strings.Repeat("a", 1000), strings.Repeat("ü", 1000)), "g", many...); err != nil {
		t.Fatal(err)
	}
	list = history(t, store)
	i := slices.IndexFunc(list, func(r Record) bool { return r.More > 0 })
	if i < 500 || list[i].More+i != len(many) || list[i].Resource != "" || len(list[i].Actor) != maxActor || len(list[i].Reason) != maxReason {
		t.Errorf("line %d of %d says that more were registered: %+v", i, len(list), list[max(i, 0)])
	}
}

// An operation and its record stand or fall together.
func TestRecordIsWrittenWithTheChange(t *testing.T) {
	t.Parallel()
	store, ctx := memory.New(), t.Context()
	if _, err := Create(ctx, store, "g", registered); err != nil {
		t.Fatal(err)
	}
	s := session(t, store)
	_, version, _, err := settings(ctx, s)
	if err != nil {
		t.Fatal(err)
	}
	todo := func() []backends.Txn {
		todo, err := pending(ctx, s, []ask{{"a", coord.DrainKey("a"), &coord.Control{Node: "a"}}}, version, map[string]bool{})
		if err != nil {
			t.Fatal(err)
		}
		if todo, err = recorded(ctx, s, coord.Record{Kind: KindDrain}, todo); err != nil {
			t.Fatal(err)
		}
		return todo
	}
	late, twin := todo(), todo()
	twin[0].Checks[2], twin[0].Puts[1] = late[0].Checks[2], late[0].Puts[1] // it wants the same place
	if err := commit(ctx, s, late...); err != nil {
		t.Fatal(err)
	}
	twin[0].Checks[0] = backends.Check{Key: coord.DrainKey("other")}
	twin[0].Puts[0].Key = coord.DrainKey("other")
	if err := commit(ctx, s, twin...); !errors.Is(err, backends.ErrConflict) {
		t.Errorf("it took the place of a record that it had not seen: %v", err)
	}
	if n := len(history(t, store)); n != 2 {
		t.Errorf("%d records", n)
	}
}

// Operators at the same time all get what they asked for, each with a record of its own.
func TestRecordsBesideOthers(t *testing.T) {
	t.Parallel()
	store, ctx := memory.New(), t.Context()
	if _, err := Create(ctx, store, "g", registered); err != nil {
		t.Fatal(err)
	}
	errs := make(chan error)
	const n = 60
	for i := range n {
		go func() {
			_, err := Drain(ctx, store, "g", fmt.Sprint("n", i), fmt.Sprint("m", i))
			errs <- err
		}()
	}
	for range n {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if list := history(t, store); len(list) != 2*n+1 {
		t.Errorf("%d lines: %+v", len(list), list)
	}
}

// Rebalances are in the history with their reasons and moves.
func TestRebalancesAreRecorded(t *testing.T) {
	t.Parallel()
	inGroup(t, registered, func(t *testing.T, store *memory.Store) {
		if _, err := AddResources(t.Context(), store, "g", "a", "b"); err != nil {
			t.Fatal(err)
		}
		of := func(kind string) (list []Record) {
			for _, r := range history(t, store) {
				if r.Kind == kind {
					list = append(list, r)
				}
			}
			return list
		}
		defer startNode(t, store, "one")()
		settledAfter(t, store)
		list := of(KindRebalance)
		if len(list) != 2 || list[0].Resource != "a" || list[1].Resource != "b" || list[0].From != "" || list[0].To != "one" ||
			!strings.Contains(list[0].Reason, "node one joined") || list[0].Actor != "one" || list[0].Epoch == 0 || list[0].Generation == 0 {
			t.Fatalf("%+v", list)
		}
		stop := startNode(t, store, "two")
		d := settledAfter(t, store)
		moved := list[0]
		if list = of(KindRebalance); len(list) != 3 {
			t.Fatalf("%+v", list)
		}
		moved = list[0]
		if moved.From != "one" || moved.To != "two" || moved.Reason != "node two joined" || moved.Detail != "balance" || named(d, moved.Resource).Owner != "two" || moved.Generation <= list[1].Generation {
			t.Errorf("%+v", moved)
		}
		stop()
		settledAfter(t, store)
		if back := of(KindRebalance)[0]; back.Resource != moved.Resource || back.From != "two" || back.To != "one" || back.Reason != "node two leaves" {
			t.Errorf("%+v", back)
		}
	})
}

package seen

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rebalancer-go/rebalancer/internal/checkpointtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// open opens the state under a new claim.
func open1(tb testing.TB, s *checkpointtest.Store) *State {
	tb.Helper()
	return openUnder(tb, s.Claim(), Options{})
}

func openUnder(tb testing.TB, cp *checkpointtest.Checkpoint, o Options) *State {
	tb.Helper()
	o.Resource, o.Fence = "in", cp.Fence()
	if o.Pace == 0 {
		o.Pace = -1
	}
	st, err := Open(context.Background(), cp, o)
	if err != nil {
		tb.Fatal(err)
	}
	return st
}

func done(id uint64) Record { return Record{ID: id, Outcome: Done} }

func settle(tb testing.TB, s *State, batch ...Settlement) {
	tb.Helper()
	if err := s.Settle(context.Background(), batch); err != nil {
		tb.Fatal(err)
	}
}

// numbered are n settlements of names that ascend.
func numbered(from, n int) []Settlement {
	out := make([]Settlement, n)
	for i := range out {
		out[i] = Settlement{fmt.Sprintf("orders-2026-11-30-%08d.csv", from+i), done(uint64(from + i))}
	}
	return out
}

// contents are what a store has, and checks that nothing is left over in it.
func contents(tb testing.TB, s *checkpointtest.Store) map[string]Record {
	tb.Helper()
	values := s.Values()
	st, err := parse(values)
	if err != nil {
		tb.Fatal(err)
	}
	if len(st.orphans) > 0 {
		tb.Fatalf("orphans are left: %q", st.orphans)
	}
	for k, v := range values {
		limit := maxValue
		if k == keyHead {
			limit = maxHead
		}
		if len(v) > limit {
			tb.Fatalf("%q has %d bytes", k, len(v))
		}
	}
	if len(st.young) > journalMost {
		tb.Fatalf("the journal has %d names", len(st.young))
	}
	out := map[string]Record{}
	st.each(func(e *entry) { out[e.name] = e.Record })
	if len(out) != st.count {
		tb.Fatalf("%d names, counted as %d", len(out), st.count)
	}
	return out
}

// inMemory is what a State knows, and checks that it fits together.
func inMemory(tb testing.TB, s *State) map[string]Record {
	tb.Helper()
	out := map[string]Record{}
	s.each(func(e *entry) {
		if _, ok := out[e.name]; ok {
			tb.Errorf("%q is there twice", e.name)
		}
		out[e.name] = e.Record
	})
	if len(out) != s.Len() {
		tb.Errorf("%d names, counted as %d", len(out), s.Len())
	}
	for _, name := range slices.Sorted(maps.Keys(out)) {
		if r, ok := s.Look(name); !ok || r != out[name] {
			tb.Errorf("%q is %v, %v, want %v", name, r, ok, out[name])
		}
	}
	return out
}

func same(tb testing.TB, what string, got, want map[string]Record) {
	tb.Helper()
	if maps.Equal(got, want) {
		return
	}
	for name, r := range want {
		if g, ok := got[name]; !ok || g != r {
			tb.Fatalf("%s: %.60q is %v, %v; want %v (%d names, want %d)", what, name, g, ok, r, len(got), len(want))
		}
	}
	tb.Fatalf("%s: %d names, want %d", what, len(got), len(want))
}

// list is one listing that has the names.
func list(tb testing.TB, s *State, absent func(context.Context, string) (bool, error), names ...string) (back []string) {
	tb.Helper()
	l := s.Begin()
	for _, n := range names {
		if _, _, b := l.Saw(n); b {
			back = append(back, n)
		}
	}
	if absent == nil {
		absent = func(context.Context, string) (bool, error) { return true, nil }
	}
	if err := l.Complete(context.Background(), absent); err != nil {
		tb.Fatal(err)
	}
	if err := s.Tidy(context.Background()); err != nil {
		tb.Fatal(err)
	}
	return back
}

func wantErr(tb testing.TB, what string, err error, want error, says ...string) {
	tb.Helper()
	if !errors.Is(err, want) {
		tb.Errorf("%s: error %v, want %v", what, err, want)
		return
	}
	for _, s := range says {
		if !strings.Contains(err.Error(), s) {
			tb.Errorf("%s: %q does not say %q", what, err, s)
		}
	}
}

func later(d time.Duration) int64 { return time.Now().Add(d).UnixMilli() }

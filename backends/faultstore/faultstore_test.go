package faultstore_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/backends/faultstore"
	"github.com/rebalancer-go/rebalancer/backends/memory"
	"github.com/rebalancer-go/rebalancer/backends/storetest"
)

func TestContractWithoutFaults(t *testing.T) {
	t.Parallel()
	storetest.Run(t, storetest.Driver{TTL: 10 * time.Second, Wrap: synctest.Test, Place: func(*testing.T) storetest.Place {
		s := memory.New()
		f := faultstore.New(s, nil)
		return storetest.Place{
			Open:     func(*testing.T) backends.Store { return f },
			Lose:     func(*testing.T) { s.Forget() },
			StepBack: func(_ *testing.T, d time.Duration) { s.Step(-d) },
			RollBack: func(*testing.T) func(*testing.T) {
				then := s.Snapshot()
				return func(*testing.T) { s.Restore(then) }
			},
			Cannot: map[storetest.Ability]string{
				storetest.TwoHandles: "the data is in the wrapped store itself",
				storetest.Rows:       "the memory store removes what ended before anything can count it",
			},
		}
	}})
}

type world struct {
	*testing.T
	store *faultstore.Store
	h     backends.Session
	plain backends.Session // a session of another node, for looking
}

func newWorld(t *testing.T) *world {
	w := &world{T: t, store: faultstore.New(memory.New(), nil)}
	w.h, w.plain = w.open("n1"), w.open("n2")
	return w
}

func (w *world) open(node string) backends.Session {
	h, err := w.store.Open(w.Context(), backends.SessionOptions{Group: "g", Node: node, TTL: time.Minute})
	if err != nil {
		w.Fatal(err)
	}
	return h
}

func commit(ctx context.Context, h backends.Session, key string) (backends.Result, error) {
	r, err := h.Commit(ctx, backends.CommitRequest{Incarnation: h.Opened().Incarnation,
		Txns: []backends.Txn{{Puts: []backends.Put{{Key: key}}, Wake: []string{"a"}}}})
	if err != nil {
		return backends.Result{}, err
	}
	return r.Results[0], nil
}

func (w *world) has(key string) bool {
	r, err := w.plain.Read(w.Context(), backends.ReadRequest{Keys: []string{key}})
	if err != nil {
		w.Fatal(err)
	}
	return len(r.Entries) == 1
}

func TestCommitFaults(t *testing.T) {
	t.Parallel()
	n1 := faultstore.Match{Node: "n1", Kinds: []faultstore.Kind{faultstore.Commit}}
	for name, c := range map[string]struct {
		fault            faultstore.Fault
		applied, unknown bool
		took             time.Duration
	}{
		"pass":        {faultstore.Fault{}, true, false, 0},
		"before":      {faultstore.Fault{Before: true}, false, false, 0},
		"after":       {faultstore.Fault{After: true}, true, true, 0},
		"hang before": {faultstore.Fault{Before: true, Hang: true}, false, true, time.Second},
		"hang after":  {faultstore.Fault{After: true, Hang: true}, true, true, time.Second},
		"delay":       {faultstore.Fault{Delay: time.Second / 2}, true, false, time.Second / 2},
		"delay long":  {faultstore.Fault{Delay: time.Hour}, false, false, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.store.SetPlan(faultstore.Script(n1, c.fault))
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				start := time.Now()
				res, err := commit(ctx, w.h, "k")
				if took := time.Since(start); took != c.took {
					t.Errorf("took %v, want %v", took, c.took)
				}
				if w.has("k") != c.applied {
					t.Errorf("applied: %v, want %v", w.has("k"), c.applied)
				}
				if errors.Is(res.Err, backends.ErrUnknown) != c.unknown {
					t.Errorf("result %v, %v", res.Err, err)
				}
				if (err != nil) != (!c.applied && !c.unknown) || err != nil && !errors.Is(err, faultstore.ErrInjected) {
					t.Errorf("error %v", err)
				}
				if res, err := commit(t.Context(), w.h, "next"); err != nil || res.Err != nil {
					t.Errorf("the script is over, but: %v, %v", res, err)
				}
			})
		})
	}
}

func TestFaultsOfOtherCalls(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.store.SetPlan(faultstore.Always(faultstore.Match{Session: w.h.ID()}, faultstore.Fault{Before: true}))
	_, renew := w.h.Renew(t.Context(), backends.RenewRequest{Incarnation: w.h.Opened().Incarnation})
	_, read := w.h.Read(t.Context(), backends.ReadRequest{})
	_, supersede := w.h.Supersede(t.Context(), "n")
	for _, err := range []error{renew, read, supersede, w.h.Listen(t.Context(), "a", func() {}), w.h.Close(t.Context())} {
		if !errors.Is(err, faultstore.ErrInjected) {
			t.Errorf("error %v", err)
		}
	}
	if _, err := w.plain.Renew(t.Context(), backends.RenewRequest{Incarnation: w.h.Opened().Incarnation}); err != nil {
		t.Errorf("another session: %v", err)
	}
	w.store.SetPlan(faultstore.All(faultstore.Always(faultstore.Match{Node: "other"}, faultstore.Fault{After: true}),
		faultstore.Always(faultstore.Match{Kinds: []faultstore.Kind{faultstore.Groups, faultstore.Open}}, faultstore.Fault{Before: true})))
	if _, err := w.store.Groups(t.Context()); !errors.Is(err, faultstore.ErrInjected) {
		t.Errorf("Groups: %v", err)
	}
	if _, err := w.store.Open(t.Context(), backends.SessionOptions{Group: "g", TTL: time.Minute}); !errors.Is(err, faultstore.ErrInjected) {
		t.Errorf("Open: %v", err)
	}
}

// A supersede whose answer was lost is carried out, and may be repeated; one that did not arrive is not.
func TestSupersedeFaults(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	newer := w.open("n1")
	w.store.SetPlan(faultstore.Script(faultstore.Match{Kinds: []faultstore.Kind{faultstore.Supersede}, Session: newer.ID()},
		faultstore.Fault{Before: true}, faultstore.Fault{After: true}))
	renewal := backends.RenewRequest{Incarnation: w.h.Opened().Incarnation}
	if _, err := newer.Supersede(t.Context(), "n1"); !errors.Is(err, faultstore.ErrInjected) {
		t.Errorf("error %v", err)
	}
	if _, err := w.h.Renew(t.Context(), renewal); err != nil {
		t.Errorf("superseded by a call that did not arrive: %v", err)
	}
	if _, err := newer.Supersede(t.Context(), "n1"); !errors.Is(err, faultstore.ErrInjected) {
		t.Errorf("error %v", err)
	}
	if _, err := w.h.Renew(t.Context(), renewal); !errors.Is(err, backends.ErrSuperseded) {
		t.Errorf("a call that arrived did nothing: %v", err)
	}
	if r, err := newer.Supersede(t.Context(), "n1"); err != nil || r.Older != 1 {
		t.Errorf("repeated: %+v, %v", r, err)
	}
}

func TestHintFaults(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var heard atomic.Int64
		if err := w.h.Listen(t.Context(), "a", func() { heard.Add(1) }); err != nil {
			t.Fatal(err)
		}
		w.store.SetPlan(faultstore.Script(faultstore.Match{Kinds: []faultstore.Kind{faultstore.Hint}},
			faultstore.Fault{Before: true}, faultstore.Fault{After: true}, faultstore.Fault{Delay: time.Second}, faultstore.Fault{Delay: time.Hour}))
		for i, want := range []int64{0, 2, 2, 3} {
			if _, err := commit(t.Context(), w.plain, fmt.Sprint(i)); err != nil {
				t.Fatal(err)
			}
			if got := heard.Load(); got != want {
				t.Fatalf("after commit %d: %d hints, want %d", i, got, want)
			}
			if i == 2 {
				<-time.After(2 * time.Second)
				synctest.Wait()
			}
		}
		if err := w.store.Close(); err != nil { // the last one is dropped
			t.Fatal(err)
		}
		<-time.After(2 * time.Hour)
		synctest.Wait()
		if got := heard.Load(); got != 3 {
			t.Fatalf("%d hints after Close", got)
		}
	})
}

func TestRandomIsRepeatedByItsSeed(t *testing.T) {
	t.Parallel()
	p := faultstore.Chances{Before: 0.1, After: 0.1, HangBefore: 0.1, HangAfter: 0.1, Delay: 0.3, MaxDelay: time.Second}
	m := faultstore.Match{Kinds: []faultstore.Kind{faultstore.Commit}}
	a, b := faultstore.Random(7, m, p), faultstore.Random(7, m, p)
	counts := map[faultstore.Fault]int{}
	for i := range 1000 {
		c := faultstore.Call{Kind: faultstore.Commit, Number: int64(i)}
		f := a.Decide(c)
		if f != b.Decide(c) {
			t.Fatalf("call %d differs", i)
		}
		f.Delay = min(f.Delay, 1)
		counts[f]++
		if a.Decide(faultstore.Call{Kind: faultstore.Read}) != (faultstore.Fault{}) {
			t.Fatal("a call that does not match got a fault")
		}
	}
	if len(counts) != 6 {
		t.Fatalf("faults drawn: %v", counts)
	}
}

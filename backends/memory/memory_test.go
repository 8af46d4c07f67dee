package memory

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rebalancer-go/rebalancer/backends"
)

func open(t *testing.T, s *Store, node string) backends.Session {
	t.Helper()
	h, err := s.Open(t.Context(), backends.SessionOptions{Group: "g", Node: node, TTL: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func put(ctx context.Context, h backends.Session, inc, key string) (backends.Result, error) {
	r, err := h.Commit(ctx, backends.CommitRequest{Incarnation: inc, Txns: []backends.Txn{{
		Puts: []backends.Put{{Key: key, Value: []byte("v"), Bound: true}}, Wake: []string{"a"},
	}}})
	if err != nil {
		return backends.Result{}, err
	}
	return r.Results[0], nil
}

func has(t *testing.T, h backends.Session, key string) bool {
	t.Helper()
	r, err := h.Read(t.Context(), backends.ReadRequest{Keys: []string{key}})
	if err != nil {
		t.Fatal(err)
	}
	return len(r.Entries) == 1
}

func TestCutLosesRequestsUntilTheContextEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := New()
		h, other := open(t, s, "n1"), open(t, s, "n2")
		inc := h.Opened().Incarnation
		restore := s.Cut("n1")
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		start := time.Now()
		res, err := put(ctx, h, inc, "k")
		if err != nil || !errors.Is(res.Err, backends.ErrUnknown) || !errors.Is(res.Err, context.DeadlineExceeded) {
			t.Fatalf("commit of a node that is cut off: %v, %v", res, err)
		}
		if d := time.Since(start); d != 3*time.Second {
			t.Fatalf("hung for %v", d)
		}
		if _, err := h.Renew(ctx, backends.RenewRequest{Incarnation: inc}); err == nil {
			t.Fatal("renewed while cut off")
		}
		if has(t, other, "k") {
			t.Fatal("a lost request was applied")
		}
		restore()
		restore() // twice is once
		if res, err := put(t.Context(), h, inc, "k"); err != nil || res.Err != nil {
			t.Fatal(res, err)
		}
	})
}

func TestCutRepliesAppliesAndLosesTheAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := New()
		h, other := open(t, s, "n1"), open(t, s, "n2")
		restore := s.CutReplies("n1")
		done := make(chan backends.Result, 1)
		go func() {
			res, _ := put(t.Context(), h, h.Opened().Incarnation, "k")
			done <- res
		}()
		synctest.Wait()
		if !has(t, other, "k") {
			t.Fatal("the request did not arrive")
		}
		restore()
		if res := <-done; !errors.Is(res.Err, backends.ErrUnknown) {
			t.Fatalf("result is %v, want unknown", res)
		}
	})
}

func TestCutNodeHearsNoHints(t *testing.T) {
	t.Parallel()
	s := New()
	h, other := open(t, s, "n1"), open(t, s, "n2")
	heard := 0
	if err := h.Listen(t.Context(), "a", func() { heard++ }); err != nil {
		t.Fatal(err)
	}
	restore := s.Cut("n1")
	for range 2 {
		if res, err := put(t.Context(), other, other.Opened().Incarnation, "k"); err != nil || res.Err != nil {
			t.Fatal(res, err)
		}
		restore()
	}
	if heard != 1 {
		t.Fatalf("heard %d hints, want only the one after the cut", heard)
	}
}

func TestExpireEndsTheSessionAtOnce(t *testing.T) {
	t.Parallel()
	s := New()
	h, other := open(t, s, "n1"), open(t, s, "n2")
	inc := h.Opened().Incarnation
	if res, err := put(t.Context(), h, inc, "k"); err != nil || res.Err != nil {
		t.Fatal(res, err)
	}
	s.Expire("n1")
	if has(t, other, "k") {
		t.Fatal("the entry outlived its session")
	}
	if _, err := h.Renew(t.Context(), backends.RenewRequest{Incarnation: inc}); !errors.Is(err, backends.ErrSessionLost) {
		t.Fatalf("renewal after Expire: %v", err)
	}
}

func TestRestoreGoesBackAndBeginsAnIncarnation(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := New()
		h := open(t, s, "n1")
		inc := h.Opened().Incarnation
		first, _ := put(t.Context(), h, inc, "k")
		then := s.Snapshot()
		second, _ := put(t.Context(), h, inc, "k")
		for range 2 {
			s.Restore(then)
			r, err := h.Read(t.Context(), backends.ReadRequest{Prefixes: []string{""}})
			if err != nil || len(r.Entries) != 1 || r.Entries[0].Version != first.Versions["k"] {
				t.Fatalf("after Restore: %+v, %v", r, err)
			}
			if r.Incarnation == inc || !r.Since.Equal(time.Now()) {
				t.Fatalf("stamp is %+v, want a new incarnation since now", r.Stamp)
			}
			if res, _ := put(t.Context(), h, inc, "k"); !errors.Is(res.Err, backends.ErrIncarnation) {
				t.Fatalf("commit under the old incarnation: %v", res)
			}
			third, err := put(t.Context(), h, r.Incarnation, "k")
			if err != nil || third.Versions["k"] <= second.Versions["k"] {
				t.Fatalf("version %v after %v that was lost", third, second)
			}
			inc = r.Incarnation
		}
	})
}

func TestStepMovesTheClock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := New()
		h := open(t, s, "n1")
		inc := h.Opened().Incarnation
		s.Step(-time.Hour)
		if res, err := put(t.Context(), h, inc, "k"); err != nil || res.Err != nil {
			t.Fatal(res, err)
		}
		s.Step(time.Hour + 10*time.Second)
		if _, err := h.Renew(t.Context(), backends.RenewRequest{Incarnation: inc}); !errors.Is(err, backends.ErrSessionLost) {
			t.Fatalf("renewal at the end of the session: %v", err)
		}
		s.Step(-time.Hour)
		if r, err := h.Renew(t.Context(), backends.RenewRequest{Incarnation: inc}); !errors.Is(err, backends.ErrSessionLost) {
			t.Fatalf("a clock that was set back brought the session back: %v, %v", r, err)
		}
	})
}

func TestLatencyAndCalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := New(WithLatency(10 * time.Millisecond))
		start := time.Now()
		h := open(t, s, "n1")
		if _, err := put(t.Context(), h, h.Opened().Incarnation, "k"); err != nil {
			t.Fatal(err)
		}
		if _, err := h.Renew(t.Context(), backends.RenewRequest{Incarnation: "other"}); !errors.Is(err, backends.ErrIncarnation) {
			t.Fatal(err)
		}
		if d := time.Since(start); d != 30*time.Millisecond {
			t.Fatalf("three calls took %v", d)
		}
		want := Calls{Open: 1, Renew: 1, Commit: 1, Txns: 1, Applied: 1}
		if got := s.CallsOf("n1"); got != want || s.Calls() != want || got.Writes() != 3 || got.RoundTrips() != 3 {
			t.Fatalf("calls %+v, want %+v", got, want)
		}
		if got := s.CallsOf("n2"); got != (Calls{}) {
			t.Fatalf("calls of a node that made none: %+v", got)
		}
	})
}

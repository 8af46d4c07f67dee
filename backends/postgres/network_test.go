//go:build linux

package postgres

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/internal/testserver"
	"github.com/rebalancer-go/rebalancer/internal/waittest"
)

// within calls f with a deadline, and fails the test when f goes on well after that.
func within(t *testing.T, d time.Duration, f func(context.Context) error) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	start := time.Now()
	err := f(ctx)
	if took := time.Since(start); took > d+2*time.Second {
		t.Errorf("a call returned after %v, its deadline was %v", took, d)
	}
	return err
}

// After a crash of the server the sessions are there, in a new incarnation, and the first calls succeed over connections that were all lost.
func TestServerKilledAndRestarted(t *testing.T) {
	t.Parallel()
	p := testserver.StartPostgres(t, 15)
	s := fresh(t, p)
	h := session(t, s, "n", time.Minute)
	version := must(t, h, claim("k"))[0].Versions["k"]
	if _, err := renew(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	p.Kill()
	err := within(t, time.Second, func(ctx context.Context) error { _, err := renew(ctx, h); return err })
	if err == nil || errors.Is(err, backends.ErrFatal) {
		t.Fatalf("a renewal without a server: %v", err)
	}
	p.Restart()
	if _, err := renew(t.Context(), h); !errors.Is(err, backends.ErrIncarnation) {
		t.Fatalf("the first renewal after the restart: %v", err)
	}
	rs, err := commit(t.Context(), h, claim("k"))
	if err != nil || !errors.Is(rs[0].Err, backends.ErrIncarnation) {
		t.Fatalf("the first commit: %v, %v", rs, err)
	}
	r, err := h.Read(t.Context(), backends.ReadRequest{Keys: []string{"k"}})
	if err != nil || len(r.Entries) != 1 || r.Entries[0].Version != version || r.Entries[0].Session != h.ID() {
		t.Fatalf("read: %+v, %v", r, err)
	}
	if _, err := h.Renew(t.Context(), backends.RenewRequest{Incarnation: r.Incarnation}); err != nil {
		t.Fatalf("a renewal in the new incarnation: %v", err)
	}
}

// While all processes of the server are frozen, calls end with their contexts; then all goes on.
func TestServerFrozen(t *testing.T) {
	t.Parallel()
	p := testserver.StartPostgres(t, 15)
	s := fresh(t, p)
	h := session(t, s, "n", time.Minute)
	must(t, h, claim("k"))
	if _, err := renew(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	p.Freeze()
	for what, call := range map[string]func(context.Context) error{
		"renewal": func(ctx context.Context) error { _, err := renew(ctx, h); return err },
		"read":    func(ctx context.Context) error { _, err := h.Read(ctx, backends.ReadRequest{}); return err },
		"open": func(ctx context.Context) error {
			_, err := s.Open(ctx, backends.SessionOptions{Group: "g", TTL: time.Minute})
			return err
		},
		"listen": func(ctx context.Context) error { return h.Listen(ctx, "a", func() {}) },
		"commit": func(ctx context.Context) error {
			rs, err := commit(ctx, h, claim("k"))
			if err == nil {
				err = rs[0].Err
			}
			return err
		},
	} {
		if err := within(t, 500*time.Millisecond, call); err == nil || errors.Is(err, backends.ErrFatal) {
			t.Errorf("%s at a frozen server: %v", what, err)
		}
	}
	other := openStore(t, p.URL("postgres", ""), Schema(s.schema))
	if err := within(t, time.Second, func(ctx context.Context) error { _, err := other.Groups(ctx); return err }); err == nil {
		t.Error("a frozen server answered")
	}
	start := time.Now()
	if err := other.Close(); err != nil || time.Since(start) > 3*longestClose {
		t.Errorf("Close at a frozen server: %v, after %v", err, time.Since(start))
	}
	p.Thaw()
	if _, err := renew(t.Context(), h); err != nil {
		t.Errorf("renewal after the thaw: %v", err)
	}
	must(t, h, claim("k"))
}

// What a cut does to each call, and that the next one succeeds.
func TestNetwork(t *testing.T) {
	t.Parallel()
	p := testserver.StartPostgres(t, 15)
	link := testserver.Proxy(t, p.Addr())
	s := openStore(t, p.URLAt(link.Addr(), "postgres", ""), Schema(newSchema()), CreateSchema())
	h := session(t, s, "n", time.Minute)
	check := func(what string) {
		t.Helper()
		if _, err := renew(t.Context(), h, "k"); err != nil {
			t.Fatalf("renewal after %s: %v", what, err)
		}
		must(t, h, claim("k"))
	}
	check("the start")
	link.Cut()
	if err := within(t, time.Second, func(ctx context.Context) error { _, err := renew(ctx, h); return err }); err == nil {
		t.Fatal("a renewal while cut off")
	}
	link.Heal()
	check("a cut")
	link.Blackhole()
	if err := within(t, 500*time.Millisecond, func(ctx context.Context) error { _, err := renew(ctx, h); return err }); err == nil {
		t.Fatal("a renewal into a black hole")
	}
	err := within(t, 500*time.Millisecond, func(ctx context.Context) error { _, err := commit(ctx, h, claim("lost")); return err })
	if err == nil {
		t.Fatal("a commit into a black hole: nothing can have been applied")
	}
	link.Heal()
	check("a black hole")
	if r, err := h.Read(t.Context(), backends.ReadRequest{Keys: []string{"lost"}}); err != nil || len(r.Entries) != 0 {
		t.Fatalf("it was applied, although an error said that it was not: %+v, %v", r, err)
	}
}

// When the answer to the commit alone is lost, the outcome is unknown, and reading resolves it.
func TestUnknownOutcome(t *testing.T) {
	t.Parallel()
	p := testserver.StartPostgres(t, 15)
	link := testserver.Proxy(t, p.Addr())
	s := openStore(t, p.URLAt(link.Addr(), "postgres", ""), Schema(newSchema()), CreateSchema())
	direct := openStore(t, p.URL("postgres", ""), Schema(s.schema))
	h := session(t, s, "n", time.Minute)
	must(t, h, claim("k"))
	deaf := func() { link.Deaf() }
	s.beforeCommit.Store(&deaf)
	var rs []backends.Result
	err := within(t, 2*time.Second, func(ctx context.Context) (err error) { rs, err = commit(ctx, h, claim("l")); return err })
	if err != nil || !errors.Is(rs[0].Err, backends.ErrUnknown) {
		t.Fatalf("a commit whose answer is lost: %v, %v", rs, err)
	}
	s.beforeCommit.Store(nil)
	link.Heal()
	waittest.Until(t, "it was found to be applied", func() bool {
		r, err := session(t, direct, "", time.Minute).Read(t.Context(), backends.ReadRequest{Keys: []string{"l"}})
		return err == nil && len(r.Entries) == 1
	})
}

// So it is when the connection breaks while the answer to the commit is awaited: the commit is not tried again, as one that never was.
func TestConnectionBreaksBehindTheCommit(t *testing.T) {
	t.Parallel()
	p := testserver.StartPostgres(t, 15)
	for _, how := range []string{"broken", "refused from then on"} {
		link := testserver.Proxy(t, p.Addr())
		s := openStore(t, p.URLAt(link.Addr(), "postgres", ""), Schema(newSchema()), CreateSchema())
		h := session(t, s, "n", time.Minute)
		must(t, h, claim("k"))
		direct := session(t, openStore(t, p.URL("postgres", ""), Schema(s.schema)), "", time.Minute)
		var once sync.Once
		deaf := func() { once.Do(link.Deaf) }
		s.beforeCommit.Store(&deaf)
		var rs []backends.Result
		var err error
		called := make(chan struct{})
		go func() {
			defer close(called)
			rs, err = commit(t.Context(), h, claim("l"))
		}()
		waittest.Until(t, "it was applied", func() bool {
			r, err := direct.Read(t.Context(), backends.ReadRequest{Keys: []string{"l"}})
			return err == nil && len(r.Entries) == 1
		})
		if how == "broken" {
			link.Heal()
		} else {
			link.Cut()
		}
		if <-called; err != nil || !errors.Is(rs[0].Err, backends.ErrUnknown) {
			t.Errorf("%s: a commit whose answer is lost: %v, %v", how, rs, err)
		}
	}
}

// A renewal is one round trip and a commit two, however many keys and transactions they have.
func TestRoundTrips(t *testing.T) {
	t.Parallel()
	p := testserver.StartPostgres(t, 15)
	s := fresh(t, p)
	h := session(t, s, "n", time.Minute)
	must(t, h, claim("k"))
	var txns []backends.Txn
	for i := range 20 {
		txns = append(txns, claim(keyNumber(i), backends.Check{Key: keyNumber(i)}, backends.Check{Key: "member"}))
	}
	for what, c := range map[string]struct {
		trips int64
		call  func() error
	}{
		"a renewal": {1, func() error {
			_, err := h.Renew(t.Context(), backends.RenewRequest{Incarnation: h.Opened().Incarnation, Keys: []string{"k", "l"}, Digests: []string{"k", ""}})
			return err
		}},
		"a renewal that sweeps": {2, func() error {
			_, err := h.Renew(t.Context(), backends.RenewRequest{Incarnation: h.Opened().Incarnation, Sweep: true})
			return err
		}},
		"a read": {1, func() error {
			_, err := h.Read(t.Context(), backends.ReadRequest{Prefixes: []string{"a", "k"}, Keys: []string{"k"}})
			return err
		}},
		"20 claims":  {2, func() error { _, err := commit(t.Context(), h, txns...); return err }},
		"a conflict": {2, func() error { _, err := commit(t.Context(), h, claim("k", backends.Check{Key: "k"})); return err }},
	} {
		before := s.trips.Load()
		if err := c.call(); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if n := s.trips.Load() - before; n != c.trips {
			t.Errorf("%s took %d round trips, want %d", what, n, c.trips)
		}
	}
}

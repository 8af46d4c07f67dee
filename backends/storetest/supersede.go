package storetest

import (
	"errors"
	"sync"

	"github.com/rebalancer-go/rebalancer/backends"
)

var supersedeCases = []testCase{
	{"SupersededSessionCannotRenew", nil, supersededCannotRenew},
	{"SupersededSessionCannotBind", nil, supersededCannotBind},
	{"SupersededSessionMayReleaseAndClose", nil, supersededMayRelease},
	{"SupersededSessionHoldsUntilItsEnd", nil, supersededHoldsUntilEnd},
	{"SupersedeConcernsOlderSessionsOfTheNameAlone", nil, supersedeConcernsOlder},
	{"SupersedeMayBeRepeated", nil, supersedeRepeated},
	{"SupersedeAfterTheEndIsRefused", nil, supersedeAfterEnd},
	{"NoRenewalSucceedsAfterASupersede", []Ability{TwoHandles}, supersedeRaces},
}

func (e *env) named(node string) backends.Session {
	e.Helper()
	return e.namedIn(e.store, group, node)
}

func (e *env) namedIn(s backends.Store, group, node string) backends.Session {
	e.Helper()
	h, err := s.Open(e.ctx, backends.SessionOptions{Group: group, Node: node, TTL: e.ttl})
	if err != nil {
		e.Fatalf("opening a session: %v", err)
	}
	return h
}

func (e *env) supersede(h backends.Session, node string, older int) backends.Superseded {
	e.Helper()
	r, err := h.Supersede(e.ctx, node)
	if err != nil {
		e.Fatalf("supersede: %v", err)
	}
	if r.Older != older || r.Ended != 0 || r.Incarnation != h.Opened().Incarnation || r.Time.IsZero() {
		e.Fatalf("supersede answers %+v, want %d older sessions", r, older)
	}
	return r
}

func (e *env) renewal(h backends.Session) (backends.RenewReply, error) {
	return h.Renew(e.ctx, backends.RenewRequest{Incarnation: h.Opened().Incarnation})
}

func supersededCannotRenew(e *env) {
	old := e.named("n")
	r := e.supersede(e.named("n"), "n", 1)
	if r.Left <= 0 || r.Left > e.ttl {
		e.Fatalf("%v left of the older session, its ttl is %v", r.Left, e.ttl)
	}
	reply, err := e.renewal(old)
	e.wantErr("renewal of a superseded session", err, backends.ErrSuperseded)
	if reply.Incarnation == "" {
		e.Fatal("the refusal has no stamp")
	}
}

func supersededCannotBind(e *env) {
	old, h := e.named("n"), e.named("n")
	e.supersede(h, "n", 1)
	res := e.commit(old, bindTxn("a"), backends.Txn{Puts: []backends.Put{{Key: "b", Value: []byte("x")}}})
	e.wantErr("a bound put of a superseded session", res[0].Err, backends.ErrSuperseded)
	if res[1].Err != nil {
		e.Fatalf("a put that is not bound: %v", res[1].Err)
	}
	if e.get(h, "a") != nil || e.get(h, "b") == nil {
		e.Fatal("the bound put was applied, or the other was not")
	}
}

func supersededMayRelease(e *env) {
	old, h := e.named("n"), e.named("n")
	v := e.bind(old, "a")
	e.bind(old, "b")
	e.supersede(h, "n", 1)
	e.must(old, backends.Txn{Checks: []backends.Check{{Key: "a", Version: v}}, Deletes: []string{"a"}})
	if e.get(h, "a") != nil || e.get(h, "b") == nil {
		e.Fatal("the release was not applied, or freed too much")
	}
	e.must(h, bindTxn("a", backends.Check{Key: "a"}))
	if err := old.Close(e.ctx); err != nil {
		e.Fatalf("closing a superseded session: %v", err)
	}
	e.must(h, bindTxn("b", backends.Check{Key: "b"}))
}

func supersededHoldsUntilEnd(e *env) {
	old, h := e.named("n"), e.named("n")
	v := e.bind(old, "a")
	e.supersede(h, "n", 1)
	end := e.get(h, "a")
	if end == nil || end.Session != old.ID() || end.Version != v {
		e.Fatalf("the older session's entry is %+v", end)
	}
	if err := e.commit(h, bindTxn("a", backends.Check{Key: "a"}))[0].Err; !errors.Is(err, backends.ErrConflict) {
		e.Fatalf("claiming what the older session holds: %v", err)
	}
	e.expire(old, h)
	e.must(h, bindTxn("a", backends.Check{Key: "a"}))
}

func supersedeConcernsOlder(e *env) {
	first, other := e.named("n"), e.named("m")
	elsewhere := e.namedIn(e.store, "another", "n")
	h := e.named("n")
	newer := e.named("n")
	e.supersede(h, "n", 1)
	_, err := e.renewal(first)
	e.wantErr("renewal of the older one", err, backends.ErrSuperseded)
	for what, s := range map[string]backends.Session{"another name": other, "another group": elsewhere, "the caller": h, "a newer one": newer} {
		if _, err := e.renewal(s); err != nil {
			e.Errorf("renewal of %s: %v", what, err)
		}
	}
}

func supersedeRepeated(e *env) {
	first, second, third := e.named("n"), e.named("n"), e.named("n")
	e.supersede(second, "n", 1)
	e.supersede(second, "n", 1)
	e.supersede(third, "n", 2)
	_, err := second.Supersede(e.ctx, "n")
	e.wantErr("supersede by a superseded session", err, backends.ErrSuperseded)
	for _, s := range []backends.Session{first, second} {
		_, err := e.renewal(s)
		e.wantErr("renewal", err, backends.ErrSuperseded)
	}
	e.supersede(third, "nobody", 0)
}

func supersedeAfterEnd(e *env) {
	h := e.named("n")
	if err := h.Close(e.ctx); err != nil {
		e.Fatal(err)
	}
	_, err := h.Supersede(e.ctx, "n")
	e.wantErr("supersede by a session that has ended", err, backends.ErrSessionLost)
}

// supersedeRaces lets an old session renew as fast as it can while it is superseded over another handle.
func supersedeRaces(e *env) {
	two := e.handle()
	for range e.d.Rounds {
		old, h := e.named("n"), e.namedIn(two, group, "n")
		var wg sync.WaitGroup
		started := make(chan struct{})
		wg.Go(func() {
			close(started)
			for {
				if _, err := e.renewal(old); err != nil {
					if !errors.Is(err, backends.ErrSuperseded) {
						e.Errorf("renewal: %v", err)
					}
					return
				}
			}
		})
		<-started
		if _, err := h.Supersede(e.ctx, "n"); err != nil {
			e.Fatal(err)
		}
		_, err := e.renewal(old)
		e.wantErr("renewal after the supersede was acknowledged", err, backends.ErrSuperseded)
		wg.Wait()
		for _, s := range []backends.Session{old, h} {
			if err := s.Close(e.ctx); err != nil {
				e.Fatal(err)
			}
		}
	}
}

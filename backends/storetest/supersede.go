package storetest

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/rebalancer-go/rebalancer/backends"
)

var supersedeCases = []testCase{
	{"SupersededSessionCannotRenew", nil, supersededCannotRenew},
	{"SupersededSessionCannotBind", nil, supersededCannotBind},
	{"SupersededSessionMayReleaseAndClose", nil, supersededMayRelease},
	{"SupersededSessionHoldsUntilItsEndExactly", nil, supersededHoldsUntilEnd},
	{"SupersededSessionCannotDoMoreInAnotherIncarnation", nil, supersededElsewhere},
	{"SupersedeConcernsOlderSessionsOfTheNameAlone", nil, supersedeConcernsOlder},
	{"SupersedeFollowsTheOrderOfOpening", []Ability{StepBack}, supersedeOrder},
	{"SupersedeMayBeRepeated", nil, supersedeRepeated},
	{"SupersedeNeedsAName", nil, supersedeNeedsAName},
	{"SupersedeAfterTheEndIsRefused", nil, supersedeAfterEnd},
	{"SupersedeCountsNoSessionThatEnded", nil, supersedeCountsLiving},
	{"SupersedeTellsTheLongestTimeLeft", nil, supersedeTellsLeft},
	{"SupersedeUndoneByARollBackIsRepeated", []Ability{RollBack}, supersedeRolledBack},
	{"NoRenewalSucceedsAfterASupersede", nil, supersedeRaces},
	{"OfManyThatSupersedeTheNewestWins", nil, supersedeEachOther},
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
	mixed := backends.Txn{Puts: []backends.Put{{Key: "c"}, {Key: "d", Bound: true}}, Deletes: []string{"b"}}
	e.wantErr("a bound put beside others", e.commit(old, mixed)[0].Err, backends.ErrSuperseded)
	conflict := bindTxn("a", backends.Check{Key: "b"})
	e.wantErr("a bound put whose check does not hold", e.commit(old, conflict)[0].Err, backends.ErrSuperseded)
	if e.get(h, "b") == nil || e.get(h, "c") != nil {
		e.Fatal("a transaction was applied in part")
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

// supersededHoldsUntilEnd: the supersede neither extends the old session nor shortens it, nor do refused renewals and
// commits, nor the supersede that is repeated.
func supersededHoldsUntilEnd(e *env) {
	old, h := e.named("n"), e.named("n")
	v := e.bind(old, "a")
	end := e.renew(old, backends.RenewRequest{}).Time.Add(old.TTL())
	e.supersede(h, "n", 1)
	e.poll("the session ended", func() bool {
		e.renew(h, backends.RenewRequest{})
		r := e.read(h, backends.ReadRequest{Keys: []string{"a"}})
		there := len(r.Entries) == 1
		switch {
		case !there && r.Time.Before(end):
			e.Fatalf("the entry vanished %v before the end", end.Sub(r.Time))
		case there && !r.Time.Before(end.Add(e.d.Slack)):
			e.Fatalf("the entry is there %v after the end", r.Time.Sub(end))
		case there && (r.Entries[0].Session != old.ID() || r.Entries[0].Version != v):
			e.Fatalf("the older session's entry is %+v", r.Entries[0])
		case !there:
			return true
		}
		for _, try := range []func(){
			func() { _, _ = h.Supersede(e.ctx, "n") },
			func() { _, _ = e.renewal(old) },
			func() { _ = e.commit(old, backends.Txn{}, bindTxn("b")) },
		} {
			try()
		}
		return false
	})
	_, err := e.renewal(old)
	e.wantErr("renewal after the end", err, backends.ErrSessionLost)
	for _, res := range e.commit(old, bindTxn("b"), backends.Txn{}) {
		e.wantErr("commit after the end", res.Err, backends.ErrSessionLost)
	}
	e.must(h, bindTxn("a", backends.Check{Key: "a"}))
}

// supersededElsewhere: a node that was superseded learns that first, whichever incarnation it has accepted.
func supersededElsewhere(e *env) {
	old := e.named("n")
	e.supersede(e.named("n"), "n", 1)
	_, err := old.Renew(e.ctx, backends.RenewRequest{Incarnation: "another"})
	e.wantErr("renewal in another incarnation", err, backends.ErrSuperseded)
	r, err := old.Commit(e.ctx, backends.CommitRequest{Incarnation: "another", Txns: []backends.Txn{bindTxn("a"), {}}})
	if err != nil {
		e.Fatal(err)
	}
	e.wantErr("a bound put in another incarnation", r.Results[0].Err, backends.ErrSuperseded)
	e.wantErr("another transaction there", r.Results[1].Err, backends.ErrIncarnation)
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

// supersedeOrder: who was opened later is the newer one, whatever the clock says.
func supersedeOrder(e *env) {
	first := e.named("n")
	e.place.StepBack(e.T, time.Minute)
	second := e.named("n")
	if _, err := first.Supersede(e.ctx, "n"); err != nil { // it is alive by the clock that was set back too
		e.Fatal(err)
	}
	if _, err := e.renewal(second); err != nil {
		e.Fatalf("the newer one was superseded by the older: %v", err)
	}
	e.supersede(second, "n", 1)
	_, err := e.renewal(first)
	e.wantErr("renewal of the older one", err, backends.ErrSuperseded)
}

// supersedeNeedsAName: sessions without a name are not each other's successors.
func supersedeNeedsAName(e *env) {
	old, h := e.named(""), e.named("")
	_, err := h.Supersede(e.ctx, "")
	e.wantErr("supersede of no name", err, backends.ErrInvalid)
	ctx, cancel := newCtx(e)
	cancel()
	if _, err := h.Supersede(ctx, "n"); err == nil {
		e.Fatal("a supersede with an ended context succeeded")
	}
	if _, err := e.renewal(old); err != nil {
		e.Fatalf("renewal: %v", err)
	}
}

func supersedeAfterEnd(e *env) {
	old, h := e.named("n"), e.named("n")
	if err := h.Close(e.ctx); err != nil {
		e.Fatal(err)
	}
	expired, other := e.named("n"), e.named("m")
	for range 5 { // the older one is kept alive
		e.renew(old, backends.RenewRequest{})
		e.until(other, e.renew(other, backends.RenewRequest{}).Time.Add(e.ttl/4))
	}
	for what, s := range map[string]backends.Session{"was closed": h, "has run out": expired} {
		_, err := s.Supersede(e.ctx, "n")
		e.wantErr("supersede by a session that "+what, err, backends.ErrSessionLost)
	}
	if _, err := e.renewal(old); err != nil {
		e.Fatalf("it was superseded nonetheless: %v", err)
	}
}

func supersedeCountsLiving(e *env) {
	expired, closed := e.named("n"), e.named("n")
	if err := closed.Close(e.ctx); err != nil {
		e.Fatal(err)
	}
	e.expire(expired, e.named("m"))
	h := e.named("n")
	if r := e.supersede(h, "n", 0); r.Left != 0 {
		e.Fatalf("%v left of no session", r.Left)
	}
	_, err := e.renewal(expired)
	e.wantErr("renewal of a session that had ended before", err, backends.ErrSessionLost)
}

func supersedeTellsLeft(e *env) {
	first, second := e.named("n"), e.named("n")
	e.bind(first, "a")
	e.bind(second, "b")
	h := e.named("n")
	e.until(h, h.Opened().Time.Add(e.ttl/4))
	end := e.renew(first, backends.RenewRequest{}).Time.Add(first.TTL())
	r := e.supersede(h, "n", 2)
	if off := end.Sub(r.Time) - r.Left; r.Left >= 0 && e.d.Slack == 0 && (off < -time.Millisecond || off > time.Millisecond) {
		e.Fatalf("%v left, wrong by %v", r.Left, off)
	}
}

func supersedeRolledBack(e *env) {
	old := e.lasting()
	restore := e.place.RollBack(e.T)
	e.supersede(e.lasting(), "node", 1)
	restore(e.T)
	again := e.lasting()
	e.supersede(again, "node", 1)
	if _, err := old.Renew(e.ctx, backends.RenewRequest{Incarnation: again.Opened().Incarnation}); !errors.Is(err, backends.ErrSuperseded) {
		e.Fatalf("renewal in the new incarnation: %v", err)
	}
}

// supersedeRaces lets an old session renew again and again while it is superseded, over another handle where there is one.
func supersedeRaces(e *env) {
	for range e.d.Rounds {
		sessions := e.raceSessions(2)
		old, h := sessions[0], sessions[1]
		started, last := make(chan struct{}, 1), make(chan error, 1)
		var stop atomic.Bool
		go func() {
			for {
				_, err := e.renewal(old)
				select {
				case started <- struct{}{}:
				default:
				}
				if err != nil || stop.Load() {
					last <- err
					return
				}
				<-time.After(e.ttl / 5000) // or nobody else gets a turn at some stores
			}
		}()
		<-started
		_, acknowledged := h.Supersede(e.ctx, "node")
		_, renewed := e.renewal(old)
		stop.Store(true)
		beside := <-last
		if acknowledged != nil {
			e.Fatal(acknowledged)
		}
		e.wantErr("renewal after the supersede was acknowledged", renewed, backends.ErrSuperseded)
		if beside != nil { // nil: it was acknowledged before
			e.wantErr("a renewal beside it", beside, backends.ErrSuperseded)
		}
		e.wantErr("bound put after it", e.commit(old, bindTxn("k"))[0].Err, backends.ErrSuperseded)
		for _, s := range sessions {
			if err := s.Close(e.ctx); err != nil {
				e.Fatal(err)
			}
		}
	}
}

// supersedeEachOther: all supersede at once, and put something bound; only the newest can, once all are done.
func supersedeEachOther(e *env) {
	for round := range e.d.Rounds {
		sessions := e.raceSessions(4)
		newest := len(sessions) - 1
		racers(sessions, func(i int, h backends.Session) {
			if _, err := h.Supersede(e.ctx, "node"); err != nil && (i == newest || !errors.Is(err, backends.ErrSuperseded)) {
				e.Errorf("round %d: supersede by session %d: %v", round, i, err)
			}
		})
		for i, h := range sessions {
			var want error
			if i != newest {
				want = backends.ErrSuperseded
			}
			if _, err := e.renewal(h); !errors.Is(err, want) {
				e.Fatalf("round %d: renewal of session %d of 4: %v", round, i+1, err)
			}
			if err := h.Close(e.ctx); err != nil {
				e.Fatal(err)
			}
		}
	}
}

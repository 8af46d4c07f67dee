package storetest

import (
	"errors"
	"sync"
	"time"

	"github.com/rebalancer-go/rebalancer/backends"
)

var closeCases = []testCase{
	{"CallsOnAClosedStoreFail", nil, callsOnClosed},
	{"CloseOfTheStoreIsIdempotentAndImmediate", nil, storeCloseTwice},
	{"CloseOfTheStoreLeavesSessionsInTheData", []Ability{TwoHandles}, closeLeavesSessions},
	{"CloseDuringCallsEndsThem", nil, closeDuringCalls},
	{"CloseOfTheStoreEndsHints", []Ability{Hints, TwoHandles}, closeEndsHints},
}

func callsOnClosed(e *env) {
	h := e.session()
	closeStore(e.T, e.store)
	inc := h.Opened().Incarnation
	_, err := e.store.Open(e.ctx, backends.SessionOptions{Group: group, TTL: e.ttl})
	e.wantErr("Open", err, backends.ErrClosed)
	_, err = e.store.Groups(e.ctx)
	e.wantErr("Groups", err, backends.ErrClosed)
	_, err = h.Renew(e.ctx, backends.RenewRequest{Incarnation: inc})
	e.wantErr("Renew", err, backends.ErrClosed)
	_, err = h.Read(e.ctx, backends.ReadRequest{})
	e.wantErr("Read", err, backends.ErrClosed)
	_, err = h.Commit(e.ctx, backends.CommitRequest{Incarnation: inc, Txns: []backends.Txn{{}}})
	e.wantErr("Commit", err, backends.ErrClosed)
	_, err = h.Supersede(e.ctx, "n")
	e.wantErr("Supersede", err, backends.ErrClosed)
	e.wantErr("Listen", h.Listen(e.ctx, "a", func() {}), backends.ErrClosed)
	e.wantErr("Close of a session", h.Close(e.ctx), backends.ErrClosed)
	if h.ID() == "" || h.TTL() <= 0 || h.Opened().Incarnation != inc {
		e.Fatal("the session forgot what it knew")
	}
}

func storeCloseTwice(e *env) {
	h := e.session()
	if _, ok := e.place.Cannot[Hints]; !ok {
		e.listen(e.ctx, h, "a")
	}
	start := time.Now()
	for range 3 {
		if err := e.store.Close(); err != nil {
			e.Fatalf("Close: %v", err)
		}
	}
	if took := time.Since(start); took > 10*time.Second {
		e.Fatalf("Close took %v", took)
	}
}

func closeLeavesSessions(e *env) {
	h := e.session()
	e.bind(h, "k")
	end := e.renew(h, backends.RenewRequest{}).Time.Add(h.TTL())
	closeStore(e.T, e.store)
	other := e.sessionIn(e.handle(), group)
	r := e.read(other, backends.ReadRequest{Keys: []string{"k"}})
	if len(r.Entries) == 0 && r.Time.Before(end) {
		e.Fatal("the session ended with the store that it was opened from")
	}
}

func closeDuringCalls(e *env) {
	h := e.session()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for {
				r, err := h.Commit(e.ctx, backends.CommitRequest{Incarnation: h.Opened().Incarnation,
					Txns: []backends.Txn{{Puts: []backends.Put{{Key: "k"}}}}})
				if err == nil {
					err = r.Results[0].Err
				}
				switch {
				case err == nil, errors.Is(err, backends.ErrUnknown):
				case errors.Is(err, backends.ErrClosed), errors.Is(err, backends.ErrSessionLost):
					return
				default:
					e.Errorf("a commit while the store is closed: %v", err)
					return
				}
			}
		})
	}
	closeStore(e.T, e.store)
	wg.Wait()
}

func closeEndsHints(e *env) {
	h, other := e.sessionIn(e.handle(), group), e.session()
	goes := e.listen(e.ctx, h, "a")
	n := e.listen(e.ctx, other, "a")
	closeStore(e.T, e.store)
	before := n.Load()
	for range 3 {
		e.arrives(h, "a", goes)
	}
	if after := n.Load(); after != before {
		e.Fatalf("%d hints came from a closed store", after-before)
	}
}

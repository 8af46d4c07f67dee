package storetest

import (
	"context"
	"sync/atomic"

	"github.com/rebalancer-go/rebalancer/backends"
)

var hintCases = []testCase{
	{"HintsArriveAfterCommits", []Ability{Hints}, hintsArrive},
	{"HintsReachOtherStores", []Ability{Hints, TwoHandles}, hintsReachOthers},
	{"HintsStopWithTheContext", []Ability{Hints}, hintsStopWithContext},
	{"HintsStopWithTheSession", []Ability{Hints}, hintsStopWithSession},
	{"HintsMayCallTheStore", []Ability{Hints}, hintsMayCall},
	{"ListenOnAnEndedSessionFails", []Ability{Hints}, listenAfterEnd},
}

func newCtx(e *env) (context.Context, context.CancelFunc) { return context.WithCancel(e.ctx) }

// wake commits something that names the address.
func (e *env) wake(h backends.Session, address string) {
	e.Helper()
	e.must(h, backends.Txn{Puts: []backends.Put{{Key: "woken"}}, Wake: []string{address}})
}

// listen counts hints.
func (e *env) listen(ctx context.Context, h backends.Session, address string) *atomic.Int64 {
	e.Helper()
	var n atomic.Int64
	if err := h.Listen(ctx, address, func() { n.Add(1) }); err != nil {
		e.Fatalf("listen: %v", err)
	}
	return &n
}

// arrives wakes until a hint came: a hint may be lost.
func (e *env) arrives(by backends.Session, address string, n *atomic.Int64) {
	e.Helper()
	before := n.Load()
	tries := 0
	e.poll("a hint arrived", func() bool {
		if tries%20 == 0 {
			e.wake(by, address)
			e.renew(by, backends.RenewRequest{})
		}
		tries++
		return n.Load() > before
	})
}

func hintsArrive(e *env) {
	h, other := e.lasting(), e.lasting()
	for _, address := range []string{"a", "node/é \xff%", ""} {
		n := e.listen(e.ctx, h, address)
		e.arrives(other, address, n)
		e.arrives(h, address, n)
		e.renew(h, backends.RenewRequest{})
	}
}

func hintsReachOthers(e *env) {
	h := e.sessionIn(e.handle(), group)
	n := e.listen(e.ctx, h, "a")
	e.arrives(e.lasting(), "a", n)
}

func hintsStopWithContext(e *env) {
	h, other := e.lasting(), e.lasting()
	ctx, cancel := newCtx(e)
	stopped, goes := e.listen(ctx, h, "a"), e.listen(e.ctx, h, "a")
	e.arrives(other, "a", goes)
	cancel()
	e.arrives(other, "a", goes) // whatever was under way has passed
	before := stopped.Load()
	for range 3 {
		e.renew(h, backends.RenewRequest{})
		e.arrives(other, "a", goes)
	}
	if after := stopped.Load(); after != before {
		e.Fatalf("%d hints came after the context had ended", after-before)
	}
}

func hintsStopWithSession(e *env) {
	h, other := e.lasting(), e.lasting()
	stopped, goes := e.listen(e.ctx, h, "a"), e.listen(e.ctx, other, "a")
	e.arrives(other, "a", goes)
	if err := h.Close(e.ctx); err != nil {
		e.Fatal(err)
	}
	e.arrives(other, "a", goes)
	before := stopped.Load()
	for range 3 {
		e.arrives(other, "a", goes)
	}
	if after := stopped.Load(); after != before {
		e.Fatalf("%d hints came after the session had ended", after-before)
	}
}

// hintsMayCall: a hint runs without a lock of the store that a call would need.
func hintsMayCall(e *env) {
	h, other := e.lasting(), e.lasting()
	var n atomic.Int64
	err := h.Listen(e.ctx, "a", func() {
		ctx, cancel := newCtx(e)
		cancel() // returns at once
		_, _ = h.Read(ctx, backends.ReadRequest{})
		_ = h.Listen(ctx, "b", func() {})
		n.Add(1)
	})
	if err != nil {
		e.Fatal(err)
	}
	e.arrives(other, "a", &n)
}

func listenAfterEnd(e *env) {
	h := e.lasting()
	if err := h.Close(e.ctx); err != nil {
		e.Fatal(err)
	}
	e.wantErr("Listen after the end", h.Listen(e.ctx, "a", func() {}), backends.ErrSessionLost)
}

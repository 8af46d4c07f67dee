//go:build linux

package main

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/admin"
	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/backends/faultstore"
	"github.com/rebalancer-go/rebalancer/backends/postgres"
	"github.com/rebalancer-go/rebalancer/group"
	"github.com/rebalancer-go/rebalancer/internal/programtest"
	"github.com/rebalancer-go/rebalancer/internal/testserver"
	"github.com/rebalancer-go/rebalancer/internal/waittest"
	"github.com/rebalancer-go/rebalancer/sources/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newURL(t *testing.T) string {
	t.Helper()
	return testserver.StartPostgres(t, 15).URL("postgres", "")
}

func newLedger(t *testing.T, url string) *Ledger {
	t.Helper()
	db, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	if _, err := db.Exec(t.Context(), tables); err != nil {
		t.Fatal(err)
	}
	return &Ledger{db}
}

// The program does what it says, also a second time.
func TestRuns(t *testing.T) {
	t.Parallel()
	url := newURL(t)
	for range 2 {
		var out programtest.Buffer
		if err := run(t.Context(), url, &out); err != nil {
			t.Fatal(err)
		}
		for _, part := range []string{"the first node books 5 under fence ", "the second node books 7 under fence ", ": claim lost\n", "the account has 12\n"} {
			if !strings.Contains(out.String(), part) {
				t.Errorf("it does not say %q:\n%s", part, &out)
			}
		}
	}
	if err := run(t.Context(), "postgres://user:secret@host:port/db", &programtest.Buffer{}); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("a URL that is none: %v", err)
	}
}

// An owner freezes in the middle of a message, loses its claim, and writes when it wakes up, before it has looked at any clock. The database refuses
// that, the message is worked once by the new owner, and the frozen node goes on.
func TestFrozenOwnerIsRefused(t *testing.T) {
	t.Parallel()
	url := newURL(t)
	l, source := newLedger(t, url), memory.New()
	store, err := postgres.New(l.db, postgres.CreateSchema())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() }) // after the nodes
	if _, err := admin.Create(t.Context(), store, "g", admin.Settings{TTL: ttl}); err != nil {
		t.Fatal(err)
	}
	frozen, thaw, refused := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	cut := faultstore.New(kept{store}, nil)
	a := start(t, "a", cut, source, func(ctx context.Context, m *rebalancer.Message) error {
		close(frozen)
		<-thaw
		err := l.Handle(context.WithoutCancel(ctx), m) // its context has ended by now, but who was frozen may not have noticed
		refused <- err
		return err
	})
	if err := source.Send("acme", "5"); err != nil {
		t.Fatal(err)
	}
	<-frozen
	cut.SetPlan(faultstore.Always(faultstore.Match{}, faultstore.Fault{Before: true})) // a frozen process renews nothing
	start(t, "b", store, source, l.Handle)
	if err := source.Idle(t.Context()); err != nil { // b has worked it
		t.Fatal(err)
	}
	close(thaw)
	if err := <-refused; !errors.Is(err, rebalancer.ErrLost) {
		t.Errorf("the late write of the frozen owner: %v, want ErrLost", err)
	}
	cut.SetPlan(nil)
	if total, err := l.Total(t.Context(), "acme"); total != 5 || err != nil {
		t.Errorf("the account has %d, %v, want 5", total, err)
	}
	waitFor(t, a, func(s group.Status) bool { return s.State == group.StateActive && s.Applied }) // it has joined again
}

// An older owner that is in the middle of its transaction is waited for: what it wrote stands before the newer one's write, never in between or behind.
func TestOlderOwnerInTheMiddleIsWaitedFor(t *testing.T) {
	t.Parallel()
	l := newLedger(t, newURL(t))
	tx, err := l.db.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), take, "acme", 1); err != nil {
		t.Fatal(err)
	}
	newer := make(chan error, 1)
	go func() { newer <- l.Handle(t.Context(), message("newer", 2)) }()
	waittest.Until(t, "the newer owner waits for the older one's row", func() bool {
		const waits = `SELECT count(*) FROM pg_locks WHERE NOT granted`
		var n int
		return l.db.QueryRow(t.Context(), waits).Scan(&n) == nil && n > 0
	})
	if _, err := tx.Exec(t.Context(), book, "acme", "older", 10); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(tx.Commit(t.Context()), <-newer); err != nil {
		t.Fatal(err)
	}
	if err := l.Handle(t.Context(), message("late", 1)); !errors.Is(err, rebalancer.ErrLost) {
		t.Errorf("after the newer owner's write the older one's gives %v, want ErrLost", err)
	}
	if total, err := l.Total(t.Context(), "acme"); total != 20 || err != nil {
		t.Errorf("the account has %d, %v, want 20", total, err)
	}
}

// A message that comes twice is booked once, and the fence stays free for the same claim's next write.
func TestRedeliveryIsBookedOnce(t *testing.T) {
	t.Parallel()
	l := newLedger(t, newURL(t))
	for range 2 {
		if err := l.Handle(t.Context(), message("one", 7)); err != nil {
			t.Fatal(err)
		}
	}
	if total, err := l.Total(t.Context(), "acme"); total != 10 || err != nil {
		t.Errorf("the account has %d, %v, want 10", total, err)
	}
	if err := l.Handle(t.Context(), &rebalancer.Message{Resource: "acme", ID: "bad", Fence: 7, Body: []byte("ten")}); !errors.Is(err, rebalancer.ErrPermanent) {
		t.Errorf("no amount: %v, want a permanent error", err)
	}
}

// A refused write leaves nothing behind, whatever else the transaction did.
func TestRefusalRollsBack(t *testing.T) {
	t.Parallel()
	l := newLedger(t, newURL(t))
	if err := l.Handle(t.Context(), message("newer", 2)); err != nil {
		t.Fatal(err)
	}
	if err := l.Handle(t.Context(), message("late", 1)); !errors.Is(err, rebalancer.ErrLost) {
		t.Errorf("a stale write: %v, want ErrLost", err)
	}
	var fence, n int64
	err := l.db.QueryRow(t.Context(), `SELECT fence, (SELECT count(*) FROM fencing_example.bookings) FROM fencing_example.fences`).Scan(&fence, &n)
	if fence != 2 || n != 1 || err != nil {
		t.Errorf("the fence is %d, %d bookings, %v; want 2 and 1", fence, n, err)
	}
}

func message(id string, fence int64) *rebalancer.Message {
	return &rebalancer.Message{Resource: "acme", ID: id, Fence: fence, Body: []byte("10")}
}

// kept is a store that outlives who wraps it.
type kept struct{ backends.Store }

func (kept) Close() error { return nil }

// start runs a node of the group until the test ends.
func start(t *testing.T, node string, store backends.Store, source *memory.Source, h rebalancer.Handler) *group.Group {
	t.Helper()
	g, err := group.New(group.Config{
		Name: "g", Node: node, Store: store, Source: source, TTL: ttl, Resources: group.Static("acme"), Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- g.Consume(ctx, h) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("node %s: %v", node, err)
		}
	})
	return g
}

func waitFor(t *testing.T, g *group.Group, what func(group.Status) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := g.Wait(ctx, what); err != nil {
		t.Errorf("%v; status %+v", err, g.Status())
	}
}

package failover

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rebalancer-go/rebalancer"
	memstore "github.com/rebalancer-go/rebalancer/backends/memory"
	"github.com/rebalancer-go/rebalancer/group"
	memsource "github.com/rebalancer-go/rebalancer/sources/memory"
)

// A node that loses its store in the middle of a message stops, another takes the account over, and nothing is lost or
// booked twice.
func TestNodeIsCutOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, source := memstore.New(), memsource.New()
		ledger := &Ledger{Work: time.Second}

		a := start(t, "a", store, source, ledger.Handle)
		waitFor(t, a, holds("acme"))
		b := start(t, "b", store, source, ledger.Handle)
		waitFor(t, b, joined)

		_ = source.Send("acme", "5", "7", "30")
		time.Sleep(1500 * time.Millisecond) // virtual: "5" is booked, "7" is being worked
		reconnect := store.Cut("a")
		cut := time.Now()

		waitFor(t, b, holds("acme"))
		if took := time.Since(cut); took > group.DefaultTTL+time.Second {
			t.Errorf("b took over after %v, more than the ttl and one election", took)
		}
		if err := source.Idle(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := ledger.Total("acme"); got != 42 {
			t.Errorf("the account has %d, want 42", got)
		}
		if n := source.Overlaps(); n != 0 {
			t.Errorf("two nodes worked the account at once %d times", n)
		}
		reconnect()
		waitFor(t, a, joined) // it joins again by itself
	})
}

// A handler that ignores its context cannot be stopped: it writes after another node took over. The fence refuses that.
func TestStaleWriteIsRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, source := memstore.New(), memsource.New()
		ledger := &Ledger{}
		late := make(chan error, 1)
		slow := func(ctx context.Context, m *rebalancer.Message) error { // ignores its context, as code may do
			time.Sleep(time.Minute)
			err := ledger.book(m.Resource, m.ID, m.Fence, 5)
			late <- err
			return err
		}
		a := start(t, "a", store, source, slow)
		waitFor(t, a, holds("acme"))
		b := start(t, "b", store, source, ledger.Handle)
		waitFor(t, b, joined)

		_ = source.Send("acme", "5")
		store.Cut("a") // for good
		if err := source.Idle(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := <-late; !errors.Is(err, rebalancer.ErrLost) {
			t.Errorf("the late write of the replaced node gave %v, want ErrLost", err)
		}
		if got := ledger.Total("acme"); got != 5 {
			t.Errorf("the account has %d, want 5", got)
		}
	})
}

// What no retry can help goes to the dead-letter place and does not hold up what follows.
func TestBadMessage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, source := memstore.New(), memsource.New()
		ledger := &Ledger{}
		start(t, "a", store, source, ledger.Handle)
		_ = source.Send("acme", "five", "7")
		if err := source.Idle(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := ledger.Total("acme"); got != 7 || len(source.Rejected("acme")) != 1 {
			t.Errorf("the account has %d, want 7; rejected: %v, want one", got, source.Rejected("acme"))
		}
	})
}

// start runs a node of the group until the test ends.
func start(t *testing.T, node string, store *memstore.Store, source *memsource.Source, h rebalancer.Handler) *group.Group {
	t.Helper()
	g, err := group.New(group.Config{
		Name: "ledgers", Node: node, Store: store, Source: source,
		Resources: group.Static("acme"),
		Logger:    slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() { ended <- g.Consume(t.Context(), h) }()
	t.Cleanup(func() { // t's context has ended by now
		if err := <-ended; err != nil {
			t.Errorf("node %s: %v", node, err)
		}
	})
	return g
}

func waitFor(t *testing.T, g *group.Group, until func(group.Status) bool) {
	t.Helper()
	if err := g.Wait(t.Context(), until); err != nil {
		t.Fatal(err)
	}
}

func joined(s group.Status) bool { return s.State == group.StateActive && s.Applied }

func holds(resource string) func(group.Status) bool {
	return func(s group.Status) bool {
		for _, r := range s.Resources {
			if r.Name == resource && r.Phase == "working" {
				return true
			}
		}
		return false
	}
}

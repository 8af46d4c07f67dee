package group

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/coord"
)

func (w *world) startRun(cfg Config, f func(context.Context, *rebalancer.Claim) error) *running {
	return w.startWith(cfg, func(ctx context.Context, g *Group) error { return g.Run(ctx, f) })
}

func TestRun(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		all := names(4)
		causes := make(chan error, 10)
		var early atomic.Int32
		f := func(ctx context.Context, c *rebalancer.Claim) error {
			if c.Resource == "r00" && c.Node == "a" {
				switch early.Add(1) {
				case 1:
					return errBad
				case 2:
					panic("oh no")
				case 3:
					return nil
				}
			}
			if c.Group != "g" || c.Fence <= 0 || c.TTL != DefaultTTL || c.Checkpoint == nil {
				t.Errorf("claim: %+v", c)
			}
			<-ctx.Done()
			causes <- context.Cause(ctx)
			return ctx.Err()
		}
		cfg := w.config("a", all...)
		cfg.Source = nil
		a := w.startRun(cfg, f)
		a.wait("running all", func(s Status) bool {
			return len(s.Resources) == 4 && !slices.ContainsFunc(s.Resources, func(r ResourceStatus) bool { return r.InFlight != 1 })
		})
		for early.Load() != 4 {
			time.Sleep(time.Second)
		}
		began := time.Now()
		cfg = w.config("b", all...)
		cfg.Source = nil
		b := w.startRun(cfg, f)
		b.holdsCount(2)
		if d := time.Since(began); d > 5*time.Second {
			t.Fatalf("moved after %v: the context did not end at the revoke", d)
		}
		for range 2 {
			if cause := <-causes; !errors.Is(cause, rebalancer.ErrRevoked) {
				t.Fatalf("cause: %v", cause)
			}
		}
		w.store.Expire("b")
		for range 2 {
			if cause := <-causes; !errors.Is(cause, rebalancer.ErrLost) {
				t.Fatalf("cause: %v", cause)
			}
		}
		if err := errors.Join(a.end(), b.end()); err != nil {
			t.Fatal(err)
		}
		if cause := <-causes; !errors.Is(cause, rebalancer.ErrStopped) {
			t.Fatalf("cause: %v", cause)
		}
	})
}

func TestOnClaimAndOnRelease(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		var said []string
		say := func(s string) { w.mu.Lock(); said = append(said, s); w.mu.Unlock() }
		_ = w.source.Send("q", "m")
		cfg := w.config("a", "q")
		n := 0
		cfg.OnClaim = func(ctx context.Context, c *rebalancer.Claim) error {
			if n++; n < 3 {
				say("no")
				return errBad
			}
			say(fmt.Sprint("claim ", c.Resource))
			return nil
		}
		cfg.OnRelease = func(ctx context.Context, c *rebalancer.Claim) {
			if ctx.Err() != nil {
				t.Error("OnRelease has no time")
			}
			say("release")
		}
		r := w.start(cfg, func(_ context.Context, m *rebalancer.Message) error { say(string(m.Body)); return nil })
		w.idle()
		if err := r.end(); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(said, ", "); got != "no, no, claim q, m, release" {
			t.Fatal(got)
		}
		if slices.Contains(w.kinds("a"), KindDeclined) {
			t.Fatal("an error of OnClaim is not a decline")
		}
	})
}

func TestOnReleaseThatHangsIsStuck(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		cfg := w.config("a", "q")
		free := make(chan struct{})
		cfg.OnRelease = func(context.Context, *rebalancer.Claim) { <-free }
		r := w.start(cfg, nil)
		r.holds("q")
		if err := r.end(); !errors.Is(err, ErrStuck) {
			t.Fatal(err)
		}
		close(free)
	})
}

func TestStartDelay(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		cfg := w.config("a", "q")
		cfg.StartDelay = time.Hour
		r := w.start(cfg, nil)
		r.holds("q")
		began := time.Now()
		_ = w.source.Send("q", "m")
		w.idleWithin(2 * time.Hour)
		if d := time.Since(began); d < time.Hour || d > time.Hour+time.Second {
			t.Fatalf("worked after %v", d)
		}
		_ = r.end()
	})
}

func TestMismatch(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		a := w.start(w.config("a", "q"), nil)
		a.holds("q")
		cfg := w.config("b", "q")
		cfg.GlobalBarrier = true
		b := w.start(cfg, nil)
		if err := <-b.done; !errors.Is(err, ErrMismatch) {
			t.Fatal(err)
		}
		b.stop()
		_ = a.end()
	})
}

func TestGlobalBarrier(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		all := names(6)
		var nodes []*running
		for _, n := range []string{"a", "b", "c"} {
			cfg := w.config(n, all...)
			cfg.GlobalBarrier = true
			nodes = append(nodes, w.start(cfg, nil))
		}
		for _, n := range nodes {
			n.holdsCount(2)
		}
		if err := nodes[0].end(); err != nil {
			t.Fatal(err)
		}
		nodes[1].holdsCount(3)
		nodes[2].holdsCount(3)
		if err := errors.Join(nodes[1].end(), nodes[2].end()); err != nil {
			t.Fatal(err)
		}
	})
}

func TestStoreOutageShorterThanTheTrust(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r := w.start(w.config("a", "q"), nil)
		r.holds("q")
		fence := r.Status().Resources[0].Fence
		restore := w.store.Cut("a")
		time.Sleep(DefaultTTL / 2)
		if err := r.Ready(); err != nil {
			t.Fatalf("during the outage: %v", err)
		}
		_ = w.source.Send("q", "m")
		w.idle()
		restore()
		time.Sleep(DefaultTTL)
		if s := r.Status(); len(s.Resources) != 1 || s.Resources[0].Fence != fence {
			t.Fatalf("status: %+v", s)
		}
		w.store.Cut("a")
		r.wait("fenced", func(s Status) bool { return s.State == StateJoining && s.TrustedUntil.IsZero() })
		if err := r.Ready(); !errors.Is(err, ErrNotReady) {
			t.Fatalf("Ready: %v", err)
		}
		if err := r.Live(); err != nil {
			t.Fatalf("Live asks the store: %v", err)
		}
		if err := r.end(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestLeaveWhileTheStoreIsAway: nothing can be released; what is held expires.
func TestLeaveWhileTheStoreIsAway(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r := w.start(w.config("a", "q"), nil)
		r.holds("q")
		w.store.Cut("a")
		began := time.Now()
		if err := r.end(); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(began); d > DefaultTTL+2*closeTimeout {
			t.Fatalf("ended after %v", d)
		}
	})
}

// TestNothingIsLeftInTheStore: a node that is refused closes its session too.
func TestNothingIsLeftInTheStore(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		a := w.start(w.config("a", "q"), nil)
		a.holds("q")
		cfg := w.config("b", "q")
		cfg.GlobalBarrier = true
		b := w.start(cfg, nil)
		if err := <-b.done; !errors.Is(err, ErrMismatch) {
			t.Fatal(err)
		}
		b.stop()
		_ = a.end()
		if o, c := w.store.Calls().Open, w.store.Calls().Close; o != c {
			t.Fatalf("%d sessions opened, %d closed", o, c)
		}
	})
}

func TestRegistered(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		cfg := w.config("a")
		cfg.Resources = Registered()
		r := w.start(cfg, nil)
		s, err := w.store.Open(t.Context(), backends.SessionOptions{Group: "g", Node: "operator", TTL: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		var puts []backends.Put
		for _, n := range []string{"x", "y/z"} {
			puts = append(puts, backends.Put{Key: coord.ResourceKey(n), Value: coord.EncodeRegistration(coord.Registration{Name: n})})
		}
		_, err = s.Commit(t.Context(), backends.CommitRequest{Incarnation: s.Opened().Incarnation, Txns: []backends.Txn{{Puts: puts, Wake: []string{coord.CoordinatorAddress}}}})
		if err != nil {
			t.Fatal(err)
		}
		r.holds("x", "y/z")
		_ = s.Close(t.Context())
		_ = r.end()
	})
}

// TestTroublesAreInTheStore: operators see why a resource does not get on.
func TestTroublesAreInTheStore(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		_ = w.source.Send("q", "m")
		cfg := w.config("a", "q")
		cfg.Retry = Retry{Attempts: 1, Exhausted: Stop}
		r := w.start(cfg, func(context.Context, *rebalancer.Message) error { return errors.New(strings.Repeat("long ", 1000)) })
		s, _ := w.store.Open(t.Context(), backends.SessionOptions{Group: "g", Node: "operator", TTL: time.Hour})
		time.Sleep(time.Minute)
		reply, err := s.Read(t.Context(), backends.ReadRequest{Keys: []string{coord.StatusKey("a")}})
		if err != nil || len(reply.Entries) != 1 {
			t.Fatalf("%+v %v", reply, err)
		}
		if v := string(reply.Entries[0].Value); !strings.Contains(v, "stands still") || len(v) > 3*maxTrouble {
			t.Fatalf("in the store: %s", v)
		}
		_ = s.Close(t.Context())
		_ = r.end()
	})
}

// TestLastErrorStays: operators see what went wrong last also when the resource gets on again, and an idle node does not write it anew.
func TestLastErrorStays(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		_ = w.source.Send("q", "m")
		cfg := w.config("a", "q")
		failed := false
		began := time.Now()
		r := w.start(cfg, func(context.Context, *rebalancer.Message) error {
			if failed {
				return nil
			}
			failed = true
			return errors.New("no room")
		})
		s, _ := w.store.Open(t.Context(), backends.SessionOptions{Group: "g", Node: "operator", TTL: time.Hour})
		read := func() (coord.NodeStatus, int64) {
			time.Sleep(time.Minute)
			reply, err := s.Read(t.Context(), backends.ReadRequest{Keys: []string{coord.StatusKey("a")}})
			if err != nil || len(reply.Entries) != 1 {
				t.Fatalf("%+v %v", reply, err)
			}
			v, err := coord.DecodeStatus(reply.Entries[0].Value)
			if err != nil {
				t.Fatal(err)
			}
			return v, reply.Entries[0].Version
		}
		v, version := read()
		last := v.Last["q"]
		if at := time.UnixMicro(last.At); !strings.Contains(last.Error, "no room") || at.Before(began.Truncate(time.Microsecond)) || len(v.Troubles) != 0 {
			t.Errorf("%+v", v)
		}
		if _, again := read(); again != version {
			t.Error("it was written again")
		}
		_ = s.Close(t.Context())
		_ = r.end()
	})
}

func TestClosedStoreEndsConsume(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		_ = w.store.Close()
		r := w.start(w.config("a", "q"), nil)
		if err := <-r.done; err == nil {
			t.Fatal("no error")
		}
		r.stop()
	})
}

func TestConsumeAgain(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		g, err := New(w.config("a", "q"))
		if err != nil {
			t.Fatal(err)
		}
		if s := g.Status(); s.State != StateIdle || g.Live() != nil || !errors.Is(g.Ready(), ErrNotReady) {
			t.Fatalf("before: %+v", s)
		}
		for _, body := range []string{"1", "2"} {
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error)
			go func() {
				done <- g.Consume(ctx, func(_ context.Context, m *rebalancer.Message) error { w.note("a", m); return nil })
			}()
			_ = w.source.Send("q", body)
			w.idle()
			cancel()
			if err := <-done; err != nil {
				t.Fatal(err)
			}
		}
		if got := w.bodies("q"); !slices.Equal(got, []string{"1", "2"}) {
			t.Fatalf("worked %q", got)
		}
	})
}

func TestWaitEndsWithItsContext(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		g, _ := New(w.config("a", "q"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := g.Wait(ctx, func(Status) bool { return false }); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
	})
}

// TestLoopThatDoesNotTurn: the loop is held up in a step; Live says so, without waiting for it.
func TestLoopThatDoesNotTurn(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		hold, held := make(chan struct{}), make(chan struct{})
		first := true
		r := w.startWith(w.config("a", "q"), func(ctx context.Context, g *Group) error {
			return g.Run(ctx, func(ctx context.Context, _ *rebalancer.Claim) error { <-ctx.Done(); return nil })
		}, func(g *Group) {
			g.hooks.observe = func(tr coord.Trace) {
				if _, ok := tr.Event.(coord.Renewed); ok && first {
					first = false
					close(held)
					<-hold
				}
			}
		})
		<-held
		time.Sleep(time.Minute)
		if err := r.Live(); err == nil {
			t.Fatal("Live is nil")
		}
		if err := r.Ready(); !errors.Is(err, ErrNotReady) {
			t.Fatalf("Ready: %v", err)
		}
		close(hold)
		r.wait("back", func(s Status) bool { return s.State == StateActive })
		if err := r.Live(); err != nil {
			t.Fatal(err)
		}
		_ = r.end()
	})
}

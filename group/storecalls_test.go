package group

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rebalancer-go/rebalancer/backends"
	smem "github.com/rebalancer-go/rebalancer/backends/memory"
	"github.com/rebalancer-go/rebalancer/coord"
)

func TestCodes(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]coord.Code{
		nil:                      coord.OK,
		errBad:                   coord.Failed,
		backends.ErrSessionLost:  coord.SessionLost,
		backends.ErrIncarnation:  coord.Reincarnated,
		backends.ErrConflict:     coord.Conflict,
		backends.ErrGrace:        coord.TooYoung,
		backends.ErrUnknown:      coord.Unknown,
		context.DeadlineExceeded: coord.Unknown,
		context.Canceled:         coord.Unknown,
		backends.ErrFatal:        coord.Fatal,
		backends.ErrClosed:       coord.Fatal,
		backends.ErrInvalid:      coord.Fatal,
	} {
		if err != nil {
			err = fmt.Errorf("wrapped: %w", err)
		}
		if got := codeOf(err, coord.Unknown); got != want {
			t.Errorf("%v: %v, want %v", err, got, want)
		}
	}
	if got := codeOf(context.DeadlineExceeded, coord.Failed); got != coord.Failed {
		t.Errorf("a read without an answer: %v", got)
	}
	if s := stampOf(backends.Stamp{Incarnation: "i", Time: time.UnixMicro(5)}); s != (coord.Stamp{Incarnation: "i", Time: 5}) {
		t.Errorf("stamp: %+v", s)
	}
}

// hung is a store whose calls return long after their context ended, and then say that all went well.
type hung struct {
	backends.Store
	free chan struct{}
}

func (h hung) Open(ctx context.Context, o backends.SessionOptions) (backends.Session, error) {
	s, err := h.Store.Open(ctx, o)
	return hungSession{s, h.free}, err
}

type hungSession struct {
	backends.Session
	free chan struct{}
}

func (h hungSession) Renew(ctx context.Context, r backends.RenewRequest) (backends.RenewReply, error) {
	<-h.free
	return h.Session.Renew(context.Background(), r)
}

func (h hungSession) Commit(ctx context.Context, r backends.CommitRequest) (backends.CommitReply, error) {
	<-h.free
	return h.Session.Commit(context.Background(), r)
}

func (h hungSession) Read(ctx context.Context, r backends.ReadRequest) (backends.ReadReply, error) {
	<-h.free
	return h.Session.Read(context.Background(), r)
}

func TestEveryRequestIsAnsweredOnceAndInTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		free := make(chan struct{})
		events := make(chan coord.Event, 100)
		cfg := &Config{Name: "g", Node: "a", Store: hung{smem.New(), free}}
		c := newStoreCalls(t.Context(), cfg, func(ev coord.Event) { events <- ev })
		c.open(coord.OpenSession{Req: 1, TTL: coord.Duration(time.Minute)})
		o := (<-events).(coord.Opened)
		if o.Req != 1 || o.Code != coord.OK || o.Session == "" || o.TTL != coord.Duration(time.Minute) || o.Stamp.Incarnation == "" {
			t.Fatalf("%+v", o)
		}
		timeout := coord.Duration(time.Second)
		c.renew(coord.Renew{Req: 2, Session: o.Session, Timeout: timeout})
		c.commit(coord.Commit{Req: 3, Session: o.Session, Timeout: timeout})
		c.read(coord.Read{Req: 4, Session: o.Session, Timeout: timeout})
		began := time.Now()
		for range 3 {
			switch ev := (<-events).(type) {
			case coord.Renewed:
				if ev.Req != 2 || ev.Code != coord.Unknown {
					t.Errorf("%+v", ev)
				}
			case coord.Committed:
				if ev.Req != 3 || ev.Code != coord.Unknown {
					t.Errorf("%+v", ev)
				}
			case coord.ReadDone:
				if ev.Req != 4 || ev.Code != coord.Failed || !errors.Is(ev.Err, context.DeadlineExceeded) {
					t.Errorf("%+v", ev)
				}
			}
		}
		if d := time.Since(began); d != time.Second {
			t.Errorf("answered after %v", d)
		}
		if c.close() {
			t.Error("calls that hang have returned")
		}
		close(free)
		synctest.Wait()
		if len(events) != 0 {
			t.Errorf("answered again: %+v", <-events)
		}
	})
}

func TestSessionThatIsNotOpenHere(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		events := make(chan coord.Event, 100)
		c := newStoreCalls(t.Context(), &Config{Name: "g", Node: "a", Store: smem.New()}, func(ev coord.Event) { events <- ev })
		c.renew(coord.Renew{Req: 2, Session: "x", Timeout: 1e9})
		if ev := (<-events).(coord.Renewed); ev.Code != coord.SessionLost {
			t.Errorf("%+v", ev)
		}
		c.closeSession(coord.CloseSession{Req: 3, Session: "x"})
		if ev := (<-events).(coord.Closed); ev.Req != 3 {
			t.Errorf("%+v", ev)
		}
		c.listen(coord.Listen{Session: "x", Address: "a"})
		c.close()
	})
}

// slow is a store that opens a session after the deadline.
type slow struct{ *smem.Store }

func (s slow) Open(ctx context.Context, o backends.SessionOptions) (backends.Session, error) {
	<-ctx.Done()
	return s.Store.Open(context.WithoutCancel(ctx), o)
}

func TestSessionOpenedTooLateIsClosed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		events := make(chan coord.Event, 100)
		store := smem.New()
		c := newStoreCalls(t.Context(), &Config{Name: "g", Node: "a", Store: slow{store}}, func(ev coord.Event) { events <- ev })
		c.open(coord.OpenSession{Req: 1, TTL: coord.Duration(time.Minute)})
		if ev := (<-events).(coord.Opened); ev.Code != coord.Failed {
			t.Errorf("%+v", ev)
		}
		synctest.Wait()
		if n := store.Calls().Close; n != 1 {
			t.Errorf("closed %d sessions", n)
		}
		c.close()
	})
}

func TestHintsAreCoalesced(t *testing.T) {
	t.Parallel()
	h := &hints{waiting: map[string]bool{}, kick: make(chan struct{}, 1)}
	for range 1000 {
		h.add("b")
		h.add("a")
	}
	<-h.kick
	if got := h.take(); fmt.Sprint(got) != "[a b]" {
		t.Errorf("took %v", got)
	}
	if got := h.take(); len(got) != 0 {
		t.Errorf("took %v", got)
	}
}

// deafStore has no hints, or fails to listen at first.
type deafStore struct {
	backends.Store
	errs []error
}

func (d *deafStore) Open(ctx context.Context, o backends.SessionOptions) (backends.Session, error) {
	s, err := d.Store.Open(ctx, o)
	return deafSession{s, d}, err
}

type deafSession struct {
	backends.Session
	d *deafStore
}

func (s deafSession) Listen(ctx context.Context, address string, hint func()) error {
	if len(s.d.errs) > 0 {
		err := s.d.errs[0]
		s.d.errs = s.d.errs[1:]
		return err
	}
	return s.Session.Listen(ctx, address, hint)
}

func TestListen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		events := make(chan coord.Event, 100)
		d := &deafStore{Store: smem.New(), errs: []error{errBad, errBad}}
		c := newStoreCalls(t.Context(), &Config{Name: "g", Node: "a", Store: d}, func(ev coord.Event) { events <- ev })
		c.open(coord.OpenSession{Req: 1, TTL: coord.Duration(time.Hour)})
		o := (<-events).(coord.Opened)
		c.listen(coord.Listen{Session: o.Session, Address: "x"})
		<-c.hints.kick // it listens, after two failures
		d.errs = []error{backends.ErrNoHints}
		c.listen(coord.Listen{Session: o.Session, Address: "y"})
		if _, ok := (<-events).(coord.NoHints); !ok {
			t.Error("no NoHints")
		}
		d.errs = []error{errBad, errBad, errBad, errBad}
		c.listen(coord.Listen{Session: o.Session, Address: "z"})
		synctest.Wait()
		c.closeSession(coord.CloseSession{Req: 2, Session: o.Session}) // ends what tries to listen
		<-events
		if !c.close() {
			t.Error("something still runs")
		}
	})
}

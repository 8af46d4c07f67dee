package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/group"
	"github.com/rebalancer-go/rebalancer/internal/supervise"
)

func TestVerdict(t *testing.T) {
	t.Parallel()
	tooLong := fmt.Errorf("%w: %w", supervise.ErrStart, syscall.E2BIG)
	for _, c := range []struct {
		name  string
		res   supervise.Result
		err   error
		cause error
		want  error // that the verdict matches; nil: the message is settled
	}{
		{"success", supervise.Result{Why: supervise.Exited}, nil, nil, nil},
		{"success in the last moment", supervise.Result{Why: supervise.Exited}, nil, rebalancer.ErrStopped, nil},
		{"exit 0 after being told to end", supervise.Result{Why: supervise.Stopped}, nil, rebalancer.ErrStopped, rebalancer.ErrStopped},
		{"claim lost", supervise.Result{Why: supervise.Stopped, Exit: -1}, nil, rebalancer.ErrLost, rebalancer.ErrLost},
		{"trust ended", supervise.Result{Why: supervise.Distrusted, Exit: -1}, nil, nil, rebalancer.ErrLost},
		{"exit 65", supervise.Result{Why: supervise.Exited, Exit: 65}, nil, nil, rebalancer.ErrPermanent},
		{"too long for an environment", supervise.Result{}, tooLong, nil, rebalancer.ErrPermanent},
		{"supervisor died", supervise.Result{}, supervise.ErrSupervisor, nil, supervise.ErrSupervisor},
		{"body changed", supervise.Result{}, fmt.Errorf("%w: %w", supervise.ErrBody, rebalancer.ErrChanged), nil, rebalancer.ErrChanged},
	} {
		got := verdict(c.res, c.err, c.cause)
		if !errors.Is(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
		if c.want != rebalancer.ErrPermanent && errors.Is(got, rebalancer.ErrPermanent) {
			t.Errorf("%s: permanent: %v", c.name, got)
		}
	}
	for _, res := range []supervise.Result{
		{Why: supervise.Exited, Exit: 1}, {Why: supervise.Exited, Exit: 64, Tail: "x"}, {Why: supervise.Exited, Exit: -1, Signal: syscall.SIGSEGV},
	} {
		got := verdict(res, nil, nil)
		if got == nil || errors.Is(got, rebalancer.ErrPermanent) || errors.Is(got, rebalancer.ErrLost) || !strings.Contains(got.Error(), res.Tail) {
			t.Errorf("%+v: %v", res, got)
		}
	}
}

func TestVariables(t *testing.T) {
	t.Parallel()
	h := &commandHandler{node: group.Status{Group: "g", Node: "n"}}
	got := h.variables(&rebalancer.Message{
		Resource: "a\nb", ID: "x\x00y", Key: "\xff", Attempt: 2, Fence: 9, Headers: map[string]string{"b": "\x00", "a": "<1>"},
	})
	want := []string{
		"RB_GROUP=g", "RB_NODE=n", "RB_RESOURCE=a\nb", "RB_ID=x\uFFFDy", "RB_KEY=\xff", "RB_ATTEMPT=2", "RB_FENCE=9",
		`RB_HEADERS={"a":"<1>","b":"\u0000"}`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
	if got := withoutOurs([]string{"A=1", "RB_KEY=x", "B=2"}); !slices.Equal(got, []string{"A=1", "B=2"}) {
		t.Errorf("%q", got)
	}
}

// However many resources there are, no more messages are worked than asked for; one that fails takes nobody's place.
func TestCountIsExact(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancelCause(t.Context())
		e := &endings{count: 3, stop: stop}
		e.begin(func() group.Status { return group.Status{} })
		defer e.end()
		var calls, good atomic.Int32
		h := e.wrap(func(context.Context, *rebalancer.Message) error {
			time.Sleep(time.Second)
			if calls.Add(1) == 2 {
				return errors.New("bad")
			}
			good.Add(1)
			return nil
		})
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() { _ = h(ctx, &rebalancer.Message{}) })
		}
		wg.Wait()
		if good.Load() != 3 || calls.Load() != 4 || e.worked() != 3 || context.Cause(ctx) != errCount {
			t.Errorf("%d calls, %d good, %d counted, %v", calls.Load(), good.Load(), e.worked(), context.Cause(ctx))
		}
	})
}

// The time without a message begins anew with each one, and does not run while one is worked.
func TestIdle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancelCause(t.Context())
		e := &endings{idle: 5 * time.Second, stop: stop}
		began := time.Now()
		e.begin(func() group.Status { return group.Status{Applied: true} })
		defer e.end()
		h := e.wrap(func(context.Context, *rebalancer.Message) error { time.Sleep(20 * time.Second); return nil })
		time.Sleep(4 * time.Second)
		if err := h(ctx, &rebalancer.Message{}); err != nil {
			t.Error(err)
		}
		<-ctx.Done()
		if d := time.Since(began); d != 29*time.Second || context.Cause(ctx) != errIdle || e.unwell() != nil {
			t.Errorf("ended after %v, %v, %v", d, context.Cause(ctx), e.unwell())
		}
	})
}

// An end for want of messages is a failure when some may be there all the same.
func TestIdleInTrouble(t *testing.T) {
	t.Parallel()
	held := []group.ResourceStatus{{Name: "fine"}, {Name: "broken", Err: errors.New("no such queue")}}
	for _, c := range []struct {
		status group.Status
		want   string
	}{
		{group.Status{Group: "g", Waiting: "no session in the store"}, "group g was not joined within --exit-idle: no session in the store"},
		{group.Status{Applied: true, Resources: held}, "resource broken does not get on: no such queue"},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, stop := context.WithCancelCause(t.Context())
			e := &endings{idle: time.Second, stop: stop}
			e.begin(func() group.Status { return c.status })
			defer e.end()
			<-ctx.Done()
			if err := e.unwell(); err == nil || err.Error() != c.want {
				t.Errorf("%v, want %s", err, c.want)
			}
		})
	}
}

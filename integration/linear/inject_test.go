//go:build linux

package linear

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rebalancer-go/rebalancer/backends"
)

// A store that once answers a read from an old copy is caught, and so is one that once acknowledges a write that it does not carry out.
func TestInjectedFaultsAreCaught(t *testing.T) {
	t.Parallel()
	for name, wrap := range map[string]func(backends.Session, *atomic.Int64) backends.Session{
		"stale read": func(h backends.Session, n *atomic.Int64) backends.Session { return &stale{Session: h, injected: n} },
		"lost write": func(h backends.Session, n *atomic.Int64) backends.Session { return &losing{Session: h, injected: n} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rnd := random(t)
			for i := range 20 {
				sys := startMemory(t)
				var injected atomic.Int64
				sys.open = func(open func(*testing.T, string) backends.Store) func(*testing.T, string) backends.Store {
					return func(t *testing.T, addr string) backends.Store {
						return faulty{open(t, addr), func(h backends.Session) backends.Session { return wrap(h, &injected) }}
					}
				}(sys.open)
				h := record(t, sys, fmt.Sprintf("history %d", i), rnd)
				v := judge(h.events, sys.rules, patience)
				if injected.Load() == 0 {
					continue // the clients did nothing by which it would show
				}
				if len(v.illegal) == 0 {
					t.Errorf("it was not noticed: %d operations", v.operations)
				} else {
					t.Logf("history %d: %s\n%s", i, v.illegal[0].name, explain(v.illegal[0]))
				}
				return
			}
			t.Error("in 20 histories the fault was never injected")
		})
	}
}

// faulty is a store whose sessions are wrapped.
type faulty struct {
	backends.Store
	wrap func(backends.Session) backends.Session
}

func (s faulty) Open(ctx context.Context, o backends.SessionOptions) (backends.Session, error) {
	h, err := s.Store.Open(ctx, o)
	if err != nil {
		return nil, err
	}
	return s.wrap(h), nil
}

// stale answers one read, of all sessions, with what an earlier read of the session was told, although one in between has seen a newer entry.
type stale struct {
	backends.Session
	injected *atomic.Int64
	earlier  []backends.ReadReply
}

func (h *stale) Read(ctx context.Context, r backends.ReadRequest) (backends.ReadReply, error) {
	reply, err := h.Session.Read(ctx, r)
	if err != nil || r.NamesOnly {
		return reply, err
	}
	for i, e := range reply.Entries {
		old, ok := h.old(e)
		if ok && h.injected.CompareAndSwap(0, 1) {
			reply.Entries[i] = old
			return reply, nil
		}
	}
	h.earlier = append(h.earlier, reply)
	return reply, nil
}

// old is an entry of this key that the session has seen before it saw a newer one; both reads are over.
func (h *stale) old(now backends.Entry) (found backends.Entry, ok bool) {
	var newest int64
	for _, r := range h.earlier {
		for _, e := range r.Entries {
			if e.Key != now.Key {
				continue
			}
			if newest == 0 {
				found = e
			}
			newest = max(newest, e.Version)
		}
	}
	return found, newest > found.Version
}

// losing acknowledges one commit, of all sessions, without carrying it out: a guarded put of an entry that is not bound, which nobody overwrites unseen.
type losing struct {
	backends.Session
	injected *atomic.Int64
	puts     int // that it might have been
}

func (h *losing) Commit(ctx context.Context, r backends.CommitRequest) (backends.CommitReply, error) {
	if len(r.Txns) != 1 || len(r.Txns[0].Puts) != 1 || !strings.HasPrefix(r.Txns[0].Puts[0].Key, "cas/") {
		return h.Session.Commit(ctx, r)
	}
	check := r.Txns[0].Checks[0]
	was, err := h.Session.Read(ctx, backends.ReadRequest{Keys: []string{check.Key}})
	holds := err == nil && (len(was.Entries) == 0 && check.Version == 0 || len(was.Entries) == 1 && was.Entries[0].Version == check.Version)
	if h.puts++; !holds || h.puts < 2 || !h.injected.CompareAndSwap(0, 1) {
		return h.Session.Commit(ctx, r)
	}
	return backends.CommitReply{Stamp: was.Stamp, Results: []backends.Result{{Versions: map[string]int64{check.Key: was.Time.UnixMicro()}}}}, nil
}

//go:build linux

package stores

import (
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rebalancer-go/rebalancer/backends"
)

// tally counts what a node asks of its store.
type tally struct {
	mu    sync.Mutex
	calls map[string]int // by kind: renew, read, read of the group, commit, other
	trips atomic.Int64   // on the wire: how often the client speaks after the server did
	dead  atomic.Bool    // nothing reaches the store any more
}

func (c *tally) add(kind string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls[kind]++
}

// now is what has been counted so far.
func (c *tally) now() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := maps.Clone(c.calls)
	m["trip"] = int(c.trips.Load())
	return m
}

// counts is the tallies of the nodes of a fleet.
type counts map[string]*tally

// since gives what was counted by each node since an earlier now.
func (c counts) since(before map[string]map[string]int) map[string]map[string]int {
	d := map[string]map[string]int{}
	for node, after := range c.now() {
		d[node] = map[string]int{}
		for kind, n := range after {
			if n -= before[node][kind]; n != 0 {
				d[node][kind] = n
			}
		}
	}
	return d
}

func (c counts) now() map[string]map[string]int {
	all := map[string]map[string]int{}
	for node, t := range c {
		all[node] = t.now()
	}
	return all
}

// sum adds up some kinds of all nodes.
func sum(of map[string]map[string]int, kinds ...string) (n int) {
	for _, calls := range of {
		for _, k := range kinds {
			n += calls[k]
		}
	}
	return n
}

// count makes a fleet count; each of its nodes has a store of its own, unless they share one.
func count(f *fleet) counts {
	c := counts{}
	f.wrap = func(name string, s backends.Store) backends.Store {
		return &countedStore{Store: s, tally: c[name]}
	}
	f.dial = func(name, addr string) string {
		c[name] = &tally{calls: map[string]int{}}
		if addr == "" || f.common != nil {
			return addr
		}
		return overWire(f.t, addr, &c[name].trips)
	}
	return c
}

var errDead = errors.New("the test lets this node crash: nothing reaches its store")

type countedStore struct {
	backends.Store
	tally *tally
}

func (s *countedStore) Open(ctx context.Context, o backends.SessionOptions) (backends.Session, error) {
	if s.tally.dead.Load() {
		return nil, errDead
	}
	s.tally.add("other")
	h, err := s.Store.Open(ctx, o)
	if err != nil {
		return nil, err
	}
	return &countedSession{Session: h, tally: s.tally, own: "assign/" + o.Node}, nil
}

type countedSession struct {
	backends.Session
	tally *tally
	own   string // what the keys of its own assignment begin with
}

func (h *countedSession) Renew(ctx context.Context, r backends.RenewRequest) (backends.RenewReply, error) {
	if h.tally.dead.Load() {
		return backends.RenewReply{}, errDead
	}
	h.tally.add("renew")
	return h.Session.Renew(ctx, r)
}

func (h *countedSession) Read(ctx context.Context, r backends.ReadRequest) (backends.ReadReply, error) {
	if h.tally.dead.Load() {
		return backends.ReadReply{}, errDead
	}
	h.tally.add("read")
	if slices.ContainsFunc(r.Prefixes, func(p string) bool { return !strings.HasPrefix(p, h.own) }) {
		h.tally.add("read of the group")
	}
	return h.Session.Read(ctx, r)
}

func (h *countedSession) Commit(ctx context.Context, r backends.CommitRequest) (backends.CommitReply, error) {
	if h.tally.dead.Load() {
		return backends.CommitReply{}, errDead
	}
	h.tally.add("commit")
	return h.Session.Commit(ctx, r)
}

func (h *countedSession) Close(ctx context.Context) error {
	if h.tally.dead.Load() {
		return errDead
	}
	h.tally.add("other")
	return h.Session.Close(ctx)
}

// overWire gives an address that leads to addr and counts round trips.
func overWire(t *testing.T, addr string, trips *atomic.Int64) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var work sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(func() { cancel(); _ = l.Close(); work.Wait() })
	work.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			work.Go(func() { carry(ctx, c, addr, trips) })
		}
	})
	return l.Addr().String()
}

// carry carries one connection until either side ends it, or ctx ends.
func carry(ctx context.Context, client net.Conn, addr string, trips *atomic.Int64) {
	defer func() { _ = client.Close() }()
	server, err := net.Dial("tcp", addr)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	stop := context.AfterFunc(ctx, func() { _, _ = client.Close(), server.Close() })
	defer stop()
	var answered atomic.Bool
	answered.Store(true)
	var both sync.WaitGroup
	pipe := func(to, from net.Conn, seen func()) {
		_, _ = io.Copy(to, watched{from, seen})
		_, _ = to.Close(), from.Close()
	}
	both.Go(func() {
		pipe(server, client, func() {
			if answered.Swap(false) {
				trips.Add(1)
			}
		})
	})
	both.Go(func() { pipe(client, server, func() { answered.Store(true) }) })
	both.Wait()
}

// watched tells of everything that is read.
type watched struct {
	io.Reader
	seen func()
}

func (w watched) Read(p []byte) (int, error) {
	n, err := w.Reader.Read(p)
	if n > 0 {
		w.seen()
	}
	return n, err
}

//go:build linux

package zookeeper

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/backends/storetest"
	"github.com/rebalancer-go/rebalancer/internal/testserver"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	// The proxy's toxics may hang when their connection is closed: none of the store's goroutines.
	goleak.VerifyTestMain(m, testserver.Leftovers()...)
}

const tick = testserver.ZooKeeperTick

func driver(place func(*testing.T) storetest.Place) storetest.Driver {
	// A session that is alive is closed at 21/20 of its TTL; one whose process is dead has its timeout, 5/4 of the TTL, and up to a tick more.
	// A server that was killed must be back before a session that is not renewed meanwhile has ended.
	const ttl = 8 * time.Second
	return storetest.Driver{TTL: ttl, Place: place, Rounds: 5, Slack: ttl/5 + 2*tick}
}

func TestContract(t *testing.T) {
	t.Parallel()
	server := testserver.StartZooKeeper(t, "", patient)
	t.Logf("ZooKeeper %s", server.Version())
	contract(t, "", server.Addr())
}

func TestContractOnTheNextRelease(t *testing.T) {
	t.Parallel()
	root := testserver.Root(t)
	server := testserver.StartZooKeeper(t, root, patient)
	t.Logf("ZooKeeper %s", server.Version())
	contract(t, root, server.Addr())
}

func TestContractOnAnEnsemble(t *testing.T) {
	t.Parallel()
	e := testserver.StartEnsemble(t, "", patient)
	t.Logf("ZooKeeper %s, three servers", e.Servers[0].Version())
	contract(t, "", e.Addr())
}

// contract runs the suite on some servers; the cases that lose data each have a server of their own.
func contract(t *testing.T, root, servers string) {
	var count atomic.Int64
	one := make(chan struct{}, 1) // such a case at a time, so that a server that was killed is soon back
	storetest.Run(t, driver(func(t *testing.T) storetest.Place {
		p := &place{t: t, servers: servers, chroot: fmt.Sprintf("/place %d/é", count.Add(1))}
		for _, s := range []string{"Loss", "RollBack", "AllAgree", "IncarnationStays", "AbilitiesAreDeclared"} {
			if strings.Contains(t.Name(), s) {
				one <- struct{}{}
				t.Cleanup(func() { <-one })
				p.own = testserver.StartZooKeeper(t, root, patient)
				p.servers = p.own.Addr()
				break
			}
		}
		p.makeChroot()
		return p.place()
	}))
}

// place is a chroot, of a server of its own when that is to lose its data.
type place struct {
	t       *testing.T
	servers string
	own     *testserver.ZooKeeper
	chroot  string
	stores  []*Store
}

func (p *place) place() storetest.Place {
	return storetest.Place{
		Open: func(t *testing.T) backends.Store {
			s, err := Open("zk://"+p.servers, WithChroot(p.chroot))
			if err != nil {
				t.Fatal(err)
			}
			p.stores = append(p.stores, s)
			return s
		},
		Lose: func(t *testing.T) {
			p.mine(t)
			p.own.Lose()
			p.makeChroot()
		},
		RollBack: func(t *testing.T) func(*testing.T) {
			p.mine(t)
			restore := p.own.Copy()
			return func(t *testing.T) {
				p.notice(t)
				restore()
			}
		},
		Rows: p.rows,
		Cannot: map[storetest.Ability]string{
			storetest.StepBack: "versions are ZooKeeper's transaction ids, no clock is asked",
		},
	}
}

func (p *place) mine(t *testing.T) {
	t.Helper()
	if p.own == nil {
		t.Fatal("this case loses data: it needs a server of its own, name it in contract")
	}
}

// notice writes something that will be lost, and lets the stores see that: what nobody has seen nobody can miss.
func (p *place) notice(t *testing.T) {
	t.Helper()
	p.raw(t, func(c *zk.Conn) {
		if _, err := c.Create(p.chroot+"/lost", nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
			t.Fatal(err)
		}
	})
	for _, s := range p.stores {
		if s.open() != nil {
			continue
		}
		if _, err := s.Groups(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// raw is for what only a test does.
func (p *place) raw(t *testing.T, f func(c *zk.Conn)) {
	t.Helper()
	rawConn(t, p.servers, f)
}

func rawConn(t testing.TB, servers string, f func(c *zk.Conn)) {
	t.Helper()
	c, events, err := zk.Connect(strings.Split(servers, ","), 10*time.Second, zk.WithLogger(silence{}))
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for range events {
		}
	})
	defer wg.Wait()
	defer c.Close()
	f(c)
}

func (p *place) makeChroot() {
	p.t.Helper()
	p.raw(p.t, func(c *zk.Conn) {
		for i := 1; i <= len(p.chroot); i++ {
			if i == len(p.chroot) || p.chroot[i] == '/' {
				if _, err := c.Create(p.chroot[:i], nil, 0, zk.WorldACL(zk.PermAll)); err != nil && err != zk.ErrNodeExists {
					p.t.Fatal(err)
				}
			}
		}
	})
}

// rows counts sessions and entries that are bound to one.
func (p *place) rows(t *testing.T) int {
	t.Helper()
	s := p.stores[0]
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	v, err := s.controlled(ctx)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	groups, err := v.children(ctx, s.cfg.root+"/g")
	for _, g := range groups {
		d := groupDir(s.cfg.root + "/g/" + g)
		sessions, errList := v.listAll(ctx, []string{string(d) + "/s"})
		n += len(sessions)
		dirs, errDirs := v.bucketsOf(ctx, d, []string{""})
		keys, errKeys := v.keysBelow(ctx, dirs, []string{""})
		entries, errFetch := v.fetch(ctx, d, keys)
		for _, e := range entries {
			if e.session != "" {
				n++
			}
		}
		for _, err := range []error{errList, errDirs, errKeys, errFetch} {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return n
}

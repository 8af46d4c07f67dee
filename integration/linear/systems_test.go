//go:build linux

package linear

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/backends/memory"
	"github.com/rebalancer-go/rebalancer/backends/postgres"
	"github.com/rebalancer-go/rebalancer/backends/redis"
	"github.com/rebalancer-go/rebalancer/backends/zookeeper"
	"github.com/rebalancer-go/rebalancer/internal/testserver"
)

// system is a store's server, or whatever takes its place, for the histories of one test.
type system struct {
	rules
	ttl  time.Duration
	addr string // host:port of the server; "": there is none
	open func(t *testing.T, addr string) backends.Store

	// Faults; nil where the store has no such thing. The second undoes the first.
	kill, restart, freeze, thaw func()
	// cut parts a node from the store, or loses only the answers to it, where no link can do so.
	cut func(node string, answers bool) (heal func())
}

// recording makes one history.
type recording func(t *testing.T, group string, rnd *rand.Rand) *history

// storeKind is a store on a version of its server.
type storeKind struct {
	name string
	of   version
	// start starts the server. Its histories are of groups of their own.
	start func(t *testing.T) (recording, rules)
}

// version tells the versions of a server apart, of which a short run takes one.
type version int

const (
	single version = iota
	older
	newer
)

func kinds() []storeKind {
	here := func(testing.TB) string { return "" }
	return []storeKind{
		{"memory", single, on(startMemory)},
		{"sqlite", single, startSQLite},
		{"redis-7.0", older, on(redisOn(testserver.Redis))},
		{"valkey-8.1", newer, on(redisOn(testserver.Valkey))},
		{"zookeeper-3.8", older, on(zookeeperOn(here))},
		{"zookeeper-3.9", newer, on(zookeeperOn(testserver.Root))},
		{"postgres-15", older, on(postgresOn(15))},
		{"postgres-17", newer, on(postgresOn(17))},
	}
}

// on records histories of clients in this process.
func on(start func(t *testing.T) *system) func(t *testing.T) (recording, rules) {
	return func(t *testing.T) (recording, rules) {
		sys := start(t)
		return func(t *testing.T, group string, rnd *rand.Rand) *history {
			t.Helper()
			return record(t, sys, group, rnd)
		}, sys.rules
	}
}

// slack is for the moments at which a store and its client read their clocks.
const slack = 100 * time.Millisecond

func startMemory(*testing.T) *system {
	s := memory.New()
	return &system{
		rules: rules{exact: true, slack: slack}, ttl: 700 * time.Millisecond,
		open: func(*testing.T, string) backends.Store { return kept{s} },
		cut: func(node string, answers bool) func() {
			if answers {
				return s.CutReplies(node)
			}
			return s.Cut(node)
		},
	}
}

// kept is a store that clients share: closing it is left to its maker.
type kept struct{ backends.Store }

func (kept) Close() error { return nil }

// redisOn is a server that writes everything down before it answers.
func redisOn(server testserver.RedisKind) func(t *testing.T) *system {
	return func(t *testing.T) *system {
		s := testserver.StartRedis(t, server, "--appendonly", "yes", "--appendfsync", "always")
		return &system{
			rules: rules{exact: true, slack: slack}, ttl: 1500 * time.Millisecond, addr: s.Addr(),
			open: func(t *testing.T, addr string) backends.Store { return must(t)(redis.Open("redis://" + addr)) },
			kill: s.Kill, restart: s.Restart, freeze: s.Freeze, thaw: s.Thaw,
		}
	}
}

// must fails the test where a store could not be opened.
func must(t *testing.T) func(s backends.Store, err error) backends.Store {
	return func(s backends.Store, err error) backends.Store {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
}

// zookeeperOn is a server alone. It gives the sessions that it finds at its start their whole timeout again, and ends them in whole ticks.
func zookeeperOn(root func(testing.TB) string) func(t *testing.T) *system {
	return func(t *testing.T) *system {
		s := testserver.StartZooKeeper(t, root(t))
		return &system{
			rules: rules{givesUp: true}, ttl: 6 * testserver.ZooKeeperTick * 4 / 5, addr: s.Addr(),
			open: func(t *testing.T, addr string) backends.Store { return must(t)(zookeeper.Open("zk://" + addr)) },
			kill: s.Kill, restart: s.Restart, freeze: s.Freeze, thaw: s.Thaw,
		}
	}
}

func postgresOn(version int) func(t *testing.T) *system {
	return func(t *testing.T) *system {
		s := testserver.StartPostgres(t, version)
		return &system{
			rules: rules{exact: true, slack: slack, ahead: true}, ttl: 1500 * time.Millisecond, addr: s.Addr(),
			open: func(t *testing.T, addr string) backends.Store {
				return must(t)(postgres.Open(s.URLAt(addr, "postgres", ""), postgres.CreateSchema()))
			},
			kill: s.Kill, restart: s.Restart, freeze: s.Freeze, thaw: s.Thaw,
		}
	}
}

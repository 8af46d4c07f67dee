//go:build linux

package stores

import (
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/backends/redis"
	"github.com/rebalancer-go/rebalancer/internal/testserver"
)

// redisOn is a server that writes everything down before it answers, so that it may be killed.
func redisOn(server testserver.RedisKind) func(t *testing.T) *system {
	return func(t *testing.T) *system {
		s := testserver.StartRedis(t, server, "--appendonly", "yes", "--appendfsync", "always")
		return &system{
			group: "g", ttl: 3 * time.Second, addr: s.Addr(),
			open: openRedis,
			kill: s.Kill, restart: s.Restart, freeze: s.Freeze, thaw: s.Thaw,
			wipe: func() { s.Must("FLUSHALL") },
		}
	}
}

func openRedis(t *testing.T, addr string) backends.Store {
	t.Helper()
	s, err := redis.Open("redis://" + addr)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

//go:build linux

package stores

import (
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/backends/zookeeper"
	"github.com/rebalancer-go/rebalancer/internal/testserver"
)

func zookeeperOn(root func(testing.TB) string) func(t *testing.T) *system {
	return func(t *testing.T) *system {
		s := testserver.StartZooKeeper(t, root(t))
		return &system{
			group: "g", ttl: 6 * time.Second, addr: s.Addr(),
			open: func(t *testing.T, addr string) backends.Store {
				t.Helper()
				st, err := zookeeper.Open("zk://" + addr)
				if err != nil {
					t.Fatal(err)
				}
				return st
			},
			kill: s.Kill, restart: s.Restart, freeze: s.Freeze, thaw: s.Thaw,
		}
	}
}

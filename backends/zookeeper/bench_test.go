//go:build linux

package zookeeper

import (
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/rebalancer-go/rebalancer/backends/storetest"
	"github.com/rebalancer-go/rebalancer/internal/testserver"
)

func BenchmarkStore(b *testing.B) {
	server := testserver.StartZooKeeper(b, "", patient)
	storetest.Benchmark(b, openStore(b, "zk://"+server.Addr()))
}

func BenchmarkStoreOnAnEnsemble(b *testing.B) {
	e := testserver.StartEnsemble(b, "", patient)
	storetest.Benchmark(b, openStore(b, "zk://"+e.Addr()))
}

// BenchmarkRaw is what the client library takes for the least that a renewal and a commit could be.
func BenchmarkRaw(b *testing.B) {
	server := testserver.StartZooKeeper(b, "", patient)
	rawConn(b, server.Addr(), func(c *zk.Conn) {
		if _, err := c.Create("/k", nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
			b.Fatal(err)
		}
		b.Run("Set", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := c.Set("/k", []byte("value"), -1); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("Multi3", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				set := &zk.SetDataRequest{Path: "/k", Data: []byte("value"), Version: -1}
				if _, err := c.Multi(set, set, set); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("Get", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := c.Get("/k"); err != nil {
					b.Fatal(err)
				}
			}
		})
	})
}

//go:build linux

package stores

import (
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/backends/postgres"
	"github.com/rebalancer-go/rebalancer/internal/testserver"
)

func postgresOn(version int) func(t *testing.T) *system {
	return func(t *testing.T) *system {
		s := testserver.StartPostgres(t, version)
		sys := &system{
			group: "g", ttl: 4 * time.Second, addr: s.Addr(),
			open: openPostgres(s),
			kill: s.Kill, restart: s.Restart, freeze: s.Freeze, thaw: s.Thaw,
		}
		sys.keep = func() { sys.back = s.Copy() }
		return sys
	}
}

func openPostgres(s *testserver.Postgres) func(t *testing.T, addr string) backends.Store {
	return func(t *testing.T, addr string) backends.Store {
		t.Helper()
		st, err := postgres.Open(s.URLAt(addr, "postgres", ""), postgres.CreateSchema())
		if err != nil {
			t.Fatal(err)
		}
		return st
	}
}

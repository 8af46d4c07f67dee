//go:build linux

package ftp

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/internal/testserver"
	"github.com/rebalancer-go/rebalancer/sources/pickup"
	"github.com/rebalancer-go/rebalancer/sources/sourcetest"
)

func TestSFTPSuite(t *testing.T) {
	t.Parallel()
	s := testserver.StartOpenSSH(t)
	for what, change := range map[string]func(*Config){
		"delete":        func(*Config) {},
		"move":          func(c *Config) { c.OnSuccess = pickup.MoveTo("done") },
		"no failed":     func(c *Config) { c.OnFailure = pickup.Action{} },
		"with donefile": func(c *Config) { c.DoneFile = "*.done" },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			sourcetest.Run(t, sourcetest.Harness{
				New: func(tb testing.TB) *sourcetest.Fixture { return sftpFixture(tb, s, change) }, Quiet: 300 * time.Millisecond, Patience: time.Minute,
			})
		})
	}
}

// sftpRoot is a configuration with a root of its own.
func sftpRoot(tb testing.TB, s *testserver.OpenSSH) (Config, string) {
	tb.Helper()
	name := fmt.Sprintf("root%d", roots.Add(1))
	root := filepath.Join(s.Data, name)
	mkdir(tb, root)
	c := sftpConfig(tb, s, s.Addr())
	c.URL += "/" + name
	c.Connections = 3
	c.Policy = pickup.Policy{
		OnSuccess: pickup.Delete(), OnFailure: pickup.MoveTo("failed"),
		StableFor: 10 * time.Millisecond, Interval: 5 * time.Millisecond, IdleInterval: 20 * time.Millisecond,
	}
	return c, root
}

func sftpFixture(tb testing.TB, s *testserver.OpenSSH, change func(*Config)) *sourcetest.Fixture {
	cfg, root := sftpRoot(tb, s)
	change(&cfg)
	return onDisk(tb, cfg, root)
}

package ftp

import (
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/internal/keeptest"
	"github.com/rebalancer-go/rebalancer/internal/testserver"
	"github.com/rebalancer-go/rebalancer/sources/pickup"
	"github.com/rebalancer-go/rebalancer/sources/sourcetest"
)

// TestKeepSuite: files stay on a server whose listings only name them, on one whose listings tell what they are, and over SFTP.
func TestKeepSuite(t *testing.T) {
	t.Parallel()
	keep := func(c *Config) { c.OnSuccess = pickup.Keep() }
	run := func(t *testing.T, make func(testing.TB) *sourcetest.Fixture) {
		sourcetest.Run(t, sourcetest.Harness{Quiet: 300 * time.Millisecond, Patience: time.Minute, New: func(tb testing.TB) *sourcetest.Fixture {
			f, all := make(tb), &keeptest.Stores{}
			inPlace := f.Left
			f.Checkpoint = all.Claim
			f.Left = func(resource string) int { return inPlace(resource) - all.Worked(tb, resource) }
			return f
		}})
	}
	each(t, []testserver.FTPOptions{{Kind: "vsftpd"}, {Kind: "proftpd"}}, func(t *testing.T, s *testserver.FTP) {
		run(t, func(tb testing.TB) *sourcetest.Fixture { return fixture(tb, s, keep) })
	})
	t.Run("sftp", func(t *testing.T) {
		t.Parallel()
		s := testserver.StartOpenSSH(t)
		run(t, func(tb testing.TB) *sourcetest.Fixture { return sftpFixture(tb, s, keep) })
	})
}

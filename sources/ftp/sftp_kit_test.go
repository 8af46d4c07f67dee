//go:build linux

package ftp

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/rebalancer-go/rebalancer/internal/testserver"
)

// sftpConfig logs in to a server by its key, at an address that may be a proxy's, with one more host key than the server has.
func sftpConfig(tb testing.TB, s *testserver.OpenSSH, addr string) Config {
	tb.Helper()
	key := filepath.Join(tb.TempDir(), "key")
	if err := os.WriteFile(key, s.Key, 0o600); err != nil {
		tb.Fatal(err)
	}
	return Config{
		URL: fmt.Sprintf("sftp://%s@%s/%s", s.User, addr, s.Data), Timeout: 5 * time.Second,
		SSH: SSH{HostKeys: []string{ssh.FingerprintSHA256(s.HostKey)}, PrivateKeyFile: key},
	}
}

// dialSFTP connects as cfg says.
func dialSFTP(cfg Config) (*sftpRemote, error) {
	s, err := cfg.check()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	r, err := s.dial(ctx)
	if err != nil {
		return nil, err
	}
	return r.(*sftpRemote), nil
}

// connected is a connection to a server.
func connected(tb testing.TB, cfg Config) *sftpRemote {
	tb.Helper()
	r, err := dialSFTP(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { r.close() })
	return r
}

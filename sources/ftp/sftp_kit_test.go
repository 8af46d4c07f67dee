//go:build linux

package ftp

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/rebalancer-go/rebalancer/internal/testserver"
)

// sftpConfig logs in to a server by its key, at an address that may be a proxy's.
func sftpConfig(tb testing.TB, s *testserver.OpenSSH, addr string) Config {
	tb.Helper()
	key := filepath.Join(tb.TempDir(), "key")
	if err := os.WriteFile(key, s.Key, 0o600); err != nil {
		tb.Fatal(err)
	}
	return Config{
		URL: fmt.Sprintf("sftp://%s@%s/%s", s.User, addr, s.Data), Timeout: 20 * time.Second,
		SSH: SSH{HostKeys: []string{ssh.FingerprintSHA256(s.HostKey)}, PrivateKeyFile: key},
	}
}

// dialSFTP connects as cfg says.
func dialSFTP(ctx context.Context, cfg Config) (*sftpRemote, error) {
	t, _, err := cfg.target()
	if err != nil {
		return nil, err
	}
	dial, errs := cfg.sftpDialer(t)
	if len(errs) > 0 {
		return nil, errs[0]
	}
	r, err := dial(ctx)
	if err != nil {
		return nil, err
	}
	return r.(*sftpRemote), nil
}

// connected is a connection to a server.
func connected(tb testing.TB, cfg Config) *sftpRemote {
	tb.Helper()
	r, err := dialSFTP(tb.Context(), cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { r.close() })
	return r
}

// sftpWorld is a server, a connection to it and a directory.
func sftpWorld(tb testing.TB) (*testserver.OpenSSH, *sftpRemote, string) {
	tb.Helper()
	s := testserver.StartOpenSSH(tb)
	return s, connected(tb, sftpConfig(tb, s, s.Addr())), s.Data
}

// listed are all entries of a directory by name, and the length of the longest page.
func listed(tb testing.TB, r remote, dir string) (map[string]entry, int) {
	tb.Helper()
	all, longest := map[string]entry{}, 0
	err := r.list(tb.Context(), dir, func(page []entry) error {
		longest = max(longest, len(page))
		for _, e := range page {
			all[e.name] = e
		}
		return nil
	})
	if err != nil {
		tb.Fatal(err)
	}
	return all, longest
}

// readWhole reads a file from an offset on to its end.
func readWhole(ctx context.Context, r remote, path string, offset int64) (string, error) {
	f, err := r.open(ctx, path, offset)
	if err != nil {
		return "", err
	}
	b, err := io.ReadAll(f)
	if err != nil {
		f.Close()
		return "", err
	}
	return string(b), f.Close()
}

func writeFile(tb testing.TB, path, body string) {
	tb.Helper()
	if err := os.WriteFile(path, []byte(body), 0o644); err != nil {
		tb.Fatal(err)
	}
}

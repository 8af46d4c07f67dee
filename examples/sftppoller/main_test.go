//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/rebalancer-go/rebalancer/admin"
	"github.com/rebalancer-go/rebalancer/backends/postgres"
	"github.com/rebalancer-go/rebalancer/group"
	"github.com/rebalancer-go/rebalancer/internal/testserver"
)

// TestRuns: a file is fetched, and moved to done.
func TestRuns(t *testing.T) {
	t.Parallel()
	server, db := testserver.StartOpenSSH(t), testserver.StartPostgres(t, 15)
	url := db.URL("postgres", "")
	store, err := postgres.Open(url, postgres.CreateSchema())
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if _, err := admin.Create(t.Context(), store, "uploads", admin.Settings{TTL: group.DefaultTTL, MaxActive: 1}); err != nil { // or the first start waits for a ttl
		t.Fatal(err)
	}
	in := server.Mkdir("in")
	key := filepath.Join(t.TempDir(), "key")
	for name, text := range map[string][]byte{filepath.Join(in, "a.csv"): []byte("hello"), key: server.Key} {
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Join(in, "a.csv"), 0o666); err != nil { //nolint:gosec // the server's user reads it
		t.Fatal(err)
	}
	env := map[string]string{
		"POSTGRES_URL": url, "SFTP_URL": fmt.Sprintf("sftp://%s@%s/%s", server.User, server.Addr(), server.Data), "SFTP_KEY": key, "SFTP_HOST_KEY": ssh.FingerprintSHA256(server.HostKey),
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var worked string
	err = run(ctx, func(k string) string { return env[k] }, []string{"in"}, func(format string, args ...any) {
		worked = fmt.Sprintf(format, args...)
		cancel()
	})
	if err != nil || !strings.HasPrefix(worked, "in/a.csv: 5 bytes") {
		t.Errorf("%v: %s", err, worked)
	}
	if _, err := os.Stat(filepath.Join(in, "done", "a.csv")); err != nil {
		t.Error(err)
	}
}

//go:build linux

package postgres

import (
	"strings"
	"testing"

	"github.com/rebalancer-go/rebalancer/internal/testserver"
	"github.com/rebalancer-go/rebalancer/internal/waittest"
)

func TestWhatTheServerTells(t *testing.T) {
	t.Parallel()
	p := testserver.StartPostgres(t, 15)
	s := openStore(t, p.URL("postgres", ""))
	if v, err := s.Version(t.Context()); err != nil || !strings.HasPrefix(v, "PostgreSQL 15.") {
		t.Errorf("version %q, %v", v, err)
	}
	warnings := func(parts ...string) {
		t.Helper()
		waittest.Until(t, "it warns of what it should", func() bool {
			got, err := s.Warnings(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			all := len(got) == len(parts)
			for i, p := range parts {
				all = all && strings.Contains(got[i], p)
			}
			return all
		})
	}
	warnings()
	p.Exec(t, `ALTER SYSTEM SET fsync = off`)
	p.Exec(t, `SELECT pg_reload_conf()`)
	warnings("fsync")
	p.Standby()
	warnings("fsync", "asynchronously")
	p.Kill()
	if _, err := s.Version(t.Context()); err == nil || !strings.Contains(err.Error(), s.place) {
		t.Errorf("a dead server: %v", err)
	}
}

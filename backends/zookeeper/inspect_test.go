//go:build linux

package zookeeper

import (
	"strings"
	"testing"

	"github.com/rebalancer-go/rebalancer/internal/testserver"
)

func TestWhatTheServerTells(t *testing.T) {
	t.Parallel()
	server := testserver.StartZooKeeper(t, "")
	s := openStore(t, "zk://127.0.0.1:1,"+server.Addr()) // the first is not there
	if v, err := s.Version(t.Context()); err != nil || !strings.HasPrefix(v, "ZooKeeper 3.8") {
		t.Errorf("version %q, %v", v, err)
	}
	if w, err := s.Warnings(t.Context()); err != nil || len(w) != 0 {
		t.Errorf("warnings %q, %v", w, err)
	}
	server.Kill()
	if _, err := s.Version(t.Context()); err == nil || !strings.Contains(err.Error(), server.Addr()) {
		t.Errorf("a dead server: %v", err)
	}
}

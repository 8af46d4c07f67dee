//go:build linux

package ftp

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
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
	f := &sourcetest.Fixture{
		Source:    newSource(tb, cfg),
		Resources: []string{"in", "eu/orders", " spaces  in it", "-rf"},
		Missing:   "missing",
		Same:      [][]string{{"in", "in/"}, {"./in", "in"}, {"eu//orders", "eu/orders"}, {".", "./"}},
		Wrong:     []string{"/in", "..", "../in", "in/../eu", "a\x00b", "/"},
		Spellings: map[string]string{"./in": "in", "in/": "in", "eu//orders/.": "eu/orders", ".": ".", "./": ".", " a ": " a "},
		Remove:    func(resource string) error { return os.RemoveAll(filepath.Join(root, resource)) },
		Left:      func(resource string) int { return len(plain(tb, filepath.Join(root, resource))) },
	}
	mkdir(tb, filepath.Join(root, "eu"))
	for _, name := range f.Resources {
		mkdir(tb, filepath.Join(root, name))
	}
	f.Send = func(resource, key string, body []byte) error {
		p := filepath.Join(root, resource, key)
		err := errors.Join(os.WriteFile(p+".tmp", body, 0o644), os.Rename(p+".tmp", p))
		if err == nil && cfg.DoneFile != "" {
			err = os.WriteFile(p+".done", nil, 0o644)
		}
		return err
	}
	f.Rejected = func(resource string) []string {
		var bodies []string
		for _, p := range plain(tb, filepath.Join(root, resource, "failed")) {
			reason, err := os.ReadFile(p + ".reason.txt")
			if err != nil || !strings.Contains(string(reason), "the handler said no") {
				tb.Errorf("reason beside %q: %q, %v", p, reason, err)
			}
			body, _ := os.ReadFile(p)
			bodies = append(bodies, string(body))
		}
		return bodies
	}
	return f
}

package file

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rebalancer-go/rebalancer/internal/files"
	"github.com/rebalancer-go/rebalancer/sources/pickup"
	"github.com/rebalancer-go/rebalancer/sources/sourcetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestSuite(t *testing.T) {
	t.Parallel()
	for what, change := range map[string]func(*Config){
		"delete":        func(*Config) {},
		"move":          func(c *Config) { c.OnSuccess = pickup.MoveTo("done") },
		"move away":     func(c *Config) { c.OnSuccess = pickup.MoveTo(filepath.Join(filepath.Dir(c.Root), "away")) },
		"no failed":     func(c *Config) { c.OnFailure = pickup.Action{} },
		"by time":       func(c *Config) { c.Order = pickup.ByTime },
		"strict":        func(c *Config) { c.StrictOrder = true },
		"not stable":    func(c *Config) { c.StableFor = -1 },
		"with donefile": func(c *Config) { c.DoneFile = "*.done" },
		"claimed, checked, into dated folders": func(c *Config) {
			c.ClaimByRename, c.ChecksumFile = true, "*.sha256"
			c.OnSuccess, c.OnFailure = pickup.MoveTo("done/{2006/01}"), pickup.MoveTo("failed/{2006}")
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			sourcetest.Run(t, sourcetest.Harness{New: func(tb testing.TB) *sourcetest.Fixture { return fixture(tb, change) }})
		})
	}
}

// quick is a configuration for tests in real time.
func quick(root string) Config {
	return Config{Root: root, Policy: pickup.Policy{
		OnSuccess: pickup.Delete(), OnFailure: pickup.MoveTo("failed"),
		StableFor: 10 * time.Millisecond, Interval: 5 * time.Millisecond, IdleInterval: 5 * time.Millisecond,
	}}
}

func fixture(tb testing.TB, change func(*Config)) *sourcetest.Fixture {
	root := filepath.Join(tb.TempDir(), "root")
	cfg := quick(root)
	change(&cfg)
	s, err := New(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Error(err)
		}
	})
	f := &sourcetest.Fixture{
		Source:    s,
		Resources: []string{"in", "eu/orders", " spaces and\nnewlines ", "-rf"},
		Missing:   "missing",
		Same: [][]string{
			{"in", "in/"}, {"./in", "in"}, {"eu//orders", "eu/orders"}, {".", "./"}, {"eu/./orders", "eu/orders/"},
		},
		Wrong:     []string{"/in", "..", "../in", "in/../eu", "a\x00b", "/"},
		Spellings: map[string]string{"./in": "in", "in/": "in", "eu//orders/.": "eu/orders", ".": ".", "./": ".", " a ": " a "},
		Remove:    func(resource string) error { return os.RemoveAll(filepath.Join(root, resource)) },
		Left:      func(resource string) int { return len(plain(tb, filepath.Join(root, resource))) },
	}
	for _, name := range f.Resources {
		mkdir(tb, filepath.Join(root, name))
	}
	f.Send = func(resource, key string, body []byte) error {
		p := filepath.Join(root, resource, key)
		err := os.WriteFile(p+".tmp", body, 0o600)
		if err == nil {
			err = os.Rename(p+".tmp", p)
		}
		if err == nil && cfg.DoneFile != "" {
			err = os.WriteFile(p+".done", nil, 0o600)
		}
		if err == nil && cfg.ChecksumFile != "" {
			err = os.WriteFile(p+".sha256", fmt.Appendf(nil, "%x  %s\n", sha256.Sum256(body), key), 0o600)
		}
		return err
	}
	f.Rejected = func(resource string) []string {
		var bodies []string
		folder := files.Folder(cfg.OnFailure.Folder()).At(time.Now())
		for _, p := range plain(tb, filepath.Join(root, resource, folder)) {
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

// plain lists the regular files of a directory that are neither done-files, checksum files nor reasons.
func plain(tb testing.TB, dir string) []string {
	tb.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil && !os.IsNotExist(err) {
		tb.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		if n := e.Name(); e.Type().IsRegular() && !strings.HasSuffix(n, ".done") && !strings.HasSuffix(n, ".sha256") && !strings.HasSuffix(n, ".reason.txt") {
			names = append(names, filepath.Join(dir, n))
		}
	}
	return names
}

func mkdir(tb testing.TB, p string) {
	tb.Helper()
	if err := os.MkdirAll(p, 0o755); err != nil {
		tb.Fatal(err)
	}
}

func write(tb testing.TB, p string, format string, args ...any) {
	tb.Helper()
	if err := os.WriteFile(p, fmt.Appendf(nil, format, args...), 0o600); err != nil {
		tb.Fatal(err)
	}
}

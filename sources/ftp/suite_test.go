//go:build linux

package ftp

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rebalancer-go/rebalancer/internal/testserver"
	"github.com/rebalancer-go/rebalancer/sources/pickup"
	"github.com/rebalancer-go/rebalancer/sources/sourcetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, testserver.Leftovers()...) }

// kinds are the servers that the suite is run on.
var kinds = []testserver.FTPOptions{
	{Kind: "vsftpd"}, {Kind: "vsftpd", TLS: "explicit"}, {Kind: "vsftpd", TLS: "implicit"},
	{Kind: "proftpd"}, {Kind: "proftpd", TLS: "explicit"}, {Kind: "proftpd", TLS: "implicit"},
	{Kind: "pure-ftpd"}, {Kind: "pure-ftpd", TLS: "explicit"},
}

// each runs a test on a server of each kind.
func each(t *testing.T, kinds []testserver.FTPOptions, test func(*testing.T, *testserver.FTP)) {
	t.Helper()
	for _, o := range kinds {
		t.Run(strings.TrimSpace(o.Kind+" "+o.TLS), func(t *testing.T) {
			t.Parallel()
			test(t, testserver.StartFTP(t, o))
		})
	}
}

func TestSuite(t *testing.T) {
	t.Parallel()
	changes := map[string]func(*Config){
		"delete":            func(*Config) {},
		"vsftpd move":       func(c *Config) { c.OnSuccess = pickup.MoveTo("done") },
		"vsftpd by time":    func(c *Config) { c.Order = pickup.ByTime },
		"proftpd move away": func(c *Config) { c.OnSuccess = pickup.MoveTo(c.URL[strings.Index(c.URL, "/home"):] + "-away") },
		"proftpd strict":    func(c *Config) { c.StrictOrder = true },
		"pure-ftpd claim":   func(c *Config) { c.ClaimByRename, c.OnFailure = true, pickup.Action{} },
		"pure-ftpd done":    func(c *Config) { c.DoneFile = "*.done" },
	}
	each(t, kinds, func(t *testing.T, s *testserver.FTP) {
		for what, change := range changes {
			if what != "delete" && (s.Options.TLS != "" || !strings.HasPrefix(what, s.Options.Kind)) {
				continue
			}
			t.Run(what, func(t *testing.T) {
				t.Parallel()
				sourcetest.Run(t, sourcetest.Harness{
					New: func(tb testing.TB) *sourcetest.Fixture { return fixture(tb, s, change) }, Quiet: 200 * time.Millisecond, Patience: time.Minute,
				})
			})
		}
	})
}

var roots atomic.Int64

// config is one for tests in real time, with a root of its own.
func config(tb testing.TB, s *testserver.FTP) (Config, string) {
	tb.Helper()
	name := fmt.Sprintf("root%d", roots.Add(1))
	root := filepath.Join(s.Home, name)
	mkdir(tb, root)
	return at(tb, s, s.Addr(), "//home/"+name), root
}

// atHome is a configuration without a root of its own.
func atHome(tb testing.TB, s *testserver.FTP) Config { return at(tb, s, s.Addr(), "//home") }

// at is a configuration for a server that is reached at an address.
func at(tb testing.TB, s *testserver.FTP, addr, path string) Config {
	tb.Helper()
	u := url.URL{Scheme: "ftp", Host: addr, Path: path}
	c := Config{User: s.User, Password: s.Password, Timeout: 20 * time.Second, Policy: pickup.Policy{
		OnSuccess: pickup.Delete(), OnFailure: pickup.MoveTo("failed"),
		StableFor: 10 * time.Millisecond, Interval: 5 * time.Millisecond, IdleInterval: 20 * time.Millisecond,
	}}
	if s.Options.TLS != "" {
		u.Scheme = "ftps"
		c.TLS = s.CA.Client(tb, "")
		c.ImplicitTLS = s.Options.TLS == "implicit"
		_, port, err := net.SplitHostPort(addr)
		if err != nil {
			tb.Fatal(err)
		}
		u.Host = net.JoinHostPort("localhost", port)
	}
	c.URL = u.String()
	return c
}

// mkdir makes a directory in which the server may do everything.
func mkdir(tb testing.TB, dir string) {
	tb.Helper()
	err := os.MkdirAll(dir, 0o777)
	if err == nil {
		err = os.Chmod(dir, 0o777)
	}
	if err != nil {
		tb.Fatal(err)
	}
}

func newSource(tb testing.TB, c Config) *Source {
	tb.Helper()
	s, err := New(c)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Error(err)
		}
	})
	return s
}

func fixture(tb testing.TB, s *testserver.FTP, change func(*Config)) *sourcetest.Fixture {
	cfg, root := config(tb, s)
	change(&cfg)
	f := onDisk(tb, cfg, root)
	f.Wrong = append(f.Wrong, "a\nb", "a\rb", "a\xffb") // which FTP cannot carry
	return f
}

// onDisk is a fixture of a server that serves a directory of this machine.
func onDisk(tb testing.TB, cfg Config, root string) *sourcetest.Fixture {
	f := &sourcetest.Fixture{
		Source:    newSource(tb, cfg),
		Resources: []string{"in", "eu/orders", " spaces  in it", "-rf"},
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
	mkdir(tb, filepath.Join(root, "eu"))
	f.Send = func(resource, key string, body []byte) error {
		p := filepath.Join(root, resource, key)
		err := os.WriteFile(p+".tmp", body, 0o644)
		if err == nil {
			err = os.Rename(p+".tmp", p)
		}
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

// plain lists the regular files of a directory that are neither done-files nor reasons.
func plain(tb testing.TB, dir string) []string {
	tb.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil && !os.IsNotExist(err) {
		tb.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		if n := e.Name(); e.Type().IsRegular() && !strings.HasSuffix(n, ".done") && !strings.HasSuffix(n, ".reason.txt") {
			names = append(names, filepath.Join(dir, n))
		}
	}
	return names
}

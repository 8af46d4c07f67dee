package file

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/sources"
	"github.com/rebalancer-go/rebalancer/sources/pickup"
)

func TestConfigAllViolations(t *testing.T) {
	t.Parallel()
	_, err := New(Config{
		Policy: pickup.Policy{Order: 7, OnFailure: pickup.Delete(), MinAge: -time.Second, Interval: -1, Ignore: []string{"["}, DoneFile: "*"},
	})
	for _, want := range []string{"Root", "Order", "OnSuccess", "OnFailure", "MinAge", "Interval", "Ignore", "DoneFile"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in: %v", want, err)
		}
	}
	for _, folder := range []string{"", ".", "..", "../x", "a/../..", "/data", "a\x00"} {
		if _, err := New(Config{Root: "/data", Policy: pickup.Policy{OnSuccess: pickup.MoveTo(folder)}}); err == nil {
			t.Errorf("MoveTo(%q) was accepted", folder)
		}
	}
	if _, err := New(Config{Root: "/data", Policy: pickup.Policy{OnSuccess: pickup.MoveTo("x"), OnFailure: pickup.MoveTo("./x/")}}); err == nil {
		t.Error("one folder for successes and failures was accepted")
	}
	if _, err := New(Config{Root: "no such directory yet", Policy: pickup.Policy{OnSuccess: pickup.Delete()}}); err != nil {
		t.Errorf("New did I/O: %v", err)
	}
}

func TestNamesAndFolders(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		success string
		names   []string
		ok      bool
	}{
		{"done", []string{"in", "done"}, true},
		{"done", []string{"in", "in/done"}, false},
		{"a/b", []string{"in", "in/a"}, true},
		{"a/b", []string{"in/a/b/", "in"}, false},
		{"/data/away", []string{"in", "away"}, true},
		{"/data/away", []string{"in", "away/in"}, false},
		{"/data/away", []string{".", "away"}, false},
		{"/elsewhere", []string{".", "in"}, true},
		{"done/{2006/01}", []string{"in", "in/done", "in/done/2026", "in/done/2026/99"}, true},
		{"done/{2006/01}", []string{"in", "in/done/2026/11"}, false},
		{"{2006-01-02}", []string{".", "in", "2026-11"}, true},
		{"{2006-01-02}", []string{".", "2026-11-30"}, false},
		{"/data/away/{2006}", []string{"in", "away/in", "away/2026"}, true},
		{"/data/away/{2006}", []string{"in", "away/2026/in"}, false},
		{"/data/{2006}", []string{".", "2026"}, false},
	} {
		s, err := New(Config{Root: "/data", Policy: pickup.Policy{OnSuccess: pickup.MoveTo(c.success)}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Names(c.names); (err == nil) != c.ok {
			t.Errorf("MoveTo(%q), Names(%q): %v", c.success, c.names, err)
		}
	}
}

// FuzzCanonical: a canonical name stays what it is, stays below the root, and opens nothing else than its parts say.
func FuzzCanonical(f *testing.F) {
	for _, s := range []string{"in", "/in", "./in/", "a/../b", "a//b", "..", "...", "a/.", "-", "\xff", "a\x00", ".", "a/ /b", "a\\b", "~"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		name, err := canonical(s)
		if err != nil {
			return
		}
		again, err := canonical(name)
		if err != nil || again != name {
			t.Errorf("canonical(%q) = %q, of which it makes %q, %v", s, name, again, err)
		}
		if strings.HasPrefix(name, "/") || slices.Contains(strings.Split(name, "/"), "..") || name == "" {
			t.Errorf("canonical(%q) = %q", s, name)
		}
		if got, want := filepath.Join("/r", name), filepath.Clean("/r/"+s); got != want {
			t.Errorf("canonical(%q) = %q means %q, not %q", s, name, got, want)
		}
	})
}

func TestOpenWantsCanonicalNames(t *testing.T) {
	t.Parallel()
	s := newSource(t, quick(root(t)))
	for _, name := range []string{"in/", "./in", "../root/in", "", "/in"} {
		if _, err := s.Open(t.Context(), claim("g", name)); err == nil {
			t.Errorf("Open(%q) succeeded", name)
		}
	}
}

func TestDiscover(t *testing.T) {
	t.Parallel()
	top := root(t)
	cfg := quick(top)
	cfg.OnSuccess = pickup.MoveTo(filepath.Join(top, "away"))
	s := newSource(t, cfg)
	for _, d := range []string{"in/failed", "eu/a", "eu/b", "us/a", ".hidden", "away/eu/a", "\xff\xfe/x"} {
		mkdir(t, filepath.Join(top, d))
	}
	write(t, filepath.Join(top, "file"), "")
	if err := os.Symlink("eu", filepath.Join(top, "link")); err != nil {
		t.Fatal(err)
	}
	for pattern, want := range map[string][]string{
		"*":        {"eu", "in", "us", "\xff\xfe"},
		"*/a":      {"eu/a", "us/a"},
		"*/*":      {"eu/a", "eu/b", "us/a", "\xff\xfe/x"},
		"eu/*":     {"eu/a", "eu/b"},
		"link":     {"link"},
		"file":     nil,
		".h*":      {".hidden"},
		"[eu]*/b/": {"eu/b"},
		".":        {"."},
	} {
		got, err := s.Discover(t.Context(), pattern)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("Discover(%q) = %q, %v; want %q", pattern, got, err, want)
		}
	}
	for _, pattern := range []string{"/*", "../*", "[", ""} {
		if got, err := s.Discover(t.Context(), pattern); err == nil {
			t.Errorf("Discover(%q) = %q", pattern, got)
		}
	}
	if err := os.RemoveAll(top); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Discover(t.Context(), "*"); err == nil {
		t.Errorf("Discover without a root = %q: an error must not look like an empty list", got)
	}
}

func TestDiscoverLeavesDatedFoldersOut(t *testing.T) {
	t.Parallel()
	top := root(t)
	cfg := quick(top)
	cfg.OnSuccess, cfg.OnFailure = pickup.MoveTo("done/{2006/01}"), pickup.MoveTo(filepath.Join(top, "failed-{2006}"))
	s := newSource(t, cfg)
	for _, d := range []string{"in/done/2026/11", "in/done/other", "failed-2026/in", "failed-x/in"} {
		mkdir(t, filepath.Join(top, d))
	}
	for pattern, want := range map[string][]string{
		"*": {"failed-x", "in"}, "*/*": {"failed-x/in", "in/done"}, "*/*/*": {"in/done/2026", "in/done/other"}, "*/*/*/*": nil,
	} {
		got, err := s.Discover(t.Context(), pattern)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("Discover(%q) = %q, %v; want %q", pattern, got, err, want)
		}
	}
}

func TestSourceClose(t *testing.T) {
	t.Parallel()
	s := newSource(t, quick(root(t)))
	r := open(t, s)
	for range 2 {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.Fetch(t.Context(), 1); err == nil {
		t.Error("a Reader outlived its Source")
	}
	if _, err := s.Open(context.Background(), claim("g", "in")); err == nil {
		t.Error("Open after Close succeeded")
	}
	var _ interface {
		sources.Source
		sources.Lagger
		sources.Discoverer
	} = s
}

package file

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/internal/programtest"
	"github.com/rebalancer-go/rebalancer/sources"
)

// logs collects what a Logger was told.
type logs struct{ programtest.Buffer }

func (l *logs) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

func newSource(tb testing.TB, cfg Config) *Source {
	tb.Helper()
	s, err := New(cfg)
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

// root makes a root with a resource "in" in it.
func root(tb testing.TB) string {
	tb.Helper()
	r := filepath.Join(tb.TempDir(), "root")
	mkdir(tb, filepath.Join(r, "in"))
	return r
}

func claim(group, resource string) *rebalancer.Claim {
	return &rebalancer.Claim{Group: group, Resource: resource, Fence: 1}
}

func open(tb testing.TB, s *Source) sources.Reader {
	tb.Helper()
	r, err := s.Open(context.Background(), claim("g", "in"))
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

// want checks that a directory holds exactly these plain files, by their bodies.
func want(tb testing.TB, dir string, bodies ...string) {
	tb.Helper()
	got := plain(tb, dir)
	if len(got) != len(bodies) {
		tb.Fatalf("%q holds %q, want %d files", dir, got, len(bodies))
	}
	left := map[string]int{}
	for _, b := range bodies {
		left[b]++
	}
	for _, p := range got {
		b, err := os.ReadFile(p)
		if err != nil {
			tb.Fatal(err)
		}
		if left[string(b)]--; left[string(b)] < 0 {
			tb.Fatalf("%q holds %q, which nobody wants there", p, b)
		}
	}
}

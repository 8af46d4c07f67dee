package file

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

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

func fetch(tb testing.TB, r sources.Reader, n int) []*rebalancer.Message {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	var ms []*rebalancer.Message
	for len(ms) < n {
		got, err := r.Fetch(ctx, n-len(ms))
		if err != nil {
			tb.Fatalf("Fetch after %d of %d: %v", len(ms), n, err)
		}
		ms = append(ms, got...)
	}
	return ms
}

func nothing(tb testing.TB, r sources.Reader) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	if ms, err := r.Fetch(ctx, 10); !errors.Is(err, context.DeadlineExceeded) {
		tb.Fatalf("%d files delivered, error %v; want none", len(ms), err)
	}
}

func trySettle(r sources.Reader, o sources.Outcome, ms ...*rebalancer.Message) error {
	var ss []sources.Settlement
	for _, m := range ms {
		ss = append(ss, sources.Settlement{Message: m, Outcome: o, Err: errors.New("no good")})
	}
	return r.Settle(context.Background(), ss)
}

func settle(tb testing.TB, r sources.Reader, o sources.Outcome, ms ...*rebalancer.Message) {
	tb.Helper()
	if err := trySettle(r, o, ms...); err != nil {
		tb.Fatal(err)
	}
}

func read(m *rebalancer.Message) (string, error) {
	rc, err := m.Open(context.Background())
	if err != nil {
		return "", err
	}
	defer rc.Close()
	b, err := io.ReadAll(rc)
	return string(b), err
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

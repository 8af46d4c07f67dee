package file

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/internal/files"
	"github.com/rebalancer-go/rebalancer/sources"
	"github.com/rebalancer-go/rebalancer/sources/pickup"
)

// TestReplacedBetweenCheckAndDeletion: a writer who replaces a file at the worst moment loses nothing.
func TestReplacedBetweenCheckAndDeletion(t *testing.T) {
	t.Parallel()
	for _, success := range []pickup.Action{pickup.Delete(), pickup.MoveTo("done")} {
		top := root(t)
		in := filepath.Join(top, "in")
		cfg := quick(top)
		cfg.OnSuccess = success
		s := newSource(t, cfg)
		r := open(t, s)
		write(t, filepath.Join(in, "a"), "old")
		ms := fetch(t, r, 1)
		s.pause = func() {
			write(t, filepath.Join(in, "a.tmp"), "new")
			if err := os.Rename(filepath.Join(in, "a.tmp"), filepath.Join(in, "a")); err != nil {
				t.Error(err)
			}
		}
		settle(t, r, sources.Done, ms...)
		s.pause = func() {}
		want(t, in, "new")
		want(t, filepath.Join(in, "done"))
		again := fetch(t, r, 1)
		if got, err := read(again[0]); got != "new" || err != nil {
			t.Fatalf("got %q, %v", got, err)
		}
		settle(t, r, sources.Done, again...)
		want(t, in)
	}
}

// TestHalfDeleted: what a crash left between the two steps of a deletion comes again, and overwrites nothing.
func TestHalfDeleted(t *testing.T) {
	t.Parallel()
	top := root(t)
	in := filepath.Join(top, "in")
	long := time.Now().Add(-2 * takenFor)
	write(t, filepath.Join(in, takenName("a-b.csv", long)), "1")
	write(t, filepath.Join(in, takenName("b.csv", long)), "2")
	write(t, filepath.Join(in, "b.csv"), "3")
	write(t, filepath.Join(in, takenName("c.csv", time.Now())), "being deleted by somebody")
	write(t, filepath.Join(in, takenPrefix+"strange"), "not ours")
	cfg := quick(top)
	cfg.Ignore = []string{} // not even hidden names
	r := open(t, newSource(t, cfg))
	got := map[string]bool{}
	for _, m := range fetch(t, r, 3) {
		body, err := read(m)
		if err != nil {
			t.Fatal(err)
		}
		got[body] = true
		if !strings.HasSuffix(m.Key, ".csv") || body == "1" && m.Key != "a-b.csv" || body == "3" && m.Key != "b.csv" {
			t.Errorf("%q came as %q", body, m.Key)
		}
	}
	if !got["1"] || !got["2"] || !got["3"] {
		t.Errorf("got %v", got)
	}
	nothing(t, r)
}

func TestTakenNames(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a", "-", "a-b-c", "\xff", strings.Repeat("ä", 127), strings.Repeat("x", 255)} {
		taken := takenName(name, time.Now())
		got, at, ok := parseTaken(taken)
		if len(taken) > files.MaxName || !ok || !strings.HasPrefix(name, got) || time.Since(at) > time.Minute {
			t.Errorf("%q became %q, %q, %v", name, taken, got, at)
		}
		if len(name) < 200 && got != name {
			t.Errorf("%q became %q", name, got)
		}
	}
}

package file

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/internal/files"
	"github.com/rebalancer-go/rebalancer/internal/readertest"
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
		ms := readertest.Fetch(t, r, 1)
		s.pause = func() {
			write(t, filepath.Join(in, "a.tmp"), "new")
			if err := os.Rename(filepath.Join(in, "a.tmp"), filepath.Join(in, "a")); err != nil {
				t.Error(err)
			}
		}
		readertest.Settle(t, r, sources.Done, ms...)
		s.pause = func() {}
		want(t, in, "new")
		want(t, filepath.Join(in, "done"))
		again := readertest.Fetch(t, r, 1)
		if got, err := readertest.Read(context.Background(), again[0]); got != "new" || err != nil {
			t.Fatalf("got %q, %v", got, err)
		}
		readertest.Settle(t, r, sources.Done, again...)
		want(t, in)
	}
}

// TestHalfDeleted: what a crash left between the two steps of a deletion comes again, and overwrites nothing.
func TestHalfDeleted(t *testing.T) {
	t.Parallel()
	top := root(t)
	in := filepath.Join(top, "in")
	long := time.Now().Add(-2 * takenFor)
	write(t, filepath.Join(in, takenName("a-b.csv", long, files.MaxName)), "1")
	write(t, filepath.Join(in, takenName("b.csv", long, files.MaxName)), "2")
	write(t, filepath.Join(in, "b.csv"), "3")
	write(t, filepath.Join(in, takenName("c.csv", time.Now(), files.MaxName)), "4")
	write(t, filepath.Join(in, takenPrefix+"strange"), "not ours")
	cfg := quick(top)
	cfg.Ignore = []string{} // not even hidden names
	r := open(t, newSource(t, cfg))
	got := map[string]bool{}
	for _, m := range readertest.Fetch(t, r, 4) {
		body, err := readertest.Read(context.Background(), m)
		if err != nil {
			t.Fatal(err)
		}
		got[body] = true
		if !strings.HasSuffix(m.Key, ".csv") || body == "1" && m.Key != "a-b.csv" || body == "3" && m.Key != "b.csv" {
			t.Errorf("%q came as %q", body, m.Key)
		}
	}
	if !got["1"] || !got["2"] || !got["3"] || !got["4"] {
		t.Errorf("got %v", got)
	}
	write(t, filepath.Join(in, takenName("d.csv", time.Now(), files.MaxName)), "being deleted by this owner")
	readertest.Nothing(t, r)
}

func TestTakenNames(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ä", 105)
	for name, want := range map[string]string{
		"a": "a", "-": "-", "a-b-c": "a-b-c", "\xff": "\xff", long: long,
		strings.Repeat("ä", 120) + "x.csv.done": strings.Repeat("ä", 89) + strings.Repeat("ä", 15) + "x.csv.done",
		strings.Repeat("x", 250) + ".csv":       strings.Repeat("x", 219-4) + ".csv",
	} {
		taken := takenName(name, time.Now(), files.MaxName)
		got, at, ok := parseTaken(taken)
		if len(taken) > files.MaxName || !ok || got != want || time.Since(at) > time.Minute {
			t.Errorf("%q became %q, %q, %v; want %q", name, taken, got, at, want)
		}
	}
}

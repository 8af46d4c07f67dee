package file

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/internal/files"
	"github.com/rebalancer-go/rebalancer/internal/readertest"
	"github.com/rebalancer-go/rebalancer/sources"
	"github.com/rebalancer-go/rebalancer/sources/pickup"
)

// names lists all of a directory.
func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

// TestClaimedFiles: outsiders do not find what is in hand under its name, and find it again after a Close.
func TestClaimedFiles(t *testing.T) {
	t.Parallel()
	top := root(t)
	in := filepath.Join(top, "in")
	cfg := quick(top)
	cfg.ClaimByRename = true
	s := newSource(t, cfg)
	r := open(t, s)
	write(t, filepath.Join(in, "a.csv"), "a")
	write(t, filepath.Join(in, "b.csv"), "b")
	ms := readertest.Fetch(t, r, 2)
	if got, err := readertest.Read(context.Background(), ms[0]); got != "a" || err != nil {
		t.Errorf("read %q, %v", got, err)
	}
	if got := names(t, in); len(got) != 2 || slices.ContainsFunc(got, func(n string) bool { return !strings.HasPrefix(n, ".rebalancer-claimed-") }) {
		t.Errorf("the directory holds %q", got)
	}
	if n, err := s.Lag(t.Context(), "in"); n != 2 || err != nil {
		t.Errorf("Lag %d, %v", n, err)
	}
	readertest.Settle(t, r, sources.Done, ms[0])
	if err := r.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := names(t, in); !slices.Equal(got, []string{"b.csv"}) {
		t.Errorf("after Close the directory holds %q", got)
	}
}

// TestClaimOfWhatIsReplaced: a writer that replaces a file between the look and the rename gets its name back.
func TestClaimOfWhatIsReplaced(t *testing.T) {
	t.Parallel()
	top := root(t)
	p := filepath.Join(top, "in", "a")
	cfg := quick(top)
	cfg.ClaimByRename = true
	s := newSource(t, cfg)
	once := true
	s.pause = func() {
		if once {
			once = false
			write(t, p+".tmp", "new")
			if err := os.Rename(p+".tmp", p); err != nil {
				t.Error(err)
			}
		}
	}
	r := open(t, s)
	write(t, p, "old")
	m := readertest.Fetch(t, r, 1)
	if got, err := readertest.Read(context.Background(), m[0]); got != "new" || err != nil {
		t.Errorf("read %q, %v", got, err)
	}
	readertest.Settle(t, r, sources.Done, m...)
	want(t, filepath.Dir(p))
}

// TestSetOnDisk moves all files of a set.
func TestSetOnDisk(t *testing.T) {
	t.Parallel()
	top := root(t)
	in := filepath.Join(top, "in")
	cfg := quick(top)
	cfg.Set, cfg.OnSuccess = []string{"*.xml", "*.pdf"}, pickup.MoveTo("done")
	r := open(t, newSource(t, cfg))
	write(t, filepath.Join(in, "1.xml"), "x")
	readertest.Nothing(t, r)
	write(t, filepath.Join(in, "1.pdf"), "p")
	m := readertest.Fetch(t, r, 1)
	if m[0].Key != "1.xml" || len(m[0].Members) != 1 || m[0].Members[0].Key != "1.pdf" {
		t.Fatalf("got %+v", m[0])
	}
	readertest.Settle(t, r, sources.Done, m...)
	if got := names(t, filepath.Join(in, "done")); !slices.Equal(got, []string{"1.pdf", "1.xml"}) {
		t.Errorf("done holds %q", got)
	}
}

// TestNameThatTheFolderCannotTake: what a file system says of such a name is told apart from other errors.
func TestNameThatTheFolderCannotTake(t *testing.T) {
	t.Parallel()
	top := root(t)
	p := filepath.Join(top, "in", "a")
	write(t, p, "body")
	s := newSource(t, quick(top))
	d := &dir{source: s, group: "g", resource: "in"}
	if err := d.refresh(); err != nil {
		t.Fatal(err)
	}
	defer d.release()
	info, err := d.Stat(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("x", 256)
	for what, err := range map[string]error{
		"move":              d.Move(t.Context(), "a", info, "done", long),
		"to another device": d.Move(t.Context(), "a", info, elsewhereDir(t), long),
		"put":               d.Put(t.Context(), "done", long, nil),
	} {
		if !errors.Is(err, files.ErrName) {
			t.Errorf("%s: %v", what, err)
		}
	}
	want(t, filepath.Dir(p), "body")
	if got := names(t, filepath.Join(top, "in", "done")); len(got) > 0 {
		t.Errorf("left %q", got)
	}
	if err := d.Rename(t.Context(), "a", files.Info{}, "b"); !errors.Is(err, rebalancer.ErrChanged) {
		t.Errorf("rename of what is not wanted: %v", err)
	}
}

// TestFoldersWithTime: nothing leads out of the directory by a layout of time.
func TestFoldersWithTime(t *testing.T) {
	t.Parallel()
	for _, folder := range []string{"{2006/../../..}", "../{2006}", "{2006}/../..", "{2006", "2006}", "{}", "{{2006}}", "/{2006/../..}/data", "a/{x}"} {
		if _, err := New(Config{Root: "/data", Policy: pickup.Policy{OnSuccess: pickup.MoveTo(folder)}}); err == nil {
			t.Errorf("MoveTo(%q) was accepted", folder)
		}
	}
}

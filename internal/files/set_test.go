package files

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/sources"
)

// bodies reads a message and its members.
func bodies(t testing.TB, m *rebalancer.Message) string {
	t.Helper()
	all, err := read(t, m)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range m.Members {
		rc, err := x.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(rc)
		if err != nil {
			t.Fatal(err)
		}
		if int64(len(b)) != x.Size || x.Published.IsZero() {
			t.Errorf("%q: size %d of %q, published %v", x.Key, x.Size, b, x.Published)
		}
		all += "," + x.Key + "=" + string(b)
	}
	return all
}

func TestSets(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newFake()
		r := reader(t, p, Options{Set: []string{"*.xml", "*.pdf", "*.meta.xml"}, Failed: "failed", Success: "done", StableFor: 2 * time.Second})
		for _, n := range []string{"a.xml", "a.pdf", "b.xml", "b.meta.xml", "readme", "x.tmp"} {
			p.put(n, n)
		}
		nothing(t, r, time.Minute)
		p.put("a.meta.xml", "meta")
		start := time.Now()
		ms, keys := fetch(t, r, 1)
		if d := time.Since(start); keys[0] != "a.xml" || d < 2*time.Second {
			t.Fatalf("got %q after %v", keys, d)
		}
		if got := bodies(t, ms[0]); got != "a.xml,a.pdf=a.pdf,a.meta.xml=meta" {
			t.Errorf("the set is %q", got)
		}
		settle(t, r, sources.Done, ms...)
		if p.moved["done/a.xml"] == "" || p.moved["done/a.pdf"] == "" || p.moved["done/a.meta.xml"] == "" {
			t.Errorf("moved %q", p.moved)
		}
		p.put("b.pdf", "1")
		ms, _ = fetch(t, r, 1)
		id := ms[0].ID
		settle(t, r, sources.Retry, ms...)
		ms, _ = fetch(t, r, 1)
		if ms[0].ID != id || ms[0].Attempt != 2 {
			t.Errorf("the same set has ID %q, attempt %d; before %q", ms[0].ID, ms[0].Attempt, id)
		}
		// One member changes: nothing of the set leaves, and it comes again as another.
		p.put("b.pdf", "2")
		settle(t, r, sources.Done, ms...)
		if !p.has("b.xml") || !p.has("b.pdf") || !p.has("b.meta.xml") {
			t.Fatalf("a part of a changed set left: %q", p.moved)
		}
		ms, _ = fetch(t, r, 1)
		if ms[0].ID == id || ms[0].Attempt != 1 || !strings.Contains(bodies(t, ms[0]), "b.pdf=2") {
			t.Errorf("the changed set has ID %q, attempt %d: %s", ms[0].ID, ms[0].Attempt, bodies(t, ms[0]))
		}
		settle(t, r, sources.Reject, ms...)
		if p.moved["failed/b.xml"] == "" || p.moved["failed/b.pdf"] == "" || p.moved["failed/b.xml.reason.txt"] == "" {
			t.Errorf("moved %q", p.moved)
		}
		if p.names() != 2 { // readme, x.tmp
			t.Errorf("%d files left", p.names())
		}
	})
}

// TestSetStability: a member that grows keeps its set back, and one that vanishes too.
func TestSetStability(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newFake()
		r := reader(t, p, Options{Set: []string{"*.a", "*.b"}, StableFor: 10 * time.Second})
		p.put("1.a", "")
		p.put("1.b", "")
		for range 20 {
			nothing(t, r, 5*time.Second)
			p.grow("1.b", "x")
		}
		p.remove("1.b")
		nothing(t, r, time.Minute)
		p.put("1.b", "")
		fetch(t, r, 1)
	})
}

// TestHalfSettledSet: a settlement that fails in the middle goes on where it was.
func TestHalfSettledSet(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newFake()
		r := reader(t, p, Options{Set: []string{"*.a", "*.b"}, DoneFile: "*.done", ChecksumFile: "*.md5"})
		for _, n := range []string{"1.a", "1.b", "1.a.done", "1.a.md5"} {
			p.put(n, "")
		}
		nothing(t, r, time.Minute)
		p.put("1.b.md5", "")
		ms, _ := fetch(t, r, 1)
		full := errors.New("no space left on device")
		p.fail = func(op, name string) error {
			if op == "remove" && name == "1.a" {
				return full
			}
			return nil
		}
		if err := r.Settle(t.Context(), settlements(sources.Done, ms...)); !errors.Is(err, full) {
			t.Fatalf("Settle: %v", err)
		}
		if !p.has("1.a") || p.has("1.b") {
			t.Fatal("the leader must go last")
		}
		p.fail = nil
		settle(t, r, sources.Done, ms...)
		if p.names() != 0 {
			t.Errorf("%d files left", p.names())
		}
	})
}

func TestMember(t *testing.T) {
	t.Parallel()
	o := Options{Set: []string{"*.xml", "*.meta.xml", "x-*"}}
	if err := o.Complete(); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][2]any{
		"a.xml": {0, "a"}, "a.meta.xml": {1, "a"}, ".xml": {-1, ""}, "x-a.xml": {0, "x-a"}, "x-1": {2, "1"}, "b": {-1, ""},
		"x-y.meta.xml": {1, "x-y"},
	} {
		if i, key := o.member(name); i != want[0] || key != want[1] {
			t.Errorf("%q is %d, %q; want %v", name, i, key, want)
		}
	}
	var m rebalancer.Member
	rc, err := m.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(rc); len(b) != 0 || err != nil {
		t.Errorf("a member without a stream: %q, %v", b, err)
	}
	if !slices.Equal(o.Ignore, DefaultIgnore()) {
		t.Error(o.Ignore)
	}
}

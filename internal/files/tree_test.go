package files

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rebalancer-go/rebalancer/sources"
)

// TestPatternsInATree are about the last part of a name.
func TestPatternsInATree(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newFake()
		r := reader(t, p, Options{
			Deep: true, DoneFile: "done-*", ChecksumFile: "sum-*.md5", Set: []string{"x-*.a", "y-*.b"}, Success: "done",
		})
		for _, n := range []string{"1/x-k.a", "1/y-k.b", "1/done-x-k.a", "2/x-k.a", "3/y-k.b"} {
			p.put(n, "abc")
		}
		p.put("1/sum-x-k.a.md5", abc+"  x-k.a\n")
		p.put("1/sum-y-k.b.md5", strings.Repeat("0", 32)+"  2/y-k.b\n"+abc+"  1/y-k.b\n")
		ms, keys := fetch(t, r, 1)
		if got := bodies(t, ms[0]); keys[0] != "1/x-k.a" || got != "abc,1/y-k.b=abc" {
			t.Fatalf("got %q: %q", keys, got)
		}
		settle(t, r, sources.Done, ms...)
		nothing(t, r, time.Minute)
		if got := p.list(); !slices.Equal(got, []string{"2/x-k.a", "3/y-k.b"}) {
			t.Errorf("left %q", got)
		}
	})
}

// TestLongKeysInATree: what a file is moved to, and its reason, keep their folders whole.
func TestLongKeysInATree(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newFake()
		r := reader(t, p, Options{Deep: true, Success: "done", Failed: "failed"})
		dir := strings.Repeat(strings.Repeat("d", 100)+"/", 4)
		name := dir + strings.Repeat("n", 240) + ".csv"
		p.set(func(p *fake) { p.moved["done/"+name], p.moved["failed/"+name] = "", "" })
		for _, o := range []sources.Outcome{sources.Done, sources.Reject} {
			p.put(name, "x")
			ms, _ := fetch(t, r, 1)
			settle(t, r, o, ms...)
		}
		if len(p.moved) != 5 {
			t.Errorf("moved %d", len(p.moved))
		}
		for n := range p.moved {
			folder, rest, _ := strings.Cut(n, "/")
			last, ok := strings.CutPrefix(rest, dir)
			if !ok || len(last) > MaxName || !strings.HasSuffix(last, ".csv") && folder == "done" {
				t.Errorf("moved to %q", n)
			}
		}
	})
}

// TestOneMarkForASet: the files of a set whose names are taken are found together where they were moved.
func TestOneMarkForASet(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newFake()
		p.hang = time.Second // a move: each has another time
		r := reader(t, p, Options{Set: []string{"*.a", "*.b", "*.c"}, ChecksumFile: "*.md5", Success: "done"})
		for range 3 {
			for _, n := range []string{"k.a", "k.b", "k.c"} {
				p.put(n, "abc")
				p.put(n+".md5", abc)
			}
			ms, _ := fetch(t, r, 1)
			settle(t, r, sources.Done, ms...)
		}
		stamp, marks := regexp.MustCompile(`\d{8}T\d{6}\.\d{9}Z(-\d+)?`), map[string]int{}
		for n := range p.moved {
			marks[stamp.FindString(n)]++
		}
		if len(p.moved) != 18 || len(marks) != 3 {
			t.Errorf("marks %v of %q", marks, p.moved)
		}
	})
}

// TestPartialSetsAreReported, each once, and not those that are whole in time.
func TestPartialSetsAreReported(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newFake()
		var l warnings
		r := reader(t, p, Options{Set: []string{"*.a", "*.b"}, Logger: l.logger()})
		p.put("left.a", "")
		p.put("late.a", "")
		p.put("member.b", "")
		nothing(t, r, 9*time.Minute)
		p.put("late.b", "")
		fetch(t, r, 1)
		nothing(t, r, time.Hour)
		if got := l.String(); strings.Count(got, "set lacks files") != 1 || !strings.Contains(got, "left.a") {
			t.Errorf("the log says %s", got)
		}
	})
}

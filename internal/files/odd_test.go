package files

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/rebalancer-go/rebalancer/internal/programtest"
	"github.com/rebalancer-go/rebalancer/sources"
	"github.com/rebalancer-go/rebalancer/sources/pickup"
)

// warnings collects what a Logger was told.
type warnings struct{ programtest.Buffer }

func (w *warnings) logger() *slog.Logger { return slog.New(slog.NewTextHandler(w, nil)) }

func TestEmptyFiles(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newFake()
		r := reader(t, p, Options{})
		p.put("a", "")
		ms, _ := fetch(t, r, 1) // the default
		settle(t, r, sources.Done, ms...)

		r = reader(t, p, Options{Empty: pickup.EmptyWait, IdleInterval: 10 * time.Second})
		p.put("a", "")
		p.put("b", "x")
		ms, keys := fetch(t, r, 1)
		if keys[0] != "b" {
			t.Fatalf("got %q", keys)
		}
		settle(t, r, sources.Done, ms...)
		p.stats = 0
		nothing(t, r, time.Hour)
		if p.stats > 1000 {
			t.Errorf("%d looks at an empty file in an hour", p.stats)
		}
		p.grow("a", "x")
		ms, _ = fetch(t, r, 1)
		settle(t, r, sources.Done, ms...)

		r = reader(t, p, Options{Empty: pickup.EmptyReject, Failed: "failed"})
		full := errors.New("no space left on device")
		p.put("a", "")
		p.put("b", "x")
		p.fail = func(op, name string) error {
			if op == "move" && name == "a" {
				return full
			}
			return nil
		}
		ms, keys = fetch(t, r, 1)
		if keys[0] != "b" {
			t.Fatalf("got %q", keys)
		}
		settle(t, r, sources.Done, ms...)
		nothing(t, r, time.Minute)
		if !p.has("a") {
			t.Fatal("an empty file that could not be moved is lost")
		}
		p.set(func(p *fake) { p.fail = nil })
		nothing(t, r, 2*time.Minute)
		if _, ok := p.moved["failed/a"]; !ok || !strings.Contains(p.moved["failed/a.reason.txt"], "empty") || p.names() != 0 {
			t.Errorf("moved %q", p.moved)
		}
	})
}

// TestUnsoundNames: names that lead elsewhere are reported once and never used.
func TestUnsoundNames(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newFake()
		var l warnings
		r := reader(t, p, Options{Ignore: []string{}, Logger: l.logger()})
		for _, n := range []string{"..", ".", "", "a/b", "/etc/passwd", "../x", "zero\x00byte", ".rebalancer-taken-x"} {
			p.put(n, "")
		}
		p.put("fine\n\x1b[31m\xff", "")
		if _, keys := fetch(t, r, 1); keys[0] != "fine\n\x1b[31m\xff" {
			t.Errorf("got %q", keys)
		}
		nothing(t, r, time.Hour)
		if n := strings.Count(l.String(), "left alone"); n != 7 {
			t.Errorf("%d reports of 7 names:\n%s", n, l.String())
		}
		if strings.Contains(l.String(), "\x1b") {
			t.Error("a control character of a name is in the log")
		}
	})
}

// TestNamesThatAFolderCannotTake get a plain name there.
func TestNamesThatAFolderCannotTake(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newFake()
		p.plain = true
		r := reader(t, p, Options{Success: "done", Failed: "failed"})
		p.put("a:b\n.csv", "1")
		p.put("c?", "2")
		ms, _ := fetch(t, r, 2)
		settle(t, r, sources.Done, ms[0])
		settle(t, r, sources.Reject, ms[1])
		if p.moved["done/a%3Ab%0A.csv"] != "1" || p.moved["failed/c%3F"] != "2" || p.moved["failed/c%3F.reason.txt"] == "" {
			t.Errorf("moved %q", p.moved)
		}
	})
}

func TestPlain(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"a.csv": "a.csv", "ünï": "ünï", "a:b": "a%3Ab", "x%3Ay": "x%253Ay", "dot.": "dot%2E", "space ": "space%20", "\xffx": "%FFx",
		"a\uFFFDb": "a%EF%BF%BDb", "\x7f\t": "%7F%09", strings.Repeat("é", 200): strings.Repeat("é", 100), `<>"\|?*/`: "%3C%3E%22%5C%7C%3F%2A%2F",
	} {
		if got := Plain(name); got != want {
			t.Errorf("Plain(%q) = %q, want %q", name, got, want)
		}
	}
}

func FuzzPlain(f *testing.F) {
	f.Add("a:b\xff")
	f.Fuzz(func(t *testing.T, name string) {
		got := Plain(name)
		if !utf8.ValidString(got) || len(got) > mostPlain || strings.ContainsAny(got, "/\\:*?\"<>|\x00\n") || name != "" && !sound(got) {
			t.Errorf("Plain(%q) = %q", name, got)
		}
	})
}

// TestSettleSideBySide: as many settlements at once as the place takes, each message once, each failure at its index.
func TestSettleSideBySide(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newFake()
		p.hang = time.Second // a move
		r := reader(t, p, Options{Success: "done", Parallel: 4})
		const n = 40
		for i := range n {
			p.put(fmt.Sprintf("%02d", i), "")
		}
		ms, _ := fetch(t, r, n)
		var moves atomic.Int64
		p.fail = func(op, name string) error {
			if op == "move" {
				moves.Add(1)
				if name == "07" || name == "31" {
					return errors.New("no space left on device")
				}
			}
			return nil
		}
		start := time.Now()
		err := r.Settle(t.Context(), settlements(sources.Done, append(ms, ms[20:30]...)...))
		var some *sources.SettleError
		if !errors.As(err, &some) || len(some.Failed) != 2 || some.Failed[7] == nil || some.Failed[31] == nil {
			t.Fatalf("Settle: %v", err)
		}
		if d := time.Since(start); d != n/4*time.Second || moves.Load() != n {
			t.Errorf("%d moves in %v", moves.Load(), d)
		}
		p.set(func(p *fake) { p.fail = nil })
		settle(t, r, sources.Done, ms...)
		if p.names() != 0 || len(p.moved) != n {
			t.Errorf("%d left, %d moved", p.names(), len(p.moved))
		}
	})
}

// TestSettledDuringAListing: a listing has what was settled after it had passed its place, and that is not delivered again.
func TestSettledDuringAListing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newFake()
		p.exact = true
		r := reader(t, p, Options{StableFor: -1})
		p.put("a", "")
		ms, _ := fetch(t, r, 1)
		late := &lateList{fake: p, passed: make(chan struct{}), goOn: make(chan struct{})}
		r.place = late
		var fetching sync.WaitGroup
		fetching.Go(func() { nothing(t, r, time.Minute) })
		<-late.passed
		settle(t, r, sources.Done, ms...)
		close(late.goOn)
		fetching.Wait()
	})
}

// lateList lets a test act between what a listing saw and its return, once.
type lateList struct {
	*fake
	once         sync.Once
	passed, goOn chan struct{}
}

func (p *lateList) List(ctx context.Context, each func([]Entry) error) error {
	err := p.fake.List(ctx, each)
	p.once.Do(func() { close(p.passed); <-p.goOn })
	return err
}

// TestAbsentFilesAreRemembered: a listing that lacks a file that failed does not make it begin anew.
func TestAbsentFilesAreRemembered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newFake()
		r := reader(t, p, Options{})
		p.put("a", "x")
		p.put("b", "x")
		ms, _ := fetch(t, r, 2)
		late := settlements(sources.Retry, ms...)
		late[0].Delay, late[1].Delay = 20*time.Minute, 20*time.Minute
		if err := r.Settle(t.Context(), late); err != nil {
			t.Fatal(err)
		}
		p.set(func(p *fake) { p.hidden = map[string]bool{"a": true, "b": true} })
		nothing(t, r, 10*time.Minute)
		p.set(func(p *fake) { p.hidden = nil })
		p.put("b", "another file")
		nothing(t, r, 9*time.Minute) // the retry is not due
		ms, keys := fetch(t, r, 2)
		if ms[0].Attempt != 2 || ms[1].Attempt != 1 {
			t.Errorf("got %q, attempts %d and %d", keys, ms[0].Attempt, ms[1].Attempt)
		}
	})
}

// TestAbsentFilesAreForgotten in time, and bounded.
func TestAbsentFilesAreForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := reader(t, newFake(), Options{})
		for i := range mostAbsent + 100 {
			r.remember(&file{part: part{name: fmt.Sprint(i)}, attempt: 2})
		}
		if n := len(r.absent); n > mostAbsent {
			t.Errorf("%d are remembered", n)
		}
		time.Sleep(2 * rememberFor) // virtual
		r.remember(&file{part: part{name: "x"}, attempt: 2})
		if n := len(r.absent); n != 1 {
			t.Errorf("%d are remembered for ever", n)
		}
		r.remember(&file{part: part{name: "y"}, attempt: 1})
		if r.absent["y"] != nil {
			t.Error("a file of which nothing is known is remembered")
		}
	})
}

// TestListedTwice: a name that a listing has twice is one message.
func TestListedTwice(t *testing.T) {
	t.Parallel()
	for _, exact := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			p := newFake()
			p.exact = exact
			for _, n := range []string{"a", "b", "c"} {
				p.put(n, n)
			}
			r := reader(t, p, Options{StableFor: -1})
			r.place = &twice{p}
			ms, keys := fetch(t, r, 3)
			if !slices.Equal(keys, []string{"a", "b", "c"}) {
				t.Fatalf("got %q", keys)
			}
			nothing(t, r, time.Minute)
			settle(t, r, sources.Done, ms...)
			nothing(t, r, time.Minute)
			if n, err := r.opt.Count(func(each func([]Entry) error) error {
				return each([]Entry{{Name: "x"}, {Name: "y"}, {Name: "x"}})
			}); n != 2 || err != nil {
				t.Errorf("counted %d, %v", n, err)
			}
		})
	}
}

// twice has each name twice in a listing.
type twice struct{ *fake }

func (p *twice) List(ctx context.Context, each func([]Entry) error) error {
	return p.fake.List(ctx, func(page []Entry) error { return errors.Join(each(page), each(page)) })
}

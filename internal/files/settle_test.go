package files

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"path"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/sources"
)

func TestChangedUnderTheHandler(t *testing.T) {
	t.Parallel()
	for _, o := range []Options{{}, {Success: "done"}} {
		for _, outcome := range []sources.Outcome{sources.Done, sources.Reject} {
			synctest.Test(t, func(t *testing.T) {
				p := newFake()
				o.Failed = "failed"
				r := reader(t, p, o)
				p.put("a", "old")
				ms, _ := fetch(t, r, 1)
				p.put("a", "new")
				if _, err := read(t, ms[0]); !errors.Is(err, rebalancer.ErrChanged) {
					t.Errorf("read: %v", err)
				}
				settle(t, r, outcome, ms[0])
				again, _ := fetch(t, r, 1)
				if body, err := read(t, again[0]); body != "new" || err != nil {
					t.Errorf("got %q, %v", body, err)
				}
				if again[0].ID == ms[0].ID || again[0].Attempt != 1 {
					t.Errorf("the new file has ID %q, attempt %d; the old one had %q", again[0].ID, again[0].Attempt, ms[0].ID)
				}
			})
		}
	}
}

// TestAttempts: what the runtime counted in the message counts on, and another file under the name starts anew.
func TestAttempts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newFake()
		r := reader(t, p, Options{Failed: "failed"})
		p.put("a", "old")
		for _, step := range []struct {
			o     sources.Outcome
			after int
		}{{sources.Release, 4}, {sources.Retry, 5}} {
			ms, _ := fetch(t, r, 1)
			ms[0].Attempt = 4
			settle(t, r, step.o, ms...)
			ms, _ = fetch(t, r, 1)
			if ms[0].Attempt != step.after {
				t.Errorf("attempt %d after outcome %d, want %d", ms[0].Attempt, step.o, step.after)
			}
			settle(t, r, sources.Release, ms...)
		}
		p.put("a", "new")
		ms, _ := fetch(t, r, 1)
		if ms[0].Attempt != 1 {
			t.Errorf("attempt %d of a new file under the name, want 1", ms[0].Attempt)
		}
		ms[0].Attempt = 9
		settle(t, r, sources.Reject, ms...)
		if reason := p.moved["failed/a.reason.txt"]; !strings.Contains(reason, "attempts: 9") {
			t.Errorf("the reason says %q", reason)
		}
	})
}

func TestChangedDuringARead(t *testing.T) {
	t.Parallel()
	for what, change := range map[string]func(*fake){
		"longer":  func(p *fake) { p.grow("a", "more") },
		"shorter": func(p *fake) { p.files["a"] = &fakeFile{"ab", time.Now(), p.files["a"].inode} },
		"touched": func(p *fake) { time.Sleep(time.Nanosecond); p.grow("a", "") },
		"gone":    func(p *fake) { p.remove("a") },
		"gone when all is read": func(p *fake) {
			p.set(func(p *fake) {
				p.fail = func(op, _ string) error {
					if op == "stat" { // the look at its end
						return fs.ErrNotExist
					}
					return nil
				}
			})
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := newFake()
			r := reader(t, p, Options{})
			p.put("a", "abcdef")
			ms, _ := fetch(t, r, 1)
			rc, err := ms[0].Open(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(rc, make([]byte, 3)); err != nil {
				t.Fatal(err)
			}
			change(p)
			if _, err := io.ReadAll(rc); !errors.Is(err, rebalancer.ErrChanged) {
				t.Errorf("%s: read to the end: %v", what, err)
			}
		})
	}
}

// endless is a content of any size that costs no memory.
type endless struct{ left int64 }

func (e *endless) Read(p []byte) (int, error) {
	if e.left == 0 {
		return 0, io.EOF
	}
	n := min(int64(len(p)), e.left)
	e.left -= n
	return int(n), nil
}
func (e *endless) Stat() (Info, error) { return Info{Size: 10 << 30}, nil }
func (e *endless) Close() error        { return nil }

func TestTenGigabytes(t *testing.T) {
	t.Parallel()
	for _, short := range []int64{0, 1, -1} {
		c := &content{ctx: t.Context(), src: &endless{10<<30 - short}, want: Info{Size: 10 << 30}, name: "big"}
		n, buf := int64(0), make([]byte, 1<<20)
		var err error
		for err == nil {
			var k int
			k, err = c.Read(buf)
			n += int64(k)
		}
		if (err == io.EOF) != (short == 0) || err != io.EOF && !errors.Is(err, rebalancer.ErrChanged) {
			t.Errorf("%d bytes too short: %v after %d", short, err, n)
		}
	}
}

func TestReadEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newFake()
		r := reader(t, p, Options{})
		p.put("a", "abc")
		p.put("b", "abc")
		ms, _ := fetch(t, r, 2)
		ctx, cancel := context.WithCancel(t.Context())
		withCtx, err := ms[0].Open(ctx)
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		if _, err := withCtx.Read(make([]byte, 1)); !errors.Is(err, context.Canceled) {
			t.Errorf("read after the context ended: %v", err)
		}
		left, err := ms[0].Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		inHand, err := ms[1].Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		p.put("c", "abc")
		third, _ := fetch(t, r, 1)
		worked, err := third[0].Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		settle(t, r, sources.Done, third...)
		if c := worked.(*content); !c.src.(*fakeContent).closed {
			t.Error("what a handler left open is open after its file is done")
		}
		settle(t, r, sources.Release, ms[0])
		if _, err := left.Read(make([]byte, 1)); err == nil {
			t.Error("what a handler left open is readable after its settlement")
		}
		if err := r.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := inHand.Read(make([]byte, 1)); err == nil {
			t.Error("what a handler left open is readable after Close")
		}
		if _, err := ms[1].Open(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("open with an ended context: %v", err)
		}
		for _, m := range append(third, ms...) { // a handler that goes on: nobody would close what it opens now
			if _, err := m.Open(t.Context()); !errors.Is(err, fs.ErrClosed) && !errors.Is(err, rebalancer.ErrChanged) {
				t.Errorf("open of %q, which is not in hand any more: %v", m.Key, err)
			}
		}
	})
}

func TestMoves(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newFake()
		r := reader(t, p, Options{Success: "done", Failed: "failed"})
		for range 3 {
			p.put("a.csv", "1")
			ms, _ := fetch(t, r, 1)
			settle(t, r, sources.Done, ms...)
		}
		if len(p.moved) != 3 || p.moved["done/a.csv"] == "" {
			t.Fatalf("three files of one name became %q", p.moved)
		}
		for name := range p.moved {
			if !strings.HasSuffix(name, ".csv") {
				t.Errorf("%q lost its type", name)
			}
		}
		clear(p.moved)
		p.put("b.csv", "bad")
		ms, _ := fetch(t, r, 1)
		settle(t, r, sources.Reject, ms...)
		if p.moved["failed/b.csv"] != "bad" || !strings.Contains(p.moved["failed/b.csv.reason.txt"], "no good") {
			t.Fatalf("after a reject: %q", p.moved)
		}
	})
}

func TestFailedSettlement(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newFake()
		r := reader(t, p, Options{Success: "done"})
		p.put("a", "")
		p.put("b", "")
		ms, _ := fetch(t, r, 2)
		full := errors.New("no space left on device")
		p.fail = func(op, name string) error {
			if op == "move" && name == "a" {
				return full
			}
			return nil
		}
		err := r.Settle(t.Context(), settlements(sources.Done, ms...))
		var some *sources.SettleError
		if !errors.As(err, &some) || len(some.Failed) != 1 || !errors.Is(some.Failed[0], full) {
			t.Fatalf("Settle: %v", err)
		}
		if p.files["a"] == nil || p.files["b"] != nil {
			t.Fatal("the wrong file was moved")
		}
		nothing(t, r, time.Minute) // a is in hand still
		p.fail = nil
		settle(t, r, sources.Done, ms...)
		if p.names() != 0 {
			t.Fatal("a was not moved at the second try")
		}
	})
}

// TestSettleBesideAHangingList: neither Settle nor Close waits for a place that does not answer to Fetch.
func TestSettleBesideAHangingList(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newFake()
		r := reader(t, p, Options{})
		p.put("a", "")
		ms, _ := fetch(t, r, 1)
		p.set(func(p *fake) { p.block = make(chan struct{}) })
		ended := make(chan error, 1)
		go func() { _, err := r.Fetch(t.Context(), 1); ended <- err }()
		time.Sleep(time.Minute) // virtual: the Fetch hangs in List by now
		settle(t, r, sources.Done, ms...)
		if err := r.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := <-ended; !errors.Is(err, sources.ErrClosed) {
			t.Fatalf("Fetch: %v", err)
		}
	})
}

// TestCloseWaitsForASettlement: the file that is being moved is moved, the next one is given back, and Close returns
// when that is certain, or when its own context ends.
func TestCloseWaitsForASettlement(t *testing.T) {
	t.Parallel()
	for _, hang := range []time.Duration{time.Minute, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			p := newFake()
			r := reader(t, p, Options{Success: "done"})
			p.put("a", "")
			p.put("b", "")
			ms, _ := fetch(t, r, 2)
			p.hang = hang
			settled := make(chan error, 1)
			go func() { settled <- r.Settle(t.Context(), settlements(sources.Done, ms...)) }()
			synctest.Wait()
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
			defer cancel()
			start := time.Now()
			err := r.Close(ctx)
			took := time.Since(start)
			synctest.Wait()
			if serr := <-settled; !errors.Is(serr, sources.ErrClosed) {
				t.Errorf("Settle: %v; want ErrClosed for b", serr)
			}
			if p.files["b"] == nil {
				t.Error("b was settled after Close began")
			}
			if hang == time.Minute && (err != nil || took != time.Minute || p.files["a"] != nil) {
				t.Errorf("Close: %v after %v", err, took)
			}
			if hang == time.Hour && (!errors.Is(err, context.DeadlineExceeded) || took != 10*time.Minute || p.files["a"] == nil) {
				t.Errorf("Close beside a move that hangs: %v after %v", err, took)
			}
		})
	}
}

func TestSpareNames(t *testing.T) {
	t.Parallel()
	now := time.Unix(0, 0)
	long := strings.Repeat("ä", 120)
	for _, name := range []string{"a", "a.csv", ".profile", long + ".csv", strings.Repeat("x", 255), "a." + strings.Repeat("y", 250), "\xff\xfe"} {
		seen := map[string]bool{}
		for n := range 4 {
			s := spare(name, n, now)
			if len(s) > MaxName || seen[s] || s == "" {
				t.Errorf("spare(%q, %d) = %q", name, n, s)
			}
			if utf8.ValidString(name) && !utf8.ValidString(s) {
				t.Errorf("spare(%q, %d) = %q cuts a rune", name, n, s)
			}
			seen[s] = true
		}
	}
	if s := spare("a.csv", 1, now); s != "a.19700101T000000.000000000Z.csv" {
		t.Errorf("got %q", s)
	}
}

func FuzzMatches(f *testing.F) {
	for _, p := range []string{".*", "*.tmp", "a*b", "[a-z]*", "*", "**", `\*`, "a?", "*[.]x"} {
		f.Add(p, "a.tmp")
	}
	f.Fuzz(func(t *testing.T, pattern, name string) {
		want, err := path.Match(pattern, name)
		if err != nil || strings.Contains(name, "/") || strings.Contains(pattern, "/") {
			return
		}
		if got := matches(pattern, name); got != want {
			t.Errorf("matches(%q, %q) = %v", pattern, name, got)
		}
	})
}

func TestOptionsAllViolations(t *testing.T) {
	t.Parallel()
	o := Options{
		MinAge: -1, Interval: -1, IdleInterval: -2, Ignore: []string{"[a-"}, DoneFile: "done", Success: "x", Failed: "x",
	}
	err := o.Complete()
	for _, want := range []string{"MinAge", "Interval", "IdleInterval", "Ignore", "DoneFile", "folders"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in: %v", want, err)
		}
	}
}

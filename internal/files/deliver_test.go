package files

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rebalancer-go/rebalancer/sources"
)

func TestStability(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newFake()
		p.put("a", "1")
		r := reader(t, p, Options{StableFor: 2 * time.Second})
		start := time.Now()
		fetch(t, r, 1)
		if d := time.Since(start); d != 2*time.Second {
			t.Errorf("delivered after %v, want 2 s", d)
		}
		// A file that grows each second never has two equal observations 2 s apart, and holds nobody up.
		p.put("b", "")
		stop := make(chan struct{})
		go func() {
			tick := time.NewTicker(time.Second)
			defer tick.Stop()
			for {
				select {
				case <-tick.C:
					p.grow("b", "x")
				case <-stop:
					return
				}
			}
		}()
		nothing(t, r, time.Minute)
		p.put("c", "later name")
		if _, keys := fetch(t, r, 1); keys[0] != "c" {
			t.Fatalf("got %q, want c: an unstable file holds up later names", keys)
		}
		close(stop)
		if _, keys := fetch(t, r, 1); keys[0] != "b" {
			t.Fatalf("got %q, want b", keys)
		}
	})
}

// One look is none to compare with, also when the time between two passes before it is over, as on a machine that is busy: the file may be
// written still, and would overtake those before it. In real time, in which even 1 ns passes.
func TestOneLookIsNotEnough(t *testing.T) {
	t.Parallel()
	p := newFake()
	p.put("a", "1")
	r := reader(t, p, Options{StableFor: 1})
	fetch(t, r, 1)
	p.set(func(p *fake) {
		if p.stats < 2 {
			t.Errorf("delivered after %d looks, want 2", p.stats)
		}
	})
}

func TestStrictOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newFake()
		r := reader(t, p, Options{Strict: true, StableFor: 10 * time.Second})
		p.put("b", "")
		nothing(t, r, 5*time.Second)
		p.put("a", "")
		nothing(t, r, 9*time.Second) // b is stable, but a comes first
		ms, keys := fetch(t, r, 2)
		if !slices.Equal(keys, []string{"a", "b"}) {
			t.Fatalf("got %q", keys)
		}
		s := settlements(sources.Retry, ms...)
		s[0].Delay = time.Minute
		if err := r.Settle(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		nothing(t, r, 59*time.Second) // a retry holds up what follows
		if _, keys = fetch(t, r, 2); !slices.Equal(keys, []string{"a", "b"}) {
			t.Fatalf("got %q", keys)
		}
	})
}

func TestMinAge(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newFake()
		r := reader(t, p, Options{MinAge: time.Minute})
		p.put("young", "")
		p.put("from the future", "")
		p.set(func(p *fake) { p.files["from the future"].mod = time.Now().Add(24 * time.Hour) })
		nothing(t, r, 59*time.Second)
		start := time.Now()
		fetch(t, r, 2)
		if d := time.Since(start); d > 5*time.Second {
			t.Errorf("delivered %v too late", d)
		}
	})
}

func TestIgnoredAndDoneFiles(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newFake()
		r := reader(t, p, Options{DoneFile: "*.done", Failed: "failed"})
		for _, name := range []string{".hidden", "x.tmp", "x.part", "x.filepart", "x.partial", "a", "b", "c", "lone.done", ".done"} {
			p.put(name, "")
		}
		nothing(t, r, time.Minute)
		p.put("b.done", "")
		p.put("c.done", "")
		p.put("x.tmp.done", "")
		ms, keys := fetch(t, r, 2)
		if !slices.Equal(keys, []string{"b", "c"}) {
			t.Fatalf("got %q", keys)
		}
		settle(t, r, sources.Done, ms[0])
		settle(t, r, sources.Reject, ms[1])
		if p.files["b.done"] != nil || p.files["c.done"] != nil {
			t.Error("a done-file outlived its file")
		}
		if p.files["lone.done"] == nil {
			t.Error("another done-file was removed")
		}
		nothing(t, r, time.Minute)
	})
}

func TestOrderByTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newFake()
		const n = 3 * statsPerPoll // needs several polls to know all times
		for i := range n {
			p.put(fmt.Sprintf("%06d", i), "")
		}
		p.set(func(p *fake) {
			for i := range n {
				p.files[fmt.Sprintf("%06d", i)].mod = time.Unix(int64(n-i/2), 0) // newest first, in pairs
			}
		})
		r := reader(t, p, Options{ByTime: true, StableFor: -1})
		_, keys := fetch(t, r, n)
		var want []string
		for i := n - 2; i >= 0; i -= 2 {
			want = append(want, fmt.Sprintf("%06d", i), fmt.Sprintf("%06d", i+1))
		}
		if !slices.Equal(keys, want) {
			t.Fatalf("the order is wrong: %q …", keys[:6])
		}
	})
}

// TestExactListing: where a listing tells all and nothing need be stable, no file is looked at. What a listing says later counts.
func TestExactListing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newFake()
		p.exact = true
		p.put("a", "1")
		p.put("b", "1")
		r := reader(t, p, Options{StableFor: -1, MinAge: time.Minute})
		nothing(t, r, 30*time.Second)
		p.put("a", "22")
		ms, keys := fetch(t, r, 1)
		if keys[0] != "b" || p.stats != 0 {
			t.Fatalf("got %q with %d looks", keys, p.stats)
		}
		settle(t, r, sources.Done, ms...)
		ms, _ = fetch(t, r, 1)
		if p.stats != 0 {
			t.Errorf("%d looks", p.stats)
		}
		if body, err := read(t, ms[0]); body != "22" || err != nil {
			t.Fatalf("got %q, %v", body, err)
		}
		settle(t, r, sources.Retry, ms...)
		ms, _ = fetch(t, r, 1)
		if ms[0].Attempt != 2 {
			t.Errorf("attempt %d after a retry", ms[0].Attempt)
		}
	})
}

// TestDeep: names of a tree have slashes, and no part that leads elsewhere.
func TestDeep(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newFake()
		for _, name := range []string{"a/b/c", "a/../b", "a//b", "/a", "a/", "..", "./a"} {
			p.put(name, "x")
		}
		nothing(t, reader(t, p, Options{}), time.Minute)
		r := reader(t, p, Options{Deep: true})
		if _, keys := fetch(t, r, 1); keys[0] != "a/b/c" {
			t.Fatalf("got %q", keys)
		}
		nothing(t, r, time.Minute)
	})
}

// TestBigDirectory bounds the work: two observations a file, few listings, and files that wait for an hour do not cost
// more each poll.
func TestBigDirectory(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newFake()
		const n = 20_000
		for i := range n {
			p.put(fmt.Sprintf("%06d", i), "")
		}
		r := reader(t, p, Options{})
		start := time.Now()
		for range n / 500 {
			ms, _ := fetch(t, r, 500)
			settle(t, r, sources.Done, ms...)
		}
		if p.stats > 2*n+2*lookahead {
			t.Errorf("%d observations for %d files", p.stats, n)
		}
		if d := time.Since(start); d > time.Minute {
			t.Errorf("took %v of virtual time", d)
		}
		if p.names() != 0 {
			t.Errorf("%d files left", p.names())
		}
		for i := range 3_000 {
			p.put(fmt.Sprintf("%06d", i), "")
		}
		ms, _ := fetch(t, r, 3_000)
		s := settlements(sources.Retry, ms...)
		for i := range s {
			s[i].Delay = time.Hour
		}
		if err := r.Settle(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		p.stats = 0
		nothing(t, r, 30*time.Minute)
		if p.stats > 100 {
			t.Errorf("%d observations of files that wait for an hour", p.stats)
		}
	})
}

func TestIdleBackoff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newFake()
		r := reader(t, p, Options{Interval: time.Second, IdleInterval: 4 * time.Second})
		nothing(t, r, time.Hour)
		if p.lists < 850 || p.lists > 950 {
			t.Errorf("%d listings in an idle hour, want about 900", p.lists)
		}
	})
}

func TestGoneAndErrors(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newFake()
		p.put("a", "")
		p.put("b", "")
		r := reader(t, p, Options{})
		broken := errors.New("input/output error")
		p.fail = func(op, _ string) error {
			if op == "list" {
				return broken
			}
			return nil
		}
		if _, err := r.Fetch(t.Context(), 1); !errors.Is(err, broken) {
			t.Fatalf("Fetch of a place that cannot be listed: %v", err)
		}
		p.fail, p.gone = nil, true
		if _, err := r.Fetch(t.Context(), 1); !errors.Is(err, sources.ErrGone) {
			t.Fatalf("Fetch of a place that is gone: %v", err)
		}
		p.gone = false
		p.fail = func(op, name string) error { // one file fails alone
			if op == "stat" && name == "a" {
				return broken
			}
			return nil
		}
		if _, keys := fetch(t, r, 1); keys[0] != "b" {
			t.Fatalf("got %q", keys)
		}
		p.stats = 0
		nothing(t, r, time.Hour)
		if p.stats > 100 {
			t.Errorf("%d looks at a broken file in an hour", p.stats)
		}
		p.fail = nil
		if _, keys := fetch(t, r, 1); keys[0] != "a" {
			t.Fatalf("got %q", keys)
		}
	})
}

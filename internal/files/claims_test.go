package files

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/sources"
)

// groupReader makes a Reader that works for a group.
func groupReader(t testing.TB, p Place, o Options, group string) *Reader {
	t.Helper()
	return fencedReader(t, p, o, group, 7)
}

func fencedReader(t testing.TB, p Place, o Options, group string, fence int64) *Reader {
	t.Helper()
	if err := o.Complete(); err != nil {
		t.Fatal(err)
	}
	r := New(p, o, &rebalancer.Claim{Group: group, Resource: "in", Fence: fence})
	t.Cleanup(func() { _ = r.Close(context.Background()) })
	return r
}

func (p *fake) list() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var names []string
	for n := range p.files {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

func TestClaimByRename(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newFake()
		r := groupReader(t, p, Options{Claim: true, Success: "done", Failed: "failed"}, "g")
		for _, n := range []string{"a", "b", "c", "d"} {
			p.put(n, n)
		}
		ms, keys := fetch(t, r, 3)
		if !slices.Equal(keys, []string{"a", "b", "c"}) {
			t.Fatalf("keys %q", keys)
		}
		as := claimsOf("g", 7).as("a")
		if !p.has(as) || p.has("a") || !p.has("d") {
			t.Fatalf("the place holds %q", p.list())
		}
		if body, err := read(t, ms[0]); body != "a" || err != nil {
			t.Errorf("read %q, %v", body, err)
		}
		settle(t, r, sources.Done, ms[0])
		settle(t, r, sources.Reject, ms[1])
		if p.moved["done/a"] != "a" || p.moved["failed/b"] != "b" || p.moved["failed/b.reason.txt"] == "" {
			t.Errorf("moved %q", p.moved)
		}
		settle(t, r, sources.Retry, ms[2])
		again, _ := fetch(t, r, 1)
		if again[0].ID != ms[2].ID || again[0].Attempt != 2 {
			t.Errorf("after a retry: %q, attempt %d", again[0].ID, again[0].Attempt)
		}
		if err := r.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := p.list(); !slices.Equal(got, []string{"c", "d"}) {
			t.Errorf("after Close the place holds %q", got)
		}
	})
}

// TestClaimAfterACrash: the next Reader of the group knows what was claimed; another group leaves it alone.
func TestClaimAfterACrash(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newFake()
		p.put("a", "old")
		r := groupReader(t, p, Options{Claim: true}, "g")
		fetch(t, r, 1)
		p.put("a", "new") // came under the name meanwhile
		other := groupReader(t, p, Options{Claim: true, Ignore: []string{}}, "other")
		ms, _ := fetch(t, other, 1)
		if body, _ := read(t, ms[0]); body != "new" {
			t.Fatalf("another group read %q", body)
		}
		if err := other.Close(t.Context()); err != nil { // gives it back
			t.Fatal(err)
		}
		none := groupReader(t, p, Options{Ignore: []string{}}, "g") // does not claim, and knows no claims
		ms, keys := fetch(t, none, 1)
		nothing(t, none, time.Minute)
		if body, _ := read(t, ms[0]); body != "new" {
			t.Fatalf("read %q of %q", body, keys)
		}
		o := Options{Claim: true}
		next := groupReader(t, p, o, "g") // r crashed
		for _, want := range []string{"old", "new"} {
			ms, keys = fetch(t, next, 1)
			if body, err := read(t, ms[0]); keys[0] != "a" || body != want || err != nil {
				t.Fatalf("got %q with %q, %v; want %q", keys, body, err, want)
			}
			nothing(t, next, time.Minute)
			settle(t, next, sources.Done, ms...)
		}
		if p.names() != 0 {
			t.Errorf("left %q", p.list())
		}
		p.put(claimsOf("x", 7).as("b"), "")
		if err := o.Complete(); err != nil {
			t.Fatal(err)
		}
		if n, err := o.Count(func(each func([]Entry) error) error { return p.List(t.Context(), each) }); n != 1 || err != nil {
			t.Errorf("counted %d, %v", n, err)
		}
	})
}

// TestClaimIsRefused: what an outsider took is not handed out, what changed comes as what it is, and what cannot be renamed is
// reported and holds nothing up.
func TestClaimIsRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newFake()
		var l warnings
		r := groupReader(t, p, Options{Claim: true, StableFor: -1, Logger: l.logger()}, "g")
		long := strings.Repeat("n", MaxName)
		for _, n := range []string{"changed", "denied", "fine", long, "taken"} {
			p.put(n, n)
		}
		once := map[string]bool{}
		p.fail = func(op, name string) error { // with the place's lock held
			if op != "rename" {
				return nil
			}
			if name == "denied" {
				return errors.New("permission denied")
			}
			if !once[name] {
				once[name] = true
				switch name {
				case "taken":
					delete(p.files, name)
				case "changed":
					p.files[name] = &fakeFile{"other", time.Now(), 99}
				}
			}
			return nil
		}
		_, keys := fetch(t, r, 2)
		slices.Sort(keys)
		if !slices.Equal(keys, []string{"changed", "fine"}) {
			t.Fatalf("got %q", keys)
		}
		nothing(t, r, time.Hour)
		if !p.has("denied") || !p.has(long) {
			t.Errorf("the place holds %q", p.list())
		}
		if got := l.String(); strings.Count(got, "cannot be claimed") != 2 {
			t.Errorf("the log says %.2000q", got)
		}
		p.set(func(p *fake) { p.fail = nil })
		if _, keys = fetch(t, r, 1); keys[0] != "denied" {
			t.Errorf("got %q", keys)
		}
	})
}

// TestClaimOfASet: all files of a set are renamed, or none.
func TestClaimOfASet(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newFake()
		o := Options{Claim: true, Set: []string{"*.a", "*.b"}}
		r := groupReader(t, p, o, "g")
		p.put("1.a", "A")
		p.put("1.b", "B")
		p.fail = func(op, name string) error {
			if op == "rename" && name == "1.a" {
				return errors.New("permission denied")
			}
			return nil
		}
		nothing(t, r, time.Minute)
		if got := p.list(); !slices.Equal(got, []string{"1.a", "1.b"}) {
			t.Fatalf("the place holds %q", got)
		}
		p.set(func(p *fake) { p.fail = nil })
		fetch(t, r, 1)
		c := claimsOf("g", 7)
		if got := p.list(); !slices.Equal(got, []string{c.as("1.a"), c.as("1.b")}) {
			t.Fatalf("the place holds %q", got)
		}
		next := groupReader(t, p, o, "g") // after a crash
		ms, _ := fetch(t, next, 1)
		if got := bodies(t, ms[0]); got != "A,1.b=B" {
			t.Errorf("the set is %q", got)
		}
		settle(t, next, sources.Done, ms...)
		if p.names() != 0 {
			t.Errorf("left %q", p.list())
		}
	})
}

// TestCloseDuringAClaim: Close waits for a rename that is under way and gives the file back.
func TestCloseDuringAClaim(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newFake()
		r := groupReader(t, p, Options{Claim: true}, "g")
		p.put("a", "")
		under, goOn := make(chan struct{}), make(chan struct{})
		slow := &slowRename{p, under, goOn}
		r.place = slow
		ended := make(chan error, 1)
		go func() { _, err := r.Fetch(context.Background(), 1); ended <- err }()
		<-under
		closed := make(chan error, 1)
		go func() { closed <- r.Close(context.Background()) }()
		synctest.Wait()
		select {
		case err := <-closed:
			t.Fatalf("Close did not wait: %v", err)
		default:
		}
		close(goOn)
		if err := <-closed; err != nil {
			t.Error(err)
		}
		if err := <-ended; !errors.Is(err, sources.ErrClosed) {
			t.Errorf("Fetch: %v", err)
		}
		if got := p.list(); !slices.Equal(got, []string{"a"}) {
			t.Errorf("the place holds %q", got)
		}
	})
}

// slowRename lets a test wait for the first Rename.
type slowRename struct {
	*fake
	under, goOn chan struct{}
}

func (p *slowRename) Rename(ctx context.Context, name string, want Info, as string) error {
	if name == "a" {
		close(p.under)
		<-p.goOn
	}
	return p.fake.Rename(context.WithoutCancel(ctx), name, want, as)
}

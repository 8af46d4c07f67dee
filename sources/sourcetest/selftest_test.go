package sourcetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/sources"
	"github.com/rebalancer-go/rebalancer/sources/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// recorder is a testing.TB that keeps its failure to itself.
type recorder struct {
	testing.TB
	mu       sync.Mutex
	failed   []string
	cleanups []func()
}

func (r *recorder) Helper() {}
func (r *recorder) Cleanup(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cleanups = append(r.cleanups, f)
}
func (r *recorder) note(s string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = append(r.failed, s)
}
func (r *recorder) Error(args ...any)            { r.note(fmt.Sprint(args...)) }
func (r *recorder) Errorf(f string, args ...any) { r.note(fmt.Sprintf(f, args...)) }
func (r *recorder) Fatal(args ...any)            { r.note(fmt.Sprint(args...)); fatal() }
func (r *recorder) Fatalf(f string, args ...any) { r.note(fmt.Sprintf(f, args...)); fatal() }

type fatalError struct{}

func fatal() { panic(fatalError{}) }

// record runs one check and returns its failures.
func record(t *testing.T, c check, h Harness) []string {
	r := &recorder{TB: t}
	guard := func(f func()) {
		defer func() {
			if p := recover(); p != nil && p != (fatalError{}) {
				panic(p)
			}
		}()
		f()
	}
	guard(func() { c.run(r, newWorld(r, h)) })
	slices.Reverse(r.cleanups)
	for _, f := range r.cleanups {
		guard(f)
	}
	return r.failed
}

// faults are the ways in which a source can break the contract; each of them must fail at least the check named.
type fault struct {
	fails string // prefix of the check's name
	opts  []memory.Option
	wrap  func(faulty) faulty
}

// faulty is a source made of functions, so that one at a time can be broken.
type faulty struct {
	sources.Source
	names func([]string) ([]string, error)
	open  func(context.Context, *rebalancer.Claim) (sources.Reader, error)
	fetch func(context.Context, *rebalancer.Claim, sources.Reader, int) ([]*rebalancer.Message, error)
	set   func(context.Context, sources.Reader, []sources.Settlement) error
	close func(context.Context, sources.Reader) error
}

func (f faulty) Names(r []string) ([]string, error) { return f.names(r) }
func (f faulty) Open(ctx context.Context, c *rebalancer.Claim) (sources.Reader, error) {
	r, err := f.open(ctx, c)
	if err != nil {
		return nil, err
	}
	return &faultyReader{f, c, r}, nil
}

type faultyReader struct {
	f faulty
	c *rebalancer.Claim
	r sources.Reader
}

func (r *faultyReader) Fetch(ctx context.Context, max int) ([]*rebalancer.Message, error) {
	return r.f.fetch(ctx, r.c, r.r, max)
}
func (r *faultyReader) Settle(ctx context.Context, s []sources.Settlement) error {
	return r.f.set(ctx, r.r, s)
}
func (r *faultyReader) Close(ctx context.Context) error { return r.f.close(ctx, r.r) }

func sound(s *memory.Source) faulty {
	return faulty{
		Source: s, names: s.Names, open: s.Open,
		fetch: func(ctx context.Context, _ *rebalancer.Claim, r sources.Reader, max int) ([]*rebalancer.Message, error) {
			return r.Fetch(ctx, max)
		},
		set:   func(ctx context.Context, r sources.Reader, s []sources.Settlement) error { return r.Settle(ctx, s) },
		close: func(ctx context.Context, r sources.Reader) error { return r.Close(ctx) },
	}
}

func harness(f fault) Harness {
	return Harness{Patience: 300 * time.Millisecond, Quiet: 20 * time.Millisecond, New: func(tb testing.TB) *Fixture {
		s := memory.New(f.opts...)
		tb.Cleanup(func() { _ = s.Close() })
		s.Remove("missing")
		src := sound(s)
		if f.wrap != nil {
			src = f.wrap(src)
		}
		return &Fixture{
			Source: src, Resources: []string{"a", "b", "c", "d"}, Missing: "missing", MaxBody: 100,
			Send: func(resource, key string, body []byte) error {
				return s.SendMessages(resource, rebalancer.Message{Key: key, Body: body})
			},
			Left: func(resource string) int { c := s.Counts(resource); return c.Waiting + c.InFlight },
			Rejected: func(resource string) []string {
				var out []string
				for _, r := range s.Rejected(resource) {
					out = append(out, string(r.Message.Body))
				}
				return out
			},
			Remove: func(resource string) error { s.Remove(resource); return nil },
		}
	}}
}

func TestSoundSourcePasses(t *testing.T) {
	t.Parallel()
	for _, c := range checks() {
		for _, f := range []fault{{}, {opts: []memory.Option{memory.WithoutDeadLetters()}}} {
			if failed := record(t, c, harness(f)); len(failed) > 0 {
				t.Errorf("%s: %q", c.name, failed)
			}
		}
	}
}

func TestFaultySourcesFail(t *testing.T) {
	t.Parallel()
	for what, f := range faults() {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			for _, c := range checks() {
				if len(c.name) < len(f.fails) || c.name[:len(f.fails)] != f.fails {
					continue
				}
				if failed := record(t, c, harness(f)); len(failed) == 0 {
					t.Errorf("%q passes", c.name)
				}
				return
			}
			t.Fatalf("no check is called %q", f.fails)
		})
	}
}

// changed makes a fault out of a change of what Fetch returned.
func changed(fails string, change func(*rebalancer.Claim, []*rebalancer.Message)) fault {
	return fault{fails: fails, wrap: func(f faulty) faulty {
		f.fetch = func(ctx context.Context, c *rebalancer.Claim, r sources.Reader, max int) ([]*rebalancer.Message, error) {
			ms, err := r.Fetch(ctx, max)
			change(c, ms)
			return ms, err
		}
		return f
	}}
}

// settling makes a fault out of a change of the settlements; nil settles nothing.
func settling(fails string, change func(s sources.Settlement) *sources.Settlement) fault {
	return fault{fails: fails, wrap: func(f faulty) faulty {
		f.set = func(ctx context.Context, r sources.Reader, in []sources.Settlement) error {
			var out []sources.Settlement
			for _, s := range in {
				if c := change(s); c != nil {
					out = append(out, *c)
				}
			}
			return r.Settle(ctx, out)
		}
		return f
	}}
}

var errStrange = errors.New("a strange error")

package s3

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/internal/checkpointtest"
	"github.com/rebalancer-go/rebalancer/internal/files/seen"
	"github.com/rebalancer-go/rebalancer/internal/testserver"
	"github.com/rebalancer-go/rebalancer/sources"
	"github.com/rebalancer-go/rebalancer/sources/pickup"
	"github.com/rebalancer-go/rebalancer/sources/sourcetest"
)

// stores are the checkpoints of the resources of one fixture.
type stores struct {
	mu   sync.Mutex
	each map[string]*checkpointtest.Store
}

func (s *stores) of(resource string) *checkpointtest.Store {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.each == nil {
		s.each = map[string]*checkpointtest.Store{}
	}
	if s.each[resource] == nil {
		s.each[resource] = checkpointtest.New()
	}
	return s.each[resource]
}

// settled are the names that have an outcome.
func (s *stores) settled(tb testing.TB, resource string, outcome seen.Outcome) (names []string) {
	tb.Helper()
	records, err := seen.Read(context.Background(), s.of(resource).Owner())
	if err != nil {
		tb.Fatal(err)
	}
	for name, r := range records {
		if r.Outcome == outcome {
			names = append(names, name)
		}
	}
	return names
}

// TestKeepSuite: with objects that stay, tagged or not, what is left is what the checkpoint does not have.
func TestKeepSuite(t *testing.T) {
	t.Parallel()
	server := testserver.StartVersityGW(t)
	for what, change := range map[string]func(*Config){
		"keep": func(c *Config) { c.OnSuccess, c.OnFailure = pickup.Keep(), pickup.Keep() },
		"tag":  func(c *Config) { c.OnSuccess, c.OnFailure = pickup.Tag("state", "done"), pickup.Tag("state", "failed") },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			sourcetest.Run(t, sourcetest.Harness{New: func(tb testing.TB) *sourcetest.Fixture {
				var cfg Config
				f := fixture(tb, server, func(c *Config) { change(c); cfg = *c })
				c, kept, inPlace := gateway(tb, server), &stores{}, f.Left
				f.Checkpoint = func(resource string) rebalancer.Checkpoint { return kept.of(resource).Claim() }
				f.Left = func(resource string) int {
					return inPlace(resource) - len(kept.settled(tb, resource, seen.Done)) - len(kept.settled(tb, resource, seen.Failed))
				}
				f.Rejected = func(resource string) (bodies []string) {
					for _, name := range kept.settled(tb, resource, seen.Failed) {
						key := resource + "/" + name
						bodies = append(bodies, get(tb, c, cfg.Bucket, key))
						if tags := tagsOf(tb, c, cfg.Bucket, key); what == "tag" && tags != "state=failed" {
							tb.Errorf("%s has the tags %q", key, tags)
						}
					}
					return bodies
				}
				return f
			}})
		})
	}
}

// TestKeptObjects: they stay with their tag, are not delivered again by the next owner, and one that is replaced is.
func TestKeptObjects(t *testing.T) {
	t.Parallel()
	server := testserver.StartVersityGW(t)
	c := gateway(t, server)
	cfg := quick(c)
	cfg.Bucket, cfg.OnSuccess = bucket(t, c), pickup.Tag("state", "done")
	s, kept := newSource(t, cfg), &stores{}
	next := func() sources.Reader {
		cp := kept.of("in").Claim()
		r, err := s.Open(t.Context(), &rebalancer.Claim{Group: "g", Resource: "in", Fence: cp.Fence(), Checkpoint: cp})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	put(t, c, cfg.Bucket, "in/a", "1")
	put(t, c, cfg.Bucket, "in/b", "1")
	r := next()
	settle(t, r, sources.Done, fetch(t, r, 2)...)
	nothing(t, r)
	if err := r.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	put(t, c, cfg.Bucket, "in/a", "22")
	r = next()
	ms := fetch(t, r, 1)
	if body, err := read(ms[0]); ms[0].Key != "a" || body != "22" || err != nil {
		t.Errorf("got %q of %q, %v", body, ms[0].Key, err)
	}
	settle(t, r, sources.Done, ms...)
	nothing(t, r)
	for _, key := range []string{"in/a", "in/b"} {
		if tags := tagsOf(t, c, cfg.Bucket, key); tags != "state=done" {
			t.Errorf("%s has the tags %q", key, tags)
		}
	}
	if left := all(t, c, cfg.Bucket, ""); strings.Join(left, " ") != "in/a in/b" {
		t.Errorf("left %q", left)
	}
}

package sqs

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/sources/sqs/sqstest"
)

func TestDiscover(t *testing.T) {
	onStage(t, "", func(c *Config) { c.DeadLetter = "*-dead" }, func(t *testing.T, s *stage) {
		for i := range 1005 { // more than a page
			s.Create(fmt.Sprintf("orders-%04d", i), nil)
		}
		for _, q := range []string{"orders-x.fifo", "orders-x-dead.fifo", "order", "mail"} {
			s.Create(q, nil)
		}
		s.Tag("mail", map[string]string{"team": "red", "x": ""})
		s.Tag("order", map[string]string{"team": "green"})
		for pattern, want := range map[string]int{"orders-*": 1006, "orders-000?": 10, "*": 1010, "tag:team=*": 2, "tag:x=*": 1, "tag:team=r*": 1, "tag:none=*": 0} {
			if got, err := s.source.Discover(t.Context(), pattern); err != nil || len(got) != want || !slices.IsSorted(got) {
				t.Errorf("Discover(%q): %d queues, %v; want %d", pattern, len(got), err, want)
			}
		}
		for _, pattern := range []string{"tag:x", "tag:=x", "tag:x=["} {
			if _, err := s.source.Discover(t.Context(), pattern); err == nil {
				t.Errorf("Discover(%q) was accepted", pattern)
			}
		}
		refuse(s.Server, "ListQueues", sqstest.Error("AccessDenied", "no"))
		if _, err := s.source.Discover(t.Context(), "*"); err == nil {
			t.Error("an error is not an empty list")
		}
	})
}

// TestDiscoverLeavesOutTargets: what a redrive policy gave up is not to come back, unless the dead-letter queue is what was asked for.
func TestDiscoverLeavesOutTargets(t *testing.T) {
	onStage(t, "", nil, func(t *testing.T, s *stage) {
		s.Remove("q")
		s.Remove("dead")
		for q, target := range map[string]string{"a": "a-lost", "a-lost": "z", "b.fifo": "b-lost.fifo", "c": "nowhere", "d": "", "own": "own", "e-lost": ""} {
			attributes := map[string]string{}
			if target != "" {
				attributes["RedrivePolicy"] = sqstest.RedrivePolicy(target, 3)
			}
			s.Create(q, attributes)
		}
		s.Create("z", map[string]string{"RedrivePolicy": "nonsense"})
		s.Create("b-lost.fifo", nil)
		s.Tag("a", map[string]string{"team": "red"})
		s.Tag("a-lost", map[string]string{"team": "red"})
		for pattern, want := range map[string]string{"*": "b.fifo a c d e-lost own", "a*": "a", "*-lost": "a-lost e-lost", "tag:team=*": "a", "none*": ""} {
			list := strings.Fields(want)
			slices.Sort(list)
			if got, err := s.source.Discover(t.Context(), pattern); err != nil || !slices.Equal(got, list) {
				t.Errorf("Discover(%q): %q, %v; want %q", pattern, got, err, list)
			}
		}
	})
}

// TestDiscoverAtOnce: a call for each queue is made beside others, so that a thousand take no minute, but not beside all of them.
func TestDiscoverAtOnce(t *testing.T) {
	onStage(t, "", nil, func(t *testing.T, s *stage) {
		for i := range 800 {
			name := fmt.Sprintf("orders-%03d", i)
			s.Create(name, nil)
			s.Tag(name, map[string]string{"team": "red"})
		}
		var mu sync.Mutex
		running, most := 0, 0
		s.Intercept(func(call string, _ any) error {
			mu.Lock()
			running++
			most = max(most, running)
			mu.Unlock()
			time.Sleep(100 * time.Millisecond)
			mu.Lock()
			running--
			mu.Unlock()
			return nil
		})
		start := time.Now()
		got, err := s.source.Discover(t.Context(), "tag:team=red")
		if err != nil || len(got) != 800 {
			t.Fatalf("%d queues, %v", len(got), err)
		}
		if d := time.Since(start); d > 25*time.Second || most > 10 {
			t.Errorf("%v, with %d calls at once", d, most)
		}
	})
}

// TestDiscoverFails: what cannot be known of one queue is no shorter list, and says which it is; one that is deleted meanwhile is none.
func TestDiscoverFails(t *testing.T) {
	for call, pattern := range map[string]string{"ListQueueTags": "tag:team=red", "GetQueueAttributes": "*"} {
		t.Run(call, func(t *testing.T) {
			onStage(t, "", nil, func(t *testing.T, s *stage) {
				s.Tag("q", map[string]string{"team": "red"})
				refuse(s.Server, call, sqstest.Error("AccessDenied", "no"))
				if got, err := s.source.Discover(t.Context(), pattern); err == nil || !strings.Contains(err.Error(), `queue "`) || !strings.Contains(err.Error(), "AccessDenied") {
					t.Errorf("Discover: %q, %v", got, err)
				}
				refuse(s.Server, call, sqstest.Error(codeNoQueue, "gone"))
				if got, err := s.source.Discover(t.Context(), pattern); err != nil || len(got) > 0 {
					t.Errorf("Discover of what went meanwhile: %q, %v", got, err)
				}
			})
		})
	}
}

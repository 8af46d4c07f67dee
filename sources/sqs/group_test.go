package sqs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/backends/memory"
	"github.com/rebalancer-go/rebalancer/group"
	"github.com/rebalancer-go/rebalancer/sources/sqs/sqstest"
)

// crew is nodes of a group on one server, in virtual time.
type crew struct {
	*sqstest.Server
	t     *testing.T
	store *memory.Store
	queue []string
	wg    sync.WaitGroup
}

func crewOf(t *testing.T, queues ...string) *crew {
	c := &crew{Server: sqstest.New(), t: t, store: memory.New(), queue: queues}
	for _, q := range queues {
		c.Create(q, nil)
	}
	return c
}

// run starts a node, which ends with stop.
func (c *crew) run(node string, change func(*group.Config, *Config), handle rebalancer.Handler) (g *group.Group, stop func()) {
	c.t.Helper()
	cfg := group.Config{
		Name: "g", Node: node, Store: c.store, Resources: group.Static(c.queue...), Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}
	src := Config{Client: c.Server}
	if change != nil {
		change(&cfg, &src)
	}
	s := newSource(c.t, src)
	cfg.Source = s
	g, err := group.New(cfg)
	if err != nil {
		c.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(c.t.Context())
	c.wg.Go(func() {
		if err := g.Consume(ctx, handle); err != nil {
			c.t.Errorf("node %s: %v", node, err)
		}
	})
	return g, func() { cancel(); c.wg.Wait() }
}

// empty waits until a queue is.
func (c *crew) empty(within time.Duration, queues ...string) {
	c.t.Helper()
	for end := time.Now().Add(within); ; time.Sleep(time.Second) {
		left := 0
		for _, q := range queues {
			left += len(c.Bodies(q))
		}
		if left == 0 {
			return
		}
		if time.Now().After(end) {
			c.t.Fatalf("%d messages left after %v", left, within)
		}
	}
}

// TestLongHandler: a handler of 90 s, on a visibility of 30 s, works its message once; also those that wait behind it.
func TestLongHandler(t *testing.T) {
	for _, suffix := range []string{"", fifoSuffix} {
		t.Run(suffix, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := crewOf(t, "q"+suffix)
				for i := range 5 {
					send(c, "q"+suffix, suffix, fmt.Sprint(i))
				}
				var mu sync.Mutex
				times := map[string]int{}
				_, stop := c.run("a", func(g *group.Config, _ *Config) { g.Concurrency = 2 }, func(_ context.Context, m *rebalancer.Message) error {
					time.Sleep(90 * time.Second)
					mu.Lock()
					defer mu.Unlock()
					times[string(m.Body)]++
					return nil
				})
				defer stop()
				c.empty(20*time.Minute, "q"+suffix)
				for body, n := range times {
					if n != 1 {
						t.Errorf("message %s was worked %d times", body, n)
					}
				}
				if len(times) != 5 {
					t.Errorf("%d messages were worked", len(times))
				}
			})
		})
	}
}

// TestFailureHoldsItsGroup: the messages behind one that fails wait for it, for as long as it takes, and no receive is burnt; other groups go on.
func TestFailureHoldsItsGroup(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := crewOf(t, "q.fifo")
		for i := range 5 {
			send(c, "q.fifo", "bad", fmt.Sprint("bad", i))
			send(c, "q.fifo", "good", fmt.Sprint("good", i))
		}
		var mu sync.Mutex
		var order []string
		begun := time.Now()
		_, stop := c.run("a", func(g *group.Config, _ *Config) { g.Concurrency = 8 }, func(_ context.Context, m *rebalancer.Message) error {
			if string(m.Body) == "bad0" && time.Since(begun) < 10*time.Minute {
				return errors.New("not yet")
			}
			mu.Lock()
			defer mu.Unlock()
			order = append(order, string(m.Body))
			return nil
		})
		defer stop()
		c.empty(20*time.Minute, "q.fifo")
		want := []string{"good0", "good1", "good2", "good3", "good4", "bad0", "bad1", "bad2", "bad3", "bad4"}
		if !slices.Equal(order, want) {
			t.Errorf("worked %q, want %q", order, want)
		}
	})
}

// TestExhausted: a message whose attempts are used up goes to the dead-letter queue with its group, and those behind it go on.
func TestExhausted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := crewOf(t, "q.fifo")
		c.Create("q-dead.fifo", nil)
		for i := range 4 {
			send(c, "q.fifo", "k", fmt.Sprint(i))
		}
		var mu sync.Mutex
		var order []string
		_, stop := c.run("a", func(g *group.Config, s *Config) { s.DeadLetter = "*-dead" }, func(_ context.Context, m *rebalancer.Message) error {
			mu.Lock()
			defer mu.Unlock()
			order = append(order, fmt.Sprintf("%s/%d", m.Body, m.Attempt))
			switch string(m.Body) {
			case "1":
				return errors.New("no")
			case "2":
				return rebalancer.Permanent(errors.New("never"))
			}
			return nil
		})
		defer stop()
		c.empty(10*time.Minute, "q.fifo")
		if want := []string{"0/1", "1/1", "1/2", "1/3", "1/4", "1/5", "2/1", "3/1"}; !slices.Equal(order, want) {
			t.Errorf("attempts %q, want %q", order, want)
		}
		if dead := c.Bodies("q-dead.fifo"); !slices.Equal(dead, []string{"1", "2"}) {
			t.Errorf("dead letters %q", dead)
		}
	})
}

// TestDeploys: graceful restarts send nothing to the dead-letter queue that has a few receives to spare, and no handler runs twice.
func TestDeploys(t *testing.T) {
	for _, suffix := range []string{"", fifoSuffix} {
		t.Run(suffix, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := crewOf(t)
				c.queue = []string{"q" + suffix}
				c.Create("dead"+suffix, nil)
				c.Create("q"+suffix, map[string]string{"RedrivePolicy": sqstest.RedrivePolicy("dead"+suffix, 8)})
				for i := range 200 {
					send(c, "q"+suffix, fmt.Sprint(i%4), fmt.Sprint(i))
				}
				var mu sync.Mutex
				times := map[string]int{}
				for range 4 {
					_, stop := c.run("a", func(g *group.Config, _ *Config) { g.Concurrency = 8 }, func(_ context.Context, m *rebalancer.Message) error {
						time.Sleep(3 * time.Second)
						mu.Lock()
						defer mu.Unlock()
						times[string(m.Body)]++
						return nil
					})
					time.Sleep(10 * time.Second)
					stop()
				}
				_, stop := c.run("a", func(g *group.Config, _ *Config) { g.Concurrency = 8 }, func(_ context.Context, m *rebalancer.Message) error {
					mu.Lock()
					defer mu.Unlock()
					times[string(m.Body)]++
					return nil
				})
				defer stop()
				c.empty(10*time.Minute, "q"+suffix)
				if dead := c.Bodies("dead" + suffix); len(dead) > 0 {
					t.Errorf("dead letters: %q", dead)
				}
				for body, n := range times {
					if n != 1 {
						t.Errorf("message %s was worked %d times", body, n)
					}
				}
			})
		})
	}
}

// TestTroubledQueue: rights that are revoked for one queue, and one that is deleted and made again, are reported on that resource; another goes on, and
// the queue by itself once it can.
func TestTroubledQueue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := crewOf(t, "a", "b")
		var mu sync.Mutex
		worked := map[string]int{}
		g, stop := c.run("n", nil, func(_ context.Context, m *rebalancer.Message) error {
			mu.Lock()
			defer mu.Unlock()
			worked[m.Resource]++
			return nil
		})
		defer stop()
		time.Sleep(30 * time.Second)
		denied := sqstest.Error("AccessDenied", "credentials revoked")
		c.Intercept(func(call string, in any) error {
			if in, ok := in.(*receipts); ok && *in.QueueUrl == sqstest.URL("a") {
				return denied
			}
			return nil
		})
		time.Sleep(25 * time.Second) // a receive that was asked for before is answered
		send(c, "a", "", "1")
		send(c, "b", "", "1")
		time.Sleep(time.Minute)
		mu.Lock()
		if worked["a"] != 0 || worked["b"] != 1 {
			t.Errorf("worked %v: want that b goes on", worked)
		}
		mu.Unlock()
		if err := troubleOf(g, "a"); !errors.Is(err, denied) {
			t.Errorf("status of a: %v", err)
		}
		if err := troubleOf(g, "b"); err != nil {
			t.Errorf("status of b: %v", err)
		}
		c.Intercept(nil)
		c.empty(15*time.Minute, "a")
		c.Remove("a")
		time.Sleep(2 * time.Minute)
		if err := troubleOf(g, "a"); err == nil {
			t.Error("status of a queue that is gone: no error")
		}
		c.Create("a", nil)
		send(c, "a", "", "2")
		c.empty(5*time.Minute, "a")
	})
}

func troubleOf(g *group.Group, resource string) error {
	for _, r := range g.Status().Resources {
		if r.Name == resource {
			return r.Err
		}
	}
	return fmt.Errorf("%s is not held", resource)
}

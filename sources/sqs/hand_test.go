package sqs

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/group"
	"github.com/rebalancer-go/rebalancer/sources"
)

// TestInHand: of a queue with deep message groups no more than ten for each handler are in hand, all handlers work, and no group is worked twice at
// a time; of a standard queue one for each handler, and what is being deleted.
func TestInHand(t *testing.T) {
	const handlers = 8
	for suffix, most := range map[string]int{fifoSuffix: 10 * handlers, "": 2 * handlers} {
		t.Run(suffix, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := crewOf(t, "q"+suffix)
				for i := range 20 * 30 {
					send(c, "q"+suffix, fmt.Sprint(i%20), fmt.Sprint(i))
				}
				var mu sync.Mutex
				atOnce, peak := map[string]int{}, 0
				working, busiest := 0, 0
				_, stop := c.run("a", func(g *group.Config, s *Config) { g.Concurrency, s.Linger = handlers, -1 }, func(_ context.Context, m *rebalancer.Message) error {
					add := func(n int) {
						mu.Lock()
						defer mu.Unlock()
						if atOnce[m.Key] += n; m.Key != "" && atOnce[m.Key] > 1 {
							t.Errorf("group %s is worked %d times at once", m.Key, atOnce[m.Key])
						}
						working += n
						_, inFlight := c.Counts("q" + suffix)
						peak, busiest = max(peak, inFlight), max(busiest, working)
					}
					add(1)
					defer add(-1)
					time.Sleep(time.Second)
					return nil
				})
				defer stop()
				c.empty(10*time.Minute, "q"+suffix)
				if peak > most || busiest != handlers {
					t.Errorf("%d in hand, want %d at most; %d handlers at work", peak, most, busiest)
				}
			})
		})
	}
}

// TestOutage: when all handlers fail, few messages are received, and none twice.
func TestOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := crewOf(t, "q")
		for i := range 300 {
			send(c, "q", "", fmt.Sprint(i))
		}
		y := newTally()
		begun := time.Now()
		_, stop := c.run("a", func(g *group.Config, _ *Config) { g.Concurrency = 4 }, func(_ context.Context, m *rebalancer.Message) error {
			if time.Since(begun) < time.Hour {
				return errors.New("the database is down")
			}
			y.note(m)
			return nil
		})
		defer stop()
		time.Sleep(30 * time.Minute)
		if waiting, inFlight := c.Counts("q"); inFlight > 36 || waiting+inFlight != 300 {
			t.Errorf("%d are in hand, %d wait", inFlight, waiting)
		}
		c.empty(2*time.Hour, "q")
		y.once(t, 300)
	})
}

// TestRetryDelay: never at once, whatever was asked for, and never beyond the 12 hours.
func TestRetryDelay(t *testing.T) {
	onStage(t, "", nil, func(t *testing.T, s *stage) {
		for _, d := range []time.Duration{-time.Hour, -4 * time.Second, 0, time.Millisecond, time.Minute, 24 * time.Hour} {
			for range 100 {
				got := retryDelay(job{entry: &entry{since: time.Now()}, s: &sources.Settlement{Outcome: sources.Retry, Delay: d}})
				if got < time.Second || got < min(d, 11*time.Hour) || got >= mostHeld || got > max(d, 0)*5/4+2*time.Second {
					t.Fatalf("%v becomes %v", d, got)
				}
			}
		}
	})
}

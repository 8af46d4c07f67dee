package file

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/backends/faultstore"
	"github.com/rebalancer-go/rebalancer/backends/memory"
	"github.com/rebalancer-go/rebalancer/group"
	"github.com/rebalancer-go/rebalancer/sources/pickup"
)

// TestKeepInAGroup: two nodes, one of which loses its session again and again, over a store whose commits fail, get lost and
// lose their answers. Every file is worked; a file is worked again only if the batch that it was in had no answer.
func TestKeepInAGroup(t *testing.T) {
	t.Parallel()
	for _, faults := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			top := root(t)
			cfg := quick(top)
			cfg.OnSuccess, cfg.StableFor, cfg.Interval, cfg.IdleInterval = pickup.Keep(), -1, time.Second, 10*time.Second
			source := newSource(t, cfg)
			inner := memory.New()
			store := faultstore.New(inner, nil)
			var mu sync.Mutex
			worked := map[string]int{}
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 2)
			for _, node := range []string{"a", "b"} {
				g, err := group.New(group.Config{
					Name: "g", Node: node, Store: store, Source: source, Resources: group.Static("in"),
					Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
				})
				if err != nil {
					t.Fatal(err)
				}
				go func() {
					ended <- g.Consume(ctx, func(_ context.Context, m *rebalancer.Message) error {
						mu.Lock()
						defer mu.Unlock()
						worked[m.Key]++
						return nil
					})
				}()
			}
			if faults {
				store.SetPlan(faultstore.Random(7, faultstore.Match{Kinds: []faultstore.Kind{faultstore.Commit}}, faultstore.Chances{Before: 0.1, After: 0.1, Delay: 0.1, MaxDelay: time.Second}))
			}
			const rounds, each = 12, 25
			for i := range rounds {
				for j := range each {
					write(t, filepath.Join(top, "in", fmt.Sprintf("%03d-%03d", i, j)), "x")
				}
				if !faults { // nothing is under way when the node loses its session, so that nothing need come again
					for {
						time.Sleep(5 * time.Second)
						mu.Lock()
						n := len(worked)
						mu.Unlock()
						if n == (i+1)*each {
							break
						}
					}
				}
				time.Sleep(10 * time.Second)
				inner.Expire([]string{"a", "b"}[i%2])
				time.Sleep(time.Minute)
			}
			store.SetPlan(nil)
			time.Sleep(5 * time.Minute)
			mu.Lock()
			again := 0
			for i := range rounds {
				for j := range each {
					n := worked[fmt.Sprintf("%03d-%03d", i, j)]
					if n == 0 {
						t.Errorf("file %d of round %d was not worked", j, i)
					}
					again += max(0, n-1)
				}
			}
			before := len(worked)
			mu.Unlock()
			if !faults && again > 0 || again > rounds*each/3 {
				t.Errorf("faults %v: %d of %d files were worked again", faults, again, rounds*each)
			}
			time.Sleep(10 * time.Minute)
			mu.Lock()
			total := 0
			for _, n := range worked {
				total += n
			}
			mu.Unlock()
			if total != before+again {
				t.Errorf("%d files were worked again while nothing came", total-before-again)
			}
			cancel()
			for range 2 {
				<-ended
			}
		})
	}
}

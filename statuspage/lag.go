package statuspage

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/rebalancer-go/rebalancer/sources"
)

// lagAtOnce is how many resources a source is asked for at a time.
const lagAtOnce = 8

// LagOf makes Config.Lag of a source that can tell it. Resources that it fails for, or does not answer for in time, are left out; it fails
// when it fails for all. The groups must all be of that source.
func LagOf(source sources.Lagger) func(ctx context.Context, group string, resources []string) (map[string]int64, error) {
	return func(ctx context.Context, _ string, resources []string) (map[string]int64, error) {
		var mu sync.Mutex
		var failed error
		lag := map[string]int64{}
		next := make(chan string)
		var asking sync.WaitGroup
		for range min(lagAtOnce, len(resources)) {
			asking.Go(func() {
				for r := range next {
					n, err := source.Lag(ctx, r)
					mu.Lock()
					if err == nil {
						lag[r] = n
					} else if failed == nil {
						failed = fmt.Errorf("lag of %q: %w", r, err)
					}
					mu.Unlock()
				}
			})
		}
		for _, r := range resources {
			select {
			case next <- r:
				continue
			case <-ctx.Done():
			}
			break
		}
		close(next)
		asking.Wait()
		if len(lag) == 0 && len(resources) > 0 {
			return nil, errors.Join(failed, ctx.Err())
		}
		return lag, nil
	}
}

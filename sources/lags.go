package sources

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// lagAtOnce is how many resources a source is asked for at a time.
const lagAtOnce = 8

// Lags asks a source how many messages wait in each of these resources, eight at a time. Those that it fails for, or does not answer for before ctx ends, are
// left out; it fails when it fails for all.
func Lags(ctx context.Context, source Lagger, resources []string) (map[string]int64, error) {
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

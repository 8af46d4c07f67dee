package statuspage

import (
	"context"

	"github.com/rebalancer-go/rebalancer/sources"
)

// LagOf makes Config.Lag of a source that can tell it, as sources.Lags does. The groups must all be of that source.
func LagOf(source sources.Lagger) func(ctx context.Context, group string, resources []string) (map[string]int64, error) {
	return func(ctx context.Context, _ string, resources []string) (map[string]int64, error) {
		return sources.Lags(ctx, source, resources)
	}
}

package measure

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer"
	stores "github.com/rebalancer-go/rebalancer/backends/memory"
	"github.com/rebalancer-go/rebalancer/group"
	"github.com/rebalancer-go/rebalancer/sources/memory"
)

// BenchmarkManyResources starts one node with so many resources in the runtime, and stops it.
func BenchmarkManyResources(b *testing.B) {
	for _, n := range []int{1000, 10000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var up, down time.Duration
			for b.Loop() {
				u, d := upAndDown(b, n)
				up, down = up+u, down+d
			}
			b.ReportMetric(float64(up.Microseconds())/float64(b.N)/float64(n), "µs-start/resource")
			b.ReportMetric(float64(down.Microseconds())/float64(b.N)/float64(n), "µs-stop/resource")
		})
	}
}

func upAndDown(b *testing.B, n int) (up, down time.Duration) {
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("r%06d", i))
	}
	started := make(chan struct{}, n)
	g, err := group.New(group.Config{
		Name: "many", Node: "a", Store: stores.New(), Source: memory.New(), Resources: group.Static(names...),
		Logger:  slog.New(slog.NewTextHandler(io.Discard, nil)),
		OnClaim: func(context.Context, *rebalancer.Claim) error { started <- struct{}{}; return nil },
	})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	done := make(chan error, 1)
	began := time.Now()
	go func() { done <- g.Consume(ctx, func(context.Context, *rebalancer.Message) error { return nil }) }()
	for range n {
		<-started
	}
	up = time.Since(began)
	began = time.Now()
	cancel()
	if err := <-done; err != nil {
		b.Fatal(err)
	}
	return up, time.Since(began)
}

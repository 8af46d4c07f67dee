// Command names shares resources that are only names: the shards of some periodic work, one per tenant here. Each name is worked by one process at a
// time; start it in several terminals and end one, however you like.
//
//	go run ./examples/names
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/backends/sqlite"
	"github.com/rebalancer-go/rebalancer/group"
)

func main() {
	log.SetFlags(log.Ltime)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, filepath.Join(os.TempDir(), "names"), 2*time.Second); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, dir string, every time.Duration) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	store, err := sqlite.Open(filepath.Join(dir, "group.db")) // for several machines: postgres.Open, redis.Open, …
	if err != nil {
		return err
	}
	defer store.Close()
	tenants := make([]string, 6)
	for i := range tenants {
		tenants[i] = fmt.Sprintf("tenant-%d", i+1)
	}
	g, err := group.New(group.Config{
		Name:      "invoices",
		Store:     store,
		Resources: group.Static(tenants...),
		TTL:       5 * time.Second,
	})
	if err != nil {
		return err
	}
	// The function runs once for each name that this process holds, until its context ends. When it returns early, it is started again.
	return g.Run(ctx, func(ctx context.Context, c *rebalancer.Claim) error {
		log.Printf("%s is ours, fence %d", c.Resource, c.Fence)
		defer log.Printf("%s is given back", c.Resource)
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(every):
				log.Printf("%s: invoices are written", c.Resource)
			}
		}
	})
}

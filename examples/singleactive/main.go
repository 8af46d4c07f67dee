// Command singleactive is an active-backup service: of all processes that share the file, one works; when it ends, however
// that happens, another takes its place. Start it in two terminals and stop the active one: with Ctrl-C the other follows at once,
// with kill -9 when the session has ended, about 5 s later.
//
//	go run ./examples/singleactive
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
	if err := run(ctx); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	dir := filepath.Join(os.TempDir(), "singleactive")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	store, err := sqlite.Open(filepath.Join(dir, "group.db"))
	if err != nil {
		return err
	}
	defer store.Close()
	g, err := group.New(group.Config{
		Name:      "singleactive",
		Store:     store,
		Resources: group.Static("active"), // one name, so one node holds it
		TTL:       5 * time.Second,
	})
	if err != nil {
		return err
	}
	return g.Run(ctx, work)
}

// work runs on the active node until ctx ends.
func work(ctx context.Context, c *rebalancer.Claim) error {
	fmt.Printf("%s is active, fence %d\n", c.Node, c.Fence)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			fmt.Printf("%s works\n", c.Node)
		case <-ctx.Done():
			fmt.Printf("%s stops: %v\n", c.Node, context.Cause(ctx))
			return nil
		}
	}
}

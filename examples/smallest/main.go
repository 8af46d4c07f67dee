package main

import (
	"context"
	"log"
	"os/signal"
	"syscall"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/backends/sqlite"
	"github.com/rebalancer-go/rebalancer/group"
	"github.com/rebalancer-go/rebalancer/sources/file"
	"github.com/rebalancer-go/rebalancer/sources/pickup"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()

	store, err := sqlite.Open("state/group.db")
	check(err)
	source, err := file.New(file.Config{Root: "in", Policy: pickup.Policy{OnSuccess: pickup.MoveTo("done")}})
	check(err)
	g, err := group.New(group.Config{
		Name:      "orders",
		Store:     store,
		Source:    source,
		Resources: group.Static("eu", "us", "asia"), // the directories in/eu, in/us, in/asia
	})
	check(err)
	check(g.Consume(ctx, func(ctx context.Context, m *rebalancer.Message) error {
		log.Printf("%s: %s, fence %d", m.Resource, m.Key, m.Fence)
		return nil // settled: the file moves to done; an error is retried
	}))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

package main

import (
	"context"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/backends/redis"
	"github.com/rebalancer-go/rebalancer/group"
	"github.com/rebalancer-go/rebalancer/sources/rabbitmq"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()

	store, err := redis.Open(os.Getenv("REDIS_URL")) // redis://host:6379/0
	check(err)
	source, err := rabbitmq.New(rabbitmq.Config{URLs: []string{os.Getenv("AMQP_URL")}}) // amqp://user:password@host/vhost
	check(err)
	g, err := group.New(group.Config{
		Name:      "orders",
		Store:     store,
		Source:    source,
		Resources: group.Static("orders.0", "orders.1", "orders.2", "orders.3"), // queues
	})
	check(err)
	check(g.Consume(ctx, func(ctx context.Context, m *rebalancer.Message) error {
		log.Printf("%s: %s, fence %d", m.Resource, m.Body, m.Fence)
		return nil // acknowledged; an error is retried, and those behind it wait
	}))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

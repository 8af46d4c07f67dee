// Command sqsfifo works FIFO queues of Amazon SQS, with Redis for the group's metadata: messages of one message group in order, up to eight groups of a
// queue at once. What cannot be worked goes to the queue's dead-letter queue, whose name ends in -dead.
//
//	REDIS_URL=redis://localhost:6379/0 go run ./examples/sqsfifo orders-eu.fifo orders-us.fifo
//
// Region, credentials and endpoint are those of the environment of every program of AWS. Start it as often as you like.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/aws/aws-sdk-go-v2/config"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/backends/redis"
	"github.com/rebalancer-go/rebalancer/group"
	"github.com/rebalancer-go/rebalancer/sources/sqs"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Getenv("REDIS_URL"), os.Args[1:], log.Printf); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, redisURL string, queues []string, say func(format string, args ...any)) error {
	if redisURL == "" || len(queues) == 0 {
		return errors.New("usage: REDIS_URL=redis://host:6379/0 sqsfifo QUEUE.fifo…")
	}
	store, err := redis.Open(redisURL)
	if err != nil {
		return err
	}
	defer store.Close()
	shared, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return err
	}
	source, err := sqs.New(sqs.Config{Client: awssqs.NewFromConfig(shared), Region: shared.Region, DeadLetter: "*-dead"})
	if err != nil {
		return err
	}
	defer source.Close()
	g, err := group.New(group.Config{
		Name:        "orders",
		Store:       store,
		Source:      source,
		Resources:   group.Static(queues...),
		Concurrency: 8, // message groups at once; each of them in order
	})
	if err != nil {
		return err
	}
	return g.Consume(ctx, func(_ context.Context, m *rebalancer.Message) error {
		if !json.Valid(m.Body) {
			return rebalancer.Permanent(errors.New("an order is no JSON")) // to the dead-letter queue, at once
		}
		say("%s: message group %s, attempt %d: %s", m.Resource, m.Key, m.Attempt, m.Body)
		return nil // deleted; an error is retried, and those of its message group wait
	})
}

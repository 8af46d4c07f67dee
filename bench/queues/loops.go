package queues

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/ThreeDotsLabs/watermill"
	wmamqp "github.com/ThreeDotsLabs/watermill-amqp/v3/pkg/amqp"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/backends/memory"
	"github.com/rebalancer-go/rebalancer/group"
	"github.com/rebalancer-go/rebalancer/sources/rabbitmq"
)

// Work is what a loop is to do: call Handle for each message of the queues, at most Prefetch of each in hand.
type Work struct {
	URL      string
	Quorum   bool
	Queues   []string
	Prefetch int
	Handle   func()
}

// Loop consumes until ctx ends, and returns when all that was handled is acknowledged.
type Loop func(ctx context.Context, w Work) error

// Raw is a loop as one writes it who knows the protocol: a channel per queue on one connection, one acknowledgement for half of
// the prefetch, or for what there is when nothing came for 5 ms.
func Raw(ctx context.Context, w Work) error {
	conn, err := amqp.Dial(w.URL)
	if err != nil {
		return err
	}
	defer conn.Close()
	var all sync.WaitGroup
	errs := make(chan error, len(w.Queues))
	for _, q := range w.Queues {
		all.Add(1)
		go func() {
			defer all.Done()
			errs <- rawQueue(ctx, conn, q, w)
		}()
	}
	all.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func rawQueue(ctx context.Context, conn *amqp.Connection, queue string, w Work) error {
	ch, err := conn.Channel()
	if err != nil {
		return err
	}
	defer ch.Close()
	if err := ch.Qos(w.Prefetch, 0, false); err != nil {
		return err
	}
	deliveries, err := ch.Consume(queue, "", false, false, false, false, nil)
	if err != nil {
		return err
	}
	var last uint64
	unacked := 0
	flush := func() error {
		if unacked == 0 {
			return nil
		}
		unacked = 0
		return ch.Ack(last, true)
	}
	idle := time.NewTicker(5 * time.Millisecond)
	defer idle.Stop()
	for {
		select {
		case d, ok := <-deliveries:
			if !ok {
				return fmt.Errorf("the consumer of %s was cancelled", queue)
			}
			w.Handle()
			last = d.DeliveryTag
			if unacked++; unacked >= max(1, w.Prefetch/2) {
				if err := flush(); err != nil {
					return err
				}
			}
		case <-idle.C:
			if err := flush(); err != nil {
				return err
			}
		case <-ctx.Done():
			return flush()
		}
	}
}

// Watermill is watermill-amqp at the prefetch of w.
func Watermill(ctx context.Context, w Work) error { return watermillAt(ctx, w, w.Prefetch) }

// WatermillAsShipped is watermill-amqp with the settings that its constructor gives.
func WatermillAsShipped(ctx context.Context, w Work) error { return watermillAt(ctx, w, 0) }

func watermillAt(ctx context.Context, w Work, prefetch int) error {
	cfg := wmamqp.NewDurableQueueConfig(w.URL)
	if prefetch > 0 {
		cfg.Consume.Qos.PrefetchCount = prefetch
	}
	if w.Quorum {
		cfg.Queue.Arguments = amqp.Table{"x-queue-type": "quorum"}
	}
	sub, err := wmamqp.NewSubscriber(cfg, watermill.NopLogger{})
	if err != nil {
		return err
	}
	var all sync.WaitGroup
	for _, q := range w.Queues {
		messages, err := sub.Subscribe(ctx, q)
		if err != nil {
			return err
		}
		all.Add(1)
		go func() {
			defer all.Done()
			for m := range messages {
				w.Handle()
				m.Ack()
			}
		}()
	}
	<-ctx.Done()
	err = sub.Close()
	all.Wait()
	return err
}

// Ours is group.Consume with one node, which has all queues.
func Ours(ctx context.Context, w Work) error { return oursAt(ctx, w, w.Prefetch) }

// OursAsShipped is Ours with no settings of the source.
func OursAsShipped(ctx context.Context, w Work) error { return oursAt(ctx, w, 0) }

func oursAt(ctx context.Context, w Work, prefetch int) error {
	source, err := rabbitmq.New(rabbitmq.Config{URLs: []string{w.URL}, Prefetch: prefetch})
	if err != nil {
		return err
	}
	defer source.Close()
	store := memory.New()
	defer store.Close()
	g, err := group.New(group.Config{Name: "bench", Store: store, Source: source, Resources: group.Static(w.Queues...),
		Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	return g.Consume(ctx, func(context.Context, *rebalancer.Message) error {
		w.Handle()
		return nil
	})
}

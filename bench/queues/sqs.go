package queues

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/backends/memory"
	"github.com/rebalancer-go/rebalancer/group"
	"github.com/rebalancer-go/rebalancer/sources/sqs"
)

// SQSClient is what the loops need.
type SQSClient interface {
	sqs.Client
	DeleteMessage(context.Context, *awssqs.DeleteMessageInput, ...func(*awssqs.Options)) (*awssqs.DeleteMessageOutput, error)
}

// SQSOurs is a group with as many handlers per queue as Prefetch says.
func SQSOurs(c SQSClient) Loop {
	return func(ctx context.Context, w Work) error {
		src, err := sqs.New(sqs.Config{Client: c, Wait: time.Second})
		if err != nil {
			return err
		}
		g, err := group.New(group.Config{
			Name: "bench", Node: "a", Store: memory.New(), Source: src, Resources: group.Static(w.Queues...), Concurrency: w.Prefetch,
			Logger: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			return err
		}
		return errors.Join(g.Consume(ctx, func(context.Context, *rebalancer.Message) error { w.Handle(); return nil }), src.Close())
	}
}

// SQSRaw is a loop as one writes it who knows SQS: for each ten messages of Prefetch one goroutine per queue that receives ten, handles them and deletes
// them in one call.
func SQSRaw(c SQSClient) Loop {
	return func(ctx context.Context, w Work) error {
		return sqsLoops(ctx, c, w, w.Prefetch/10, func(url *string) error {
			out, err := c.ReceiveMessage(ctx, &awssqs.ReceiveMessageInput{QueueUrl: url, MaxNumberOfMessages: 10, WaitTimeSeconds: 1})
			if err != nil || len(out.Messages) == 0 {
				return err
			}
			in := &awssqs.DeleteMessageBatchInput{QueueUrl: url}
			for i, m := range out.Messages {
				w.Handle()
				in.Entries = append(in.Entries, types.DeleteMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), ReceiptHandle: m.ReceiptHandle})
			}
			_, err = c.DeleteMessageBatch(context.WithoutCancel(ctx), in)
			return err
		})
	}
}

// SQSSimple is the loop of the documentation: one message at a time, each deleted by itself.
func SQSSimple(c SQSClient) Loop {
	return func(ctx context.Context, w Work) error {
		return sqsLoops(ctx, c, w, 1, func(url *string) error {
			out, err := c.ReceiveMessage(ctx, &awssqs.ReceiveMessageInput{QueueUrl: url, MaxNumberOfMessages: 1, WaitTimeSeconds: 1})
			if err != nil || len(out.Messages) == 0 {
				return err
			}
			w.Handle()
			_, err = c.DeleteMessage(context.WithoutCancel(ctx), &awssqs.DeleteMessageInput{QueueUrl: url, ReceiptHandle: out.Messages[0].ReceiptHandle})
			return err
		})
	}
}

// sqsLoops repeats one in so many goroutines for each queue until ctx ends.
func sqsLoops(ctx context.Context, c SQSClient, w Work, each int, one func(url *string) error) error {
	var wg sync.WaitGroup
	errs := make([]error, len(w.Queues)*each)
	for i, q := range w.Queues {
		out, err := c.GetQueueUrl(ctx, &awssqs.GetQueueUrlInput{QueueName: &q})
		if err != nil {
			return err
		}
		for k := range each {
			wg.Go(func() {
				for ctx.Err() == nil {
					if err := one(out.QueueUrl); err != nil && ctx.Err() == nil {
						errs[i*each+k] = err
						return
					}
				}
			})
		}
	}
	wg.Wait()
	return errors.Join(errs...)
}

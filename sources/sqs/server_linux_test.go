package sqs

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/rebalancer-go/rebalancer/internal/testserver"
	"github.com/rebalancer-go/rebalancer/sources/sourcetest"
)

// TestSuiteOnAServer runs the contract over the SDK's client, for standard queues: the server's FIFO queues give one message of a group
// at a time, which the suite does not mind either.
func TestSuiteOnAServer(t *testing.T) {
	t.Parallel()
	server := testserver.StartFauxQS(t)
	client := dial(t, server.Endpoint())
	for _, suffix := range []string{"", fifoSuffix} {
		for what, dead := range map[string]string{"dead-letter queue": "*-failed", "none": ""} {
			t.Run(what+suffix, func(t *testing.T) {
				t.Parallel()
				sourcetest.Run(t, sourcetest.Harness{Quiet: 300 * time.Millisecond, New: func(tb testing.TB) *sourcetest.Fixture {
					cfg := quick(client)
					cfg.Account, cfg.Region, cfg.DeadLetter = "000000000000", "us-east-1", dead
					return serverFixture(tb, newSource(tb, cfg), client, suffix)
				}})
			})
		}
	}
}

// dial makes a client of the SDK.
func dial(tb testing.TB, endpoint string) *sqs.Client {
	tb.Helper()
	return sqs.New(sqs.Options{
		Region: "us-east-1", BaseEndpoint: &endpoint,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "test", SecretAccessKey: "test"}, nil
		}),
	})
}

var fixtures atomic.Int64

func serverFixture(tb testing.TB, s *Source, c *sqs.Client, suffix string) *sourcetest.Fixture {
	tb.Helper()
	f := fixtureOf(s, place{"000000000000", "us-east-1"}, fmt.Sprintf("f%d-", fixtures.Add(1)), suffix)
	urls := map[string]string{}
	for _, name := range f.Resources {
		for _, name := range []string{name, failedOf(name)} {
			urls[name] = create(tb, c, name, nil)
		}
	}
	f.Send = func(resource, key string, body []byte) error {
		in := &sqs.SendMessageInput{QueueUrl: aws.String(urls[resource]), MessageBody: aws.String(string(body))}
		if suffix != "" {
			in.MessageGroupId, in.MessageDeduplicationId = &key, &key
		}
		_, err := c.SendMessage(context.Background(), in)
		return err
	}
	f.ReordersOnClose = true // it puts what comes back behind the rest
	f.Left = func(resource string) int { return total(tb, c, urls[resource]) }
	f.Rejected = func(resource string) []string { return bodies(tb, c, urls[failedOf(resource)]) }
	f.Remove = func(resource string) error {
		_, err := c.DeleteQueue(context.Background(), &sqs.DeleteQueueInput{QueueUrl: aws.String(urls[resource])})
		return err
	}
	return f
}

func failedOf(name string) string {
	plain, fifo := strings.CutSuffix(name, fifoSuffix)
	if fifo {
		return plain + "-failed" + fifoSuffix
	}
	return plain + "-failed"
}

// create makes a queue and returns its URL.
func create(tb testing.TB, c *sqs.Client, name string, attributes map[string]string) string {
	tb.Helper()
	if attributes == nil {
		attributes = map[string]string{}
	}
	if isFIFO(name) {
		attributes["FifoQueue"] = "true"
	}
	out, err := c.CreateQueue(context.Background(), &sqs.CreateQueueInput{QueueName: &name, Attributes: attributes})
	if err != nil {
		tb.Fatal(err)
	}
	return *out.QueueUrl
}

// total is how many messages a queue has, in flight or not.
func total(tb testing.TB, c *sqs.Client, url string) int {
	tb.Helper()
	out, err := c.GetQueueAttributes(context.Background(), &sqs.GetQueueAttributesInput{QueueUrl: &url, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameAll}})
	if err != nil {
		tb.Fatal(err)
	}
	n := 0
	for _, a := range []string{"ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"} {
		k, err := strconv.Atoi(out.Attributes[a])
		if err != nil {
			tb.Fatalf("%s: %v", a, err)
		}
		n += k
	}
	return n
}

// bodies receives what a queue has, and leaves it visible.
func bodies(tb testing.TB, c *sqs.Client, url string) []string {
	tb.Helper()
	out, err := c.ReceiveMessage(context.Background(), &sqs.ReceiveMessageInput{QueueUrl: &url, MaxNumberOfMessages: 10})
	if err != nil {
		tb.Fatal(err)
	}
	var all []string
	for _, m := range out.Messages {
		all = append(all, *m.Body)
		if _, err := c.ChangeMessageVisibility(context.Background(), &sqs.ChangeMessageVisibilityInput{QueueUrl: &url, ReceiptHandle: m.ReceiptHandle}); err != nil {
			tb.Fatal(err)
		}
	}
	return all
}

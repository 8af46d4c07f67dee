//go:build linux

package main

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/rebalancer-go/rebalancer/admin"
	"github.com/rebalancer-go/rebalancer/backends/redis"
	"github.com/rebalancer-go/rebalancer/group"
	"github.com/rebalancer-go/rebalancer/internal/testserver"
)

// TestRuns: messages of a message group are worked in order, and one that cannot be worked goes to the dead-letter queue.
func TestRuns(t *testing.T) {
	server, keys := testserver.StartFauxQS(t), testserver.StartRedis(t, testserver.Redis)
	for k, v := range map[string]string{
		"AWS_ENDPOINT_URL_SQS": server.Endpoint(), "AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "key", "AWS_PROFILE": "",
	} {
		t.Setenv(k, v)
	}
	redisURL := "redis://" + keys.Addr()
	store, err := redis.Open(redisURL)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if _, err := admin.Create(t.Context(), store, "orders", admin.Settings{TTL: group.DefaultTTL}); err != nil { // or the first start waits for a ttl
		t.Fatal(err)
	}
	shared, err := config.LoadDefaultConfig(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	client := awssqs.NewFromConfig(shared)
	url := map[string]*string{}
	for _, name := range []string{"orders.fifo", "orders-dead.fifo"} {
		out, err := client.CreateQueue(t.Context(), &awssqs.CreateQueueInput{QueueName: &name, Attributes: map[string]string{"FifoQueue": "true"}})
		if err != nil {
			t.Fatal(err)
		}
		url[name] = out.QueueUrl
	}
	for i, body := range []string{"1", "2", "{", "3"} {
		if _, err := client.SendMessage(t.Context(), &awssqs.SendMessageInput{QueueUrl: url["orders.fifo"], MessageBody: &body, MessageGroupId: aws.String("customer"),
			MessageDeduplicationId: aws.String(fmt.Sprint(i))}); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var worked []string
	err = run(ctx, redisURL, []string{"orders.fifo"}, func(format string, args ...any) {
		line := fmt.Sprintf(format, args...)
		if worked = append(worked, line[strings.LastIndex(line, " ")+1:]); len(worked) == 3 {
			cancel()
		}
	})
	if err != nil || strings.Join(worked, " ") != "1 2 3" {
		t.Errorf("%v: worked %q", err, worked)
	}
	dead, err := client.ReceiveMessage(t.Context(), &awssqs.ReceiveMessageInput{QueueUrl: url["orders-dead.fifo"], WaitTimeSeconds: 5})
	if err != nil || len(dead.Messages) != 1 || *dead.Messages[0].Body != "{" {
		t.Errorf("dead letters %v, %v", dead, err)
	}
}

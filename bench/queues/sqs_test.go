//go:build linux

package queues

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/rebalancer-go/rebalancer/internal/testserver"
	"github.com/rebalancer-go/rebalancer/sources/sqs/sqstest"
)

// latency is what a call takes beyond what the server needs.
const latency = 5 * time.Millisecond

var sqsRivals = []struct {
	name string
	loop func(SQSClient) Loop
	part int
}{{"ours", SQSOurs, 1}, {"raw", SQSRaw, 1}, {"simple", SQSSimple, 50}}

// BenchmarkSQS: each iteration is a round of every loop, in turns. -benchtime=5x gives the figures of the README. 256 B, sent before, 5 ms added to
// each call. "small" is the SQS in memory of package sqstest without a network, so that the loops are what is measured; "fauxqs" is the SDK's client and a
// server, whose own speed is the limit.
func BenchmarkSQS(b *testing.B) {
	for _, size := range []struct{ queues, prefetch int }{{1, 10}, {1, 100}, {8, 20}} {
		queues, prefetch := size.queues, size.prefetch
		b.Run(fmt.Sprintf("small/%d-queues/%d-handlers", queues, prefetch), func(b *testing.B) {
			server := sqstest.New()
			server.SetLatency(latency)
			var names []string
			for i := range queues {
				names = append(names, fmt.Sprintf("q%d", i))
				server.Create(names[i], nil)
			}
			compareSQS(b, server, Work{Queues: names, Prefetch: prefetch}, 1_000*queues*max(1, prefetch/10), 0, func(queue, body string) {
				if _, err := server.Send(queue, "", body); err != nil {
					b.Error(err)
				}
			})
		})
	}
	b.Run("fauxqs/1-queues/100-handlers", func(b *testing.B) {
		server := testserver.StartFauxQS(b)
		link := testserver.Proxy(b, fmt.Sprintf("localhost:%d", server.Port))
		link.Latency(latency)
		direct := sqsClient(server.Endpoint())
		if _, err := direct.CreateQueue(b.Context(), &awssqs.CreateQueueInput{QueueName: aws.String("q")}); err != nil {
			b.Fatal(err)
		}
		url := aws.String(server.Endpoint() + "/000000000000/q")
		compareSQS(b, sqsClient("http://"+link.Addr()), Work{Queues: []string{"q"}, Prefetch: 100}, 5_000, server.Pid(), func(_, body string) {
			in := &awssqs.SendMessageBatchInput{QueueUrl: url}
			for i := range 10 {
				in.Entries = append(in.Entries, types.SendMessageBatchRequestEntry{Id: aws.String(fmt.Sprint(i)), MessageBody: &body})
			}
			if _, err := direct.SendMessageBatch(b.Context(), in); err != nil {
				b.Fatal(err)
			}
		})
	})
}

func sqsClient(endpoint string) *awssqs.Client {
	many := awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) { t.MaxIdleConnsPerHost = 100 })
	return awssqs.New(awssqs.Options{Region: "us-east-1", BaseEndpoint: &endpoint, HTTPClient: many, Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{AccessKeyID: "id", SecretAccessKey: "key"}, nil
	})})
}

func compareSQS(b *testing.B, c SQSClient, w Work, n, group int, send func(queue, body string)) {
	results := make([][]Result, len(sqsRivals))
	body := strings.Repeat("x", 256)
	each := 1
	if group > 0 {
		each = 10 // that one sends ten at once
	}
	turn := 0
	for b.Loop() {
		for i := range sqsRivals {
			i = (i + turn) % len(sqsRivals)
			n := n / sqsRivals[i].part
			for k := range n / each {
				send(w.Queues[k%len(w.Queues)], body)
			}
			r, err := Round(b.Context(), sqsRivals[i].loop(c), w, n, group)
			if err != nil {
				b.Fatalf("%s: %v", sqsRivals[i].name, err)
			}
			results[i] = append(results[i], r)
		}
		turn++
	}
	b.ReportMetric(0, "ns/op")
	for i, rs := range results {
		name := sqsRivals[i].name
		b.ReportMetric(Median(rs, func(r Result) float64 { return r.PerSecond }), name+"-msg/s")
		b.ReportMetric(Median(rs, func(r Result) float64 { return float64(r.Client.Nanoseconds()) / 1e3 }), name+"-client-µs/msg")
		if i > 0 {
			ratios := make([]Result, len(rs))
			for k := range rs {
				ratios[k].PerSecond = results[0][k].PerSecond / rs[k].PerSecond
			}
			b.ReportMetric(Median(ratios, func(r Result) float64 { return r.PerSecond }), "ours/"+name)
		}
	}
}

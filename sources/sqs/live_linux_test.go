package sqs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/internal/testserver"
	"github.com/rebalancer-go/rebalancer/sources"
	"github.com/rebalancer-go/rebalancer/sources/sqs/sqspayload"
	"github.com/rebalancer-go/rebalancer/sources/sqs/sqstest"
)

// TestRulesOnAServer plays those that the server has.
func TestRulesOnAServer(t *testing.T) {
	t.Parallel()
	c := dial(t, testserver.StartFauxQS(t).Endpoint())
	for i, r := range rules() {
		if !r.server {
			continue
		}
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			r.play(&play{c, t, func(name string, a map[string]string) string {
				return create(t, c, fmt.Sprintf("rule%d-%s", i, name), a)
			}})
		})
	}
}

// TestOnTheWire: what the client of the SDK makes of zeros: it leaves out a visibility of 0 from a receive, which would mean the queue's own, so that
// a source must set one; and it sends one of 0 in a batch, which gives back.
func TestOnTheWire(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	sent := map[string]map[string]any{}
	small := sqstest.New()
	small.Create("q", nil)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body strings.Builder
		r.Body = http.MaxBytesReader(w, r.Body, 1<<20)
		var in map[string]any
		dec := json.NewDecoder(r.Body)
		if err := dec.Decode(&in); err != nil {
			t.Error(err)
		}
		b, _ := json.Marshal(in)
		body.Write(b)
		_, call, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
		mu.Lock()
		sent[call] = in
		mu.Unlock()
		again, _ := http.NewRequestWithContext(r.Context(), r.Method, "/", strings.NewReader(body.String()))
		again.Header = r.Header
		small.Handler().ServeHTTP(w, again)
	}))
	t.Cleanup(front.Close)
	c := dial(t, front.URL)
	url := aws.String(sqstest.URL("q"))
	send(small, "q", "", "1")
	out, err := c.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: url, VisibilityTimeout: 0})
	if err != nil || len(out.Messages) != 1 {
		t.Fatalf("%+v, %v", out, err)
	}
	_, err = c.ChangeMessageVisibilityBatch(t.Context(), &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: url, Entries: []types.ChangeMessageVisibilityBatchRequestEntry{{Id: aws.String("0"), ReceiptHandle: out.Messages[0].ReceiptHandle}}})
	if err != nil {
		t.Fatal(err)
	}
	if waiting, _ := small.Counts("q"); waiting != 1 {
		t.Error("visibility 0 in a batch did not give back")
	}
	if v, there := sent["ReceiveMessage"]["VisibilityTimeout"]; there {
		t.Errorf("a receive sends visibility %v: the source need not set one any more", v)
	}
	var missing *types.QueueDoesNotExist
	if _, err := c.GetQueueUrl(t.Context(), &sqs.GetQueueUrlInput{QueueName: aws.String("none")}); !errors.As(err, &missing) || !gone(err) {
		t.Errorf("an unknown queue: %v", err)
	}
}

// liveSource is a queue on a server behind a link, and a reader.
func liveReader(t *testing.T, endpoint, queue string) *reader {
	t.Helper()
	cfg := quick(dial(t, endpoint))
	cfg.Account, cfg.Region, cfg.Visibility = "", "", 6*time.Second
	s := newSource(t, cfg)
	r, err := s.Open(t.Context(), &rebalancer.Claim{Resource: queue, Fence: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = r.Close(ctx) // the server may be gone
	})
	return r.(*reader)
}

// drainLive works messages until n different ones are settled.
func drainLive(t *testing.T, r *reader, n int, each func(i int)) {
	t.Helper()
	seen := map[string]bool{}
	end := time.Now().Add(90 * time.Second)
	for i := 0; len(seen) < n; i++ {
		if time.Now().After(end) {
			t.Fatalf("%d of %d messages came", len(seen), n)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		ms, _ := r.Fetch(ctx, 10) // an error heals, or the time ends
		if each != nil {
			each(i)
		}
		if err := r.Settle(ctx, settlements(sources.Done, ms...)); err == nil {
			for _, m := range ms {
				seen[m.ID] = true
			}
		}
		cancel()
	}
}

// TestCutOff: connections that break in the middle of batches cost nothing but time.
func TestCutOff(t *testing.T) {
	t.Parallel()
	server := testserver.StartFauxQS(t)
	link := testserver.Proxy(t, fmt.Sprintf("localhost:%d", server.Port))
	direct := dial(t, server.Endpoint())
	url := create(t, direct, "cut", nil)
	for i := range 60 {
		if _, err := direct.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &url, MessageBody: aws.String(fmt.Sprint(i))}); err != nil {
			t.Fatal(err)
		}
	}
	r := liveReader(t, "http://"+link.Addr(), "cut")
	var healing sync.WaitGroup
	drainLive(t, r, 60, func(i int) {
		if i%3 == 1 && i < 9 {
			healing.Wait()
			link.Cut()
			healing.Add(1)
			time.AfterFunc(100*time.Millisecond, func() { defer healing.Done(); link.Heal() })
		}
	})
	healing.Wait()
	if n := total(t, direct, url); n != 0 {
		t.Errorf("%d messages left", n)
	}
}

// TestFrozenServer: calls end although nobody answers, the trouble is told, and work goes on when the server does.
func TestFrozenServer(t *testing.T) {
	t.Parallel()
	server := testserver.StartFauxQS(t)
	direct := dial(t, server.Endpoint())
	url := create(t, direct, "frozen", nil)
	r := liveReader(t, server.Endpoint(), "frozen")
	server.Freeze()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	start := time.Now()
	if _, err := r.Fetch(ctx, 10); err == nil || ctx.Err() != nil {
		t.Errorf("Fetch from a frozen server: %v after %v", err, time.Since(start))
	}
	server.Thaw()
	if _, err := direct.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &url, MessageBody: aws.String("1")}); err != nil {
		t.Fatal(err)
	}
	drainLive(t, r, 1, nil)
}

// TestRestartedServer: this one forgets its queues; the resource is gone, and is taken up again when it is there again.
func TestRestartedServer(t *testing.T) {
	t.Parallel()
	server := testserver.StartFauxQS(t)
	direct := dial(t, server.Endpoint())
	create(t, direct, "restarted", nil)
	r := liveReader(t, server.Endpoint(), "restarted")
	server.Kill()
	server.Restart()
	end := time.Now().Add(60 * time.Second)
	var err error
	for !errors.Is(err, sources.ErrGone) {
		if time.Now().After(end) {
			t.Fatalf("Fetch: %v, want ErrGone", err)
		}
		_, err = r.Fetch(t.Context(), 1)
	}
	url := create(t, direct, "restarted", nil)
	if _, err := direct.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &url, MessageBody: aws.String("1")}); err != nil {
		t.Fatal(err)
	}
	drainLive(t, r, 1, nil)
}

// TestPayloadInS3: through the SDK's client, as the extended client library puts it there.
func TestPayloadInS3(t *testing.T) {
	t.Parallel()
	server := testserver.StartFauxQS(t)
	c := dial(t, server.Endpoint())
	objects := s3.New(s3.Options{Region: "us-east-1", BaseEndpoint: aws.String(server.Endpoint()), UsePathStyle: true, Credentials: c.Options().Credentials})
	url := create(t, c, "large", nil)
	if _, err := objects.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: aws.String("bkt")}); err != nil {
		t.Fatal(err)
	}
	large := strings.Repeat("x", 2<<20)
	if _, err := objects.PutObject(t.Context(), &s3.PutObjectInput{Bucket: aws.String("bkt"), Key: aws.String("k"), Body: strings.NewReader(large)}); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"k", "none"} {
		_, err := c.SendMessage(t.Context(), &sqs.SendMessageInput{
			QueueUrl: &url, MessageBody: aws.String(`["software.amazon.payloadoffloading.PayloadS3Pointer",{"s3BucketName":"bkt","s3Key":"` + key + `"}]`),
			MessageAttributes: map[string]types.MessageAttributeValue{sizeAttribute: {DataType: aws.String("Number"), StringValue: aws.String(fmt.Sprint(len(large)))}},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	cfg := quick(c)
	cfg.Account, cfg.Region, cfg.Payloads = "", "", sqspayload.New(objects)
	r, err := newSource(t, cfg).Open(t.Context(), &rebalancer.Claim{Resource: "large", Fence: 1})
	if err != nil {
		t.Fatal(err)
	}
	var ms []*rebalancer.Message
	for len(ms) < 2 {
		more, err := r.Fetch(t.Context(), 2)
		if err != nil {
			t.Fatal(err)
		}
		ms = append(ms, more...)
	}
	whole := 0
	for _, m := range ms {
		if _, err := m.Open(t.Context()); err == nil && read(t, m) == large {
			whole++
		}
	}
	if whole != 1 {
		t.Fatalf("%d of 2 payloads are there, want 1", whole)
	}
	if err := r.Settle(t.Context(), settlements(sources.Done, ms...)); err != nil {
		t.Fatal(err)
	}
	if _, err := objects.HeadObject(t.Context(), &s3.HeadObjectInput{Bucket: aws.String("bkt"), Key: aws.String("k")}); err == nil {
		t.Error("the payload stayed")
	}
	if err := r.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

package sqs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/sources"
	"github.com/rebalancer-go/rebalancer/sources/sqs/sqstest"
)

// bucket is objects in memory.
type bucket struct {
	mu      sync.Mutex
	objects map[string]string
	fails   error // of Open
	opened  int
	open    int
	broken  bool // the next stream fails at its first read
}

func (b *bucket) Open(_ context.Context, name, key string) (io.ReadCloser, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.opened++
	if b.fails != nil {
		return nil, b.fails
	}
	body, ok := b.objects[name+"/"+key]
	if !ok {
		return nil, fs.ErrNotExist
	}
	b.open++
	s := &stream{b: b, Reader: strings.NewReader(body)}
	if b.broken {
		b.broken, s.Reader = false, errReader{errors.New("connection reset")}
	}
	return s, nil
}

type stream struct {
	io.Reader
	b *bucket
}

func (s *stream) Close() error {
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	s.b.open--
	return nil
}

func (b *bucket) Delete(_ context.Context, name, key string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.objects, name+"/"+key)
	return nil
}

// onPayloads runs a test with a message whose payload "large" is in a bucket, in the older or newer spelling.
func onPayloads(t *testing.T, newer bool, change func(*Config), run func(t *testing.T, s *stage, b *bucket)) {
	t.Helper()
	b := &bucket{objects: map[string]string{"bkt/k": "large"}}
	onStage(t, "", func(c *Config) {
		c.Payloads = b
		if change != nil {
			change(c)
		}
	}, func(t *testing.T, s *stage) {
		class, size := "com.amazon.sqs.javamessaging.MessageS3Pointer", sizeAttributeOld
		if newer {
			class, size = "software.amazon.payloadoffloading.PayloadS3Pointer", sizeAttribute
		}
		in := &sqs.SendMessageInput{
			QueueUrl: aws.String(sqstest.URL(s.queue)), MessageBody: aws.String(fmt.Sprintf(`["%s",{"s3BucketName":"bkt","s3Key":"k"}]`, class)),
			MessageAttributes: map[string]types.MessageAttributeValue{size: {DataType: aws.String("Number"), StringValue: aws.String("5")}},
		}
		if _, err := s.SendMessage(t.Context(), in); err != nil {
			t.Fatal(err)
		}
		run(t, s, b)
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.open != 0 {
			t.Errorf("%d streams were left open", b.open)
		}
	})
}

func (s *stage) one(r *reader) *rebalancer.Message {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Hour)
	defer cancel()
	ms, err := r.Fetch(ctx, 1)
	if err != nil {
		s.t.Fatal(err)
	}
	return ms[0]
}

func read(t *testing.T, m *rebalancer.Message) string {
	t.Helper()
	rc, err := m.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(rc)
	if err := errors.Join(err, rc.Close()); err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestPayload: it is opened like any body, as often as asked for, and deleted after its message.
func TestPayload(t *testing.T) {
	for _, newer := range []bool{false, true} {
		t.Run(fmt.Sprint(newer), func(t *testing.T) {
			onPayloads(t, newer, nil, func(t *testing.T, s *stage, b *bucket) {
				r := s.open()
				m := s.one(r)
				for range 2 {
					if got := read(t, m); got != "large" || m.Size != 5 || m.Body != nil {
						t.Fatalf("payload %q, size %d, body %q", got, m.Size, m.Body)
					}
				}
				refuse(s.Server, "DeleteMessageBatch", errLost)
				if err := r.Settle(t.Context(), settlements(sources.Done, m)); err == nil || len(b.objects) != 1 {
					t.Fatalf("Settle: %v, %d objects: a payload must not go before its message", err, len(b.objects))
				}
				s.Intercept(nil)
				s.settle(r, sources.Done, m)
				if len(b.objects) != 0 {
					t.Error("the payload stayed")
				}
			})
		})
	}
}

func TestPayloadIsKept(t *testing.T) {
	for what, end := range map[string]func(*Config) sources.Outcome{
		"asked for":   func(c *Config) sources.Outcome { c.KeepPayloads = true; return sources.Done },
		"dead letter": func(c *Config) sources.Outcome { c.DeadLetter = "dead"; return sources.Reject },
		"given back":  func(*Config) sources.Outcome { return sources.Release },
		"retried":     func(*Config) sources.Outcome { return sources.Retry },
	} {
		t.Run(what, func(t *testing.T) {
			var o sources.Outcome
			onPayloads(t, true, func(c *Config) { o = end(c) }, func(t *testing.T, s *stage, b *bucket) {
				r := s.open()
				s.settle(r, o, s.one(r))
				s.close(r)
				if len(b.objects) != 1 {
					t.Error("the payload went")
				}
			})
		})
	}
}

// TestPayloadTrouble: a key that may not be used is a trouble of the resource: reported, waited for, and no attempt.
func TestPayloadTrouble(t *testing.T) {
	onPayloads(t, true, nil, func(t *testing.T, s *stage, b *bucket) {
		denied := errors.New("KMS.DisabledException")
		b.fails = denied
		r := s.open()
		s.trouble(r, time.Minute, denied)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
		defer cancel()
		for ctx.Err() == nil {
			if ms, err := r.Fetch(ctx, 1); len(ms) > 0 || !errors.Is(err, denied) && !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("Fetch: %d messages, %v", len(ms), err)
			}
		}
		b.mu.Lock()
		b.fails = nil
		b.mu.Unlock()
		var m *rebalancer.Message
		for m == nil {
			if ms, err := r.Fetch(t.Context(), 1); len(ms) > 0 {
				m = ms[0]
			} else if !errors.Is(err, denied) {
				t.Fatal(err)
			}
		}
		if read(t, m) != "large" || m.Attempt != 1 {
			t.Fatalf("attempt %d, want 1", m.Attempt)
		}
		s.settle(r, sources.Done, m)
		s.left(s.queue)
	})
}

// TestPayloadIsMissing: that is its message's own trouble, which goes to its handler.
func TestPayloadIsMissing(t *testing.T) {
	onPayloads(t, true, nil, func(t *testing.T, s *stage, b *bucket) {
		b.objects = nil
		r := s.open()
		m := s.one(r)
		if _, err := m.Open(t.Context()); !errors.Is(err, fs.ErrNotExist) {
			t.Fatalf("Open: %v", err)
		}
	})
}

// TestPayloadBroken: a stream that was cut off while it waited for its handler is opened again.
func TestPayloadBroken(t *testing.T) {
	onPayloads(t, true, nil, func(t *testing.T, s *stage, b *bucket) {
		b.broken = true
		r := s.open()
		if got := read(t, s.one(r)); got != "large" || b.opened != 2 {
			t.Fatalf("payload %q, opened %d times", got, b.opened)
		}
	})
}

// TestPointerAlone: without Config.Payloads, or without the attribute, a message is what it is.
func TestPointerAlone(t *testing.T) {
	onPayloads(t, true, func(c *Config) { c.Payloads = nil }, func(t *testing.T, s *stage, _ *bucket) {
		if m := s.one(s.open()); !strings.HasPrefix(string(m.Body), "[") || m.Stream != nil {
			t.Fatalf("body %q", m.Body)
		}
	})
}

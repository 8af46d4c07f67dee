package sqs

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/rebalancer-go/rebalancer/sources"
)

// refusing is a client that is told of each deletion that its receipt is too old.
type refusing struct {
	Client
	on atomic.Bool
}

func (c *refusing) DeleteMessageBatch(ctx context.Context, in *deletions, o ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error) {
	if !c.on.Load() {
		return c.Client.DeleteMessageBatch(ctx, in, o...)
	}
	out := &sqs.DeleteMessageBatchOutput{}
	for _, e := range in.Entries {
		out.Failed = append(out.Failed, types.BatchResultErrorEntry{Id: e.Id, Code: aws.String("ReceiptHandleIsInvalid"), SenderFault: true})
	}
	return out, nil
}

// TestPayloadOfRefused: the payload of a message whose deletion was refused stays, until the message comes again and is deleted; for good when the
// dead-letter queue has it.
func TestPayloadOfRefused(t *testing.T) {
	for name, o := range map[string]sources.Outcome{"done": sources.Done, "reject": sources.Reject} {
		t.Run(name, func(t *testing.T) {
			onPayloads(t, true, func(c *Config) { c.DeadLetter = "dead" }, func(t *testing.T, s *stage, b *bucket) {
				client := &refusing{Client: s.Server}
				client.on.Store(true)
				s.source.cfg.Client = client
				r := s.open()
				s.settle(r, o, s.one(r))
				if len(b.objects) != 1 || len(s.Bodies(s.queue)) != 1 {
					t.Fatalf("%d payloads, %d messages", len(b.objects), len(s.Bodies(s.queue)))
				}
				client.on.Store(false)
				s.none(r, time.Minute)
				s.left(s.queue)
				if kept := len(b.objects) == 1; kept != (o == sources.Reject) {
					t.Errorf("the payload is there: %v", kept)
				}
			})
		})
	}
}

// TestPayloadOfLost: a deletion from a standard queue under a receipt that is too old succeeds and does nothing; the payload stays too. It does not matter
// whether somebody noticed that the message is another's.
func TestPayloadOfLost(t *testing.T) {
	for what, lose := range map[string]func(r *reader){
		"noticed":     func(r *reader) { r.expire(); r.notice() },
		"not noticed": (*reader).expire,
	} {
		t.Run(what, func(t *testing.T) {
			onPayloads(t, true, nil, func(t *testing.T, s *stage, b *bucket) {
				r := s.open()
				m := s.one(r)
				s.Expire(s.queue)
				other := s.open()
				s.one(other)
				lose(r)
				s.settle(r, sources.Done, m)
				if len(b.objects) != 1 || len(s.Bodies(s.queue)) != 1 {
					t.Fatalf("%d payloads, %d messages", len(b.objects), len(s.Bodies(s.queue)))
				}
				s.close(other)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				for ctx.Err() == nil {
					if ms, err := r.Fetch(ctx, 1); len(ms) > 0 {
						t.Fatalf("it was worked again: %v", err)
					}
				}
				s.left(s.queue)
				if len(b.objects) != 0 {
					t.Error("the payload stayed when the message came again and was deleted")
				}
			})
		})
	}
}

// TestTwiceWhileSettled: a message of a standard queue that is delivered a second time while it is being deleted is deleted under its new
// receipt too, and goes to no other handler.
func TestTwiceWhileSettled(t *testing.T) {
	for name, o := range map[string]sources.Outcome{"done": sources.Done, "reject": sources.Reject, "retry": sources.Retry} {
		t.Run(name, func(t *testing.T) {
			onStage(t, "", func(c *Config) { c.DeadLetter = "dead" }, func(t *testing.T, s *stage) {
				send(s, s.queue, "", "1")
				r := s.open()
				ms := s.fetch(r, 1, "1")
				s.twiceDuring(func(call string) bool {
					return call == "DeleteMessageBatch" || call == "ChangeMessageVisibilityBatch"
				})
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				defer cancel()
				fetched := make(chan struct{})
				go func() { defer close(fetched); _, _ = r.Fetch(ctx, 10) }()
				s.settle(r, o, ms...)
				<-fetched
				if o != sources.Retry {
					s.left(s.queue)
					s.none(r, 5*time.Minute)
				}
			})
		})
	}
}

// twiceDuring has the message delivered a second time before the first of certain calls is carried out.
func (s *stage) twiceDuring(which func(call string) bool) {
	first := true
	s.Intercept(func(call string, _ any) error {
		if which(call) && first {
			first = false
			s.Twice(s.queue, "1")
			time.Sleep(time.Second)
		}
		return nil
	})
}

// TestTwiceWhileExtended: that an extension under the old receipt is refused loses nothing.
func TestTwiceWhileExtended(t *testing.T) {
	onStage(t, "", nil, func(t *testing.T, s *stage) {
		send(s, s.queue, "", "1")
		r := s.open()
		ms := s.fetch(r, 1, "1")
		s.twiceDuring(func(call string) bool { return strings.HasPrefix(call, "Change") })
		s.none(r, 5*time.Minute)
		s.settle(r, sources.Done, ms...)
		s.left(s.queue)
	})
}

// TestRetryAfterAFailedDeletion: a deletion that failed leaves no trace on what becomes of the message afterwards.
func TestRetryAfterAFailedDeletion(t *testing.T) {
	onStage(t, "", nil, func(t *testing.T, s *stage) {
		send(s, s.queue, "", "1")
		r := s.open()
		ms := s.fetch(r, 1, "1")
		refuse(s.Server, "DeleteMessageBatch", errLost)
		if err := r.Settle(t.Context(), settlements(sources.Done, ms...)); err == nil {
			t.Fatal("Settle: no error")
		}
		s.Intercept(nil)
		s.settle(r, sources.Retry, ms...)
		s.fetch(r, 1, "1")
	})
}

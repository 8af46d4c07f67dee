package sqs

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/sources"
	"github.com/rebalancer-go/rebalancer/sources/sqs/sqstest"
)

// stage is a server with one queue, and a source, in virtual time.
type stage struct {
	*sqstest.Server
	t      *testing.T
	source *Source
	queue  string
	fence  int64
}

// send is Send of a test's own queue, which takes it.
func send(to interface {
	Send(queue, group, body string) (string, error)
}, queue, group, body string) string {
	id, err := to.Send(queue, group, body)
	if err != nil {
		panic(err)
	}
	return id
}

// onStage runs a test in a bubble. The queue is "q" + suffix, its dead-letter queue "dead" + suffix.
func onStage(t *testing.T, suffix string, change func(*Config), run func(t *testing.T, s *stage)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &stage{Server: sqstest.New(), t: t, queue: "q" + suffix}
		s.Create(s.queue, nil)
		s.Create("dead"+suffix, nil)
		cfg := Config{Client: s.Server}
		if change != nil {
			change(&cfg)
		}
		s.source = newSource(t, cfg)
		run(t, s)
	})
}

func (s *stage) open() *reader {
	s.t.Helper()
	s.fence++
	r, err := s.source.Open(s.t.Context(), &rebalancer.Claim{Group: "g", Node: "n", Resource: s.queue, Fence: s.fence, TTL: 30 * time.Second})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { s.close(r.(*reader)) })
	return r.(*reader)
}

func (s *stage) close(r *reader) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := r.Close(ctx); err != nil {
		s.t.Errorf("Close: %v", err)
	}
}

// fetch wants one Fetch to give exactly these bodies.
func (s *stage) fetch(r *reader, max int, want ...string) []*rebalancer.Message {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Hour)
	defer cancel()
	ms, err := r.Fetch(ctx, max)
	if err != nil {
		s.t.Fatalf("Fetch: %v; want %q", err, want)
	}
	var got []string
	for _, m := range ms {
		got = append(got, string(m.Body))
	}
	if !slices.Equal(got, want) {
		s.t.Fatalf("Fetch gave %q, want %q", got, want)
	}
	return ms
}

// none wants nothing to come for a time.
func (s *stage) none(r *reader, d time.Duration) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), d)
	defer cancel()
	ms, err := r.Fetch(ctx, 10)
	if !errors.Is(err, context.DeadlineExceeded) {
		s.t.Fatalf("Fetch: %d messages, %v; want none for %v", len(ms), err, d)
	}
}

// trouble wants a Fetch to report an error that matches want, or has it as its text, within a time.
func (s *stage) trouble(r *reader, d time.Duration, want error) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), d)
	defer cancel()
	if ms, err := r.Fetch(ctx, 10); !errors.Is(err, want) {
		s.t.Fatalf("Fetch: %d messages, %v; want the error %v", len(ms), err, want)
	}
}

func (s *stage) settle(r *reader, o sources.Outcome, ms ...*rebalancer.Message) {
	s.t.Helper()
	if err := r.Settle(s.t.Context(), settlements(o, ms...)); err != nil {
		s.t.Fatalf("Settle: %v", err)
	}
}

func settlements(o sources.Outcome, ms ...*rebalancer.Message) []sources.Settlement {
	list := make([]sources.Settlement, len(ms))
	for i, m := range ms {
		list[i] = sources.Settlement{Message: m, Outcome: o, Err: errors.New("the handler said no")}
	}
	return list
}

// left wants the queue to hold these bodies, in flight or not.
func (s *stage) left(queue string, want ...string) {
	s.t.Helper()
	if got := s.Bodies(queue); !slices.Equal(got, want) {
		s.t.Fatalf("queue %s holds %q, want %q", queue, got, want)
	}
}

// record is every call of a kind, with the moment from a start.
type record[In any] struct {
	mu    sync.Mutex
	start time.Time
	ins   []In
	at    []time.Duration
}

func (r *record[In]) all() ([]In, []time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.ins), slices.Clone(r.at)
}

// watch records the calls whose input is of a kind.
func watch[In any](s *sqstest.Server) *record[*In] {
	r := &record[*In]{start: time.Now()}
	s.Intercept(func(_ string, in any) error {
		if in, ok := in.(*In); ok {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.ins, r.at = append(r.ins, in), append(r.at, time.Since(r.start))
		}
		return nil
	})
	return r
}

// refuse makes every call of a name fail.
func refuse(s *sqstest.Server, call string, err error) {
	s.Intercept(func(name string, _ any) error {
		if name == call {
			return err
		}
		return nil
	})
}

type (
	changes   = sqs.ChangeMessageVisibilityBatchInput
	deletions = sqs.DeleteMessageBatchInput
	receipts  = sqs.ReceiveMessageInput
)

// outOf is the one message that is handed out.
func outOf(r *reader) *rebalancer.Message {
	r.mu.Lock()
	defer r.mu.Unlock()
	for m := range r.out {
		return m
	}
	return nil
}

// lossy is a client that loses the answer of a receive.
type lossy struct {
	*sqstest.Server
	lose bool
}

var errLost = errors.New("the answer was lost")

func (l *lossy) ReceiveMessage(ctx context.Context, in *sqs.ReceiveMessageInput, o ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error) {
	out, err := l.Server.ReceiveMessage(ctx, in, o...)
	if l.lose {
		l.lose = false
		return nil, errLost
	}
	return out, err
}

// crowded is a client of a server that says of every queue that it has too many messages in flight.
type crowded struct{ *sqstest.Server }

func (c *crowded) GetQueueAttributes(ctx context.Context, in *sqs.GetQueueAttributesInput, o ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error) {
	out, err := c.Server.GetQueueAttributes(ctx, in, o...)
	if err == nil {
		out.Attributes["ApproximateNumberOfMessages"], out.Attributes["ApproximateNumberOfMessagesNotVisible"] = "5", "114001"
	}
	return out, err
}

package sqs

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/group"
	"github.com/rebalancer-go/rebalancer/sources/sqs/sqstest"
)

// tally is how often messages were worked, and received until then.
type tally struct {
	mu       sync.Mutex
	worked   map[string]int
	received map[string]string
}

func newTally() *tally { return &tally{worked: map[string]int{}, received: map[string]string{}} }

func (y *tally) note(m *rebalancer.Message) {
	y.mu.Lock()
	defer y.mu.Unlock()
	raw := m.Native.(*types.Message)
	y.worked[m.ID]++
	y.received[m.ID] = raw.Attributes["ApproximateReceiveCount"]
}

// once wants so many messages to have been worked and received once.
func (y *tally) once(t *testing.T, n int) {
	t.Helper()
	y.mu.Lock()
	defer y.mu.Unlock()
	if len(y.worked) != n {
		t.Errorf("%d messages were worked, want %d", len(y.worked), n)
	}
	for id, times := range y.worked {
		if times != 1 || y.received[id] != "1" {
			t.Errorf("message %s was worked %d times, and received %s times", id, times, y.received[id])
		}
	}
}

// TestKeyTrouble: a key that is disabled for an hour costs the messages whose payloads it is for no receive, and others go on.
func TestKeyTrouble(t *testing.T) {
	for _, suffix := range []string{"", fifoSuffix} {
		t.Run(suffix, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := crewOf(t)
				c.queue = []string{"q" + suffix}
				c.Create("dead"+suffix, nil)
				c.Create("q"+suffix, map[string]string{"RedrivePolicy": sqstest.RedrivePolicy("dead"+suffix, 3)})
				disabled := errors.New("KMS.DisabledException")
				b := &bucket{objects: map[string]string{"bkt/k": "large"}, fails: disabled}
				send(c, "q"+suffix, "g", "plain")
				in := &sqs.SendMessageInput{
					QueueUrl: aws.String(sqstest.URL("q" + suffix)), MessageBody: aws.String(`["x",{"s3BucketName":"bkt","s3Key":"k"}]`),
					MessageAttributes: map[string]types.MessageAttributeValue{sizeAttribute: {DataType: aws.String("Number"), StringValue: aws.String("5")}},
				}
				if suffix != "" {
					in.MessageGroupId, in.MessageDeduplicationId = aws.String("g"), aws.String("d")
				}
				if _, err := c.SendMessage(t.Context(), in); err != nil {
					t.Fatal(err)
				}
				y := newTally()
				g, stop := c.run("a", func(g *group.Config, s *Config) { g.Concurrency, s.Payloads = 2, b }, func(_ context.Context, m *rebalancer.Message) error {
					y.note(m)
					return nil
				})
				defer stop()
				for i := range 60 {
					time.Sleep(time.Minute)
					send(c, "q"+suffix, fmt.Sprint("other", i), "plain")
				}
				time.Sleep(time.Minute)
				y.once(t, 61)
				if err := troubleOf(g, "q"+suffix); err != nil && !errors.Is(err, disabled) {
					t.Error(err)
				}
				b.mu.Lock()
				b.fails = nil
				b.mu.Unlock()
				c.empty(5*time.Minute, "q"+suffix)
				y.once(t, 62)
			})
		})
	}
}

// TestReceivesFail: for minutes, while messages in hand are tried again and again: none is given back and received once more for it.
func TestReceivesFail(t *testing.T) {
	for _, suffix := range []string{"", fifoSuffix} {
		t.Run(suffix, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := crewOf(t, "q"+suffix)
				for i := range 6 {
					send(c, "q"+suffix, fmt.Sprint(i%2), fmt.Sprint(i))
				}
				y := newTally()
				begun := time.Now()
				_, stop := c.run("a", func(g *group.Config, _ *Config) { g.Concurrency = 4 }, func(_ context.Context, m *rebalancer.Message) error {
					if time.Since(begun) < 5*time.Minute {
						return errors.New("not yet")
					}
					y.note(m)
					return nil
				})
				defer stop()
				time.Sleep(30 * time.Second)
				refuse(c.Server, "ReceiveMessage", sqstest.Error("AccessDenied", "rights that are being changed"))
				time.Sleep(3 * time.Minute)
				c.Intercept(nil)
				c.empty(10*time.Minute, "q"+suffix)
				y.once(t, 6)
			})
		})
	}
}

// TestKeep: a reader keeps nothing that is lost or settled.
func TestKeep(t *testing.T) {
	onStage(t, fifoSuffix, nil, func(t *testing.T, s *stage) {
		r := s.open()
		if r.Keep() {
			t.Error("keeps nothing")
		}
		send(s, s.queue, "g", "1")
		ms := s.fetch(r, 1, "1")
		if !r.Keep() {
			t.Error("does not keep what is handed out")
		}
		s.settle(r, 0, ms...)
		if r.Keep() {
			t.Error("keeps what was settled")
		}
		send(s, s.queue, "g", "2")
		s.fetch(r, 1, "2")
		refuse(s.Server, "ChangeMessageVisibilityBatch", errLost)
		time.Sleep(time.Minute)
		if r.Keep() {
			t.Error("keeps what was lost")
		}
		s.Intercept(nil)
	})
}

// joined is several errors.
type joined interface {
	error
	Unwrap() []error
}

// TestEachTroubleIsTold: lanes that are lost at once are all in what Fetch returns.
func TestEachTroubleIsTold(t *testing.T) {
	onStage(t, fifoSuffix, nil, func(t *testing.T, s *stage) {
		r := s.open()
		for i := range mostTroubles + 4 {
			send(s, s.queue, fmt.Sprintf("g%02d", i), "x")
		}
		for n := 0; n < mostTroubles+4; {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			ms, err := r.Fetch(ctx, 10)
			cancel()
			if err != nil {
				t.Fatal(err)
			}
			n += len(ms)
		}
		refuse(s.Server, "ChangeMessageVisibilityBatch", errLost)
		time.Sleep(time.Minute)
		s.Intercept(nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := r.Fetch(ctx, 10)
		list, ok := errors.AsType[joined](err)
		if !ok || !errors.Is(err, errUnheard) || len(list.Unwrap()) != mostTroubles+1 {
			t.Errorf("Fetch: %v", err)
		}
	})
}

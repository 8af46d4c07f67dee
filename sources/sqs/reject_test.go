package sqs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/sources"
)

// onDead is onStage with a dead-letter queue, for both kinds of queue.
func onDead(t *testing.T, change func(*Config), run func(t *testing.T, s *stage)) {
	t.Helper()
	for _, suffix := range []string{"", fifoSuffix} {
		onStageAgain(t, "kind"+suffix, suffix, func(c *Config) {
			c.DeadLetter = "dead"
			if change != nil {
				change(c)
			}
		}, run)
	}
}

func (s *stage) dead() []string { return s.Bodies("dead" + strings.TrimPrefix(s.queue, "q")) }

// expire sets the visibility of everything in hand back, as if time had passed while the process stood still.
func (r *reader) expire() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.byID {
		e.until = time.Now()
	}
}

// TestDeadLetterOnce: however often the deletion fails afterwards, one copy is sent.
func TestDeadLetterOnce(t *testing.T) {
	onDead(t, nil, func(t *testing.T, s *stage) {
		send(s, s.queue, strings.TrimPrefix(s.queue, "q"), "1")
		r := s.open()
		ms := s.fetch(r, 1, "1")
		denied := errors.New("no right to delete")
		refuse(s.Server, "DeleteMessageBatch", denied)
		for range 10 { // beyond the time for which SQS knows copies
			if err := r.Settle(t.Context(), settlements(sources.Reject, ms...)); !errors.Is(err, denied) {
				t.Fatalf("Settle: %v", err)
			}
			time.Sleep(time.Minute)
		}
		s.Intercept(nil)
		s.settle(r, sources.Reject, ms...)
		s.left(s.queue)
		if got := s.dead(); !slices.Equal(got, []string{"1"}) {
			t.Errorf("dead letters %q, want one copy", got)
		}
	})
}

// TestDeadLetterOnceLost: what was sent on, and lost before it was deleted, is deleted when it comes again.
func TestDeadLetterOnceLost(t *testing.T) {
	onDead(t, nil, func(t *testing.T, s *stage) {
		send(s, s.queue, strings.TrimPrefix(s.queue, "q"), "1")
		r := s.open()
		ms := s.fetch(r, 1, "1")
		refuse(s.Server, "DeleteMessageBatch", errLost)
		if err := r.Settle(t.Context(), settlements(sources.Reject, ms...)); !errors.Is(err, errLost) {
			t.Fatalf("Settle: %v", err)
		}
		s.Expire(s.queue)
		r.expire()
		s.Intercept(nil)
		s.settle(r, sources.Reject, ms...)
		s.none(r, 5*time.Minute)
		s.left(s.queue)
		if got := s.dead(); !slices.Equal(got, []string{"1"}) {
			t.Errorf("dead letters %q, want one copy", got)
		}
	})
}

// TestRejectOfLost: what is not ours any more, or may not be for much longer, comes again, and is not in the dead-letter queue too. Nobody may have noticed
// when the process stood still.
func TestRejectOfLost(t *testing.T) {
	for what, lose := range map[string]func(r *reader){
		"noticed":     func(r *reader) { r.expire(); r.notice() },
		"not noticed": (*reader).expire,
	} {
		t.Run(what, func(t *testing.T) {
			onDead(t, nil, func(t *testing.T, s *stage) {
				group := strings.TrimPrefix(s.queue, "q")
				send(s, s.queue, group, "1")
				r := s.open()
				ms := s.fetch(r, 1, "1")
				lose(r)
				s.settle(r, sources.Reject, ms...)
				s.left(s.queue, "1")
				if got := s.dead(); len(got) > 0 {
					t.Errorf("dead letters %q", got)
				}
				s.trouble(r, time.Second, errFrozen)
				s.fetch(r, 1, "1") // it comes again
			})
		})
	}
}

// notice is what the keeper does once it looks.
func (r *reader) notice() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, la := range r.lanes {
		r.loseFrozen(la)
	}
}

// TestRejectWaitsTooLong: a rejection that had to wait for an extension looks again before it sends anything.
func TestRejectWaitsTooLong(t *testing.T) {
	onDead(t, nil, func(t *testing.T, s *stage) {
		send(s, s.queue, strings.TrimPrefix(s.queue, "q"), "1")
		r := s.open()
		ms := s.fetch(r, 1, "1")
		s.Intercept(func(_ string, in any) error {
			if _, ok := in.(*changes); ok {
				time.Sleep(17 * time.Second)
				return errors.New("no route to host")
			}
			return nil
		})
		time.Sleep(11 * time.Second) // the extension runs
		s.settle(r, sources.Reject, ms...)
		s.Intercept(nil)
		s.left(s.queue, "1")
		if got := s.dead(); len(got) > 0 {
			t.Errorf("dead letters %q", got)
		}
	})
}

// TestRejectAfterAnExtension: one that had to wait for an extension which was granted is carried out.
func TestRejectAfterAnExtension(t *testing.T) {
	onDead(t, nil, func(t *testing.T, s *stage) {
		send(s, s.queue, strings.TrimPrefix(s.queue, "q"), "1")
		s.source.cfg.Client = deaf{s.Server}
		r := s.open()
		ms := s.fetch(r, 1, "1")
		s.Intercept(func(_ string, in any) error {
			if _, ok := in.(*changes); ok {
				time.Sleep(16 * time.Second)
			}
			return nil
		})
		time.Sleep(11 * time.Second) // the extension runs
		s.settle(r, sources.Reject, ms...)
		s.left(s.queue)
		if got := s.dead(); !slices.Equal(got, []string{"1"}) {
			t.Errorf("dead letters %q", got)
		}
	})
}

// deaf is a client whose extensions take as long as they take.
type deaf struct{ Client }

func (d deaf) ChangeMessageVisibilityBatch(ctx context.Context, in *changes, o ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
	return d.Client.ChangeMessageVisibilityBatch(context.WithoutCancel(ctx), in, o...)
}

// TestRejectsInOrder: of a message group they go to the dead-letter queue one after the other, and wait for one that cannot.
func TestRejectsInOrder(t *testing.T) {
	onStage(t, fifoSuffix, func(c *Config) { c.DeadLetter, c.GroupAhead = "dead", 5 }, func(t *testing.T, s *stage) {
		for i := range 5 {
			send(s, s.queue, "g", fmt.Sprint("g", i))
			send(s, s.queue, "h", fmt.Sprint("h", i))
		}
		r := s.open()
		ms, err := r.Fetch(t.Context(), 10)
		if err != nil || len(ms) != 10 {
			t.Fatalf("Fetch: %d messages, %v", len(ms), err)
		}
		slices.Reverse(ms)
		full := errors.New("quota of the dead-letter queue")
		s.Intercept(func(_ string, in any) error {
			m, ok := in.(*sqs.SendMessageInput)
			if !ok {
				return nil
			}
			if *m.MessageBody == "g1" {
				return full
			}
			time.Sleep(time.Duration('9'-(*m.MessageBody)[1]) * 100 * time.Millisecond) // the first takes longest
			return nil
		})
		var some *sources.SettleError
		if err := r.Settle(t.Context(), settlements(sources.Reject, ms...)); !errors.As(err, &some) || len(some.Failed) != 4 {
			t.Fatalf("Settle: %v, want that g1 to g4 were not sent", err)
		}
		s.Intercept(nil)
		var failed []*rebalancer.Message
		for i, m := range ms {
			if some.Failed[i] != nil {
				failed = append(failed, m)
			}
		}
		s.settle(r, sources.Reject, failed...)
		of := map[byte][]string{}
		for _, body := range s.dead() {
			of[body[0]] = append(of[body[0]], body)
		}
		for group, got := range of {
			if len(got) != 5 || !slices.IsSorted(got) {
				t.Errorf("dead letters of group %c: %q", group, got)
			}
		}
	})
}

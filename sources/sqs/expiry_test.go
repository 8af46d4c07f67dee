package sqs

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rebalancer-go/rebalancer/sources"
	"github.com/rebalancer-go/rebalancer/sources/sqs/sqstest"
)

// deleted records what is deleted, in order.
func deleted(s *sqstest.Server) func() []string {
	var mu sync.Mutex
	var bodies []string
	s.OnDelete(func(d sqstest.Deletion) {
		mu.Lock()
		defer mu.Unlock()
		bodies = append(bodies, d.Body)
	})
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(bodies)
	}
}

// refused wants a Fetch to report that SQS refused something, within a time, and nothing to be handed out before.
func (s *stage) refused(r *reader, d time.Duration) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), d)
	defer cancel()
	var no *refusal
	if ms, err := r.Fetch(ctx, 10); !errors.As(err, &no) {
		s.t.Fatalf("Fetch: %d messages, %v; want that SQS refused something", len(ms), err)
	}
}

// TestOneExpiresInALane: when one message of a group in hand ends to be invisible, be it the one that is worked or one behind it, the whole group
// is given up and comes again in order; what was worked meanwhile is not worked again.
func TestOneExpiresInALane(t *testing.T) {
	for what, body := range map[string]string{"first": "1", "middle": "2", "last": "3"} {
		t.Run(what, func(t *testing.T) {
			onStage(t, fifoSuffix, nil, func(t *testing.T, s *stage) {
				for _, body := range []string{"1", "2", "3"} {
					send(s, s.queue, "g", body)
				}
				order := deleted(s.Server)
				r := s.open()
				ms := s.fetch(r, 10, "1")
				s.Expire(s.queue, body)
				s.refused(r, 11*time.Second) // the extension at 10 s
				s.settle(r, sources.Done, ms...)
				if got := order(); len(got) > 0 {
					t.Fatalf("%q was deleted of a group that was lost", got)
				}
				s.settle(r, sources.Done, s.fetch(r, 10, "2")...)
				s.settle(r, sources.Done, s.fetch(r, 10, "3")...)
				if got := order(); !slices.Equal(got, []string{"1", "2", "3"}) {
					t.Fatalf("deleted %q", got)
				}
			})
		})
	}
}

// TestOneExpiresUnnoticed: the deletion of one that was worked is the first to be refused. It is in the queue still, and would come behind those that are
// deleted after it: nothing more of its group is started, and what was started is not deleted.
func TestOneExpiresUnnoticed(t *testing.T) {
	for what, o := range map[string]sources.Outcome{"done": sources.Done, "reject": sources.Reject} {
		t.Run(what, func(t *testing.T) {
			onStage(t, fifoSuffix, func(c *Config) { c.DeadLetter = "dead" }, func(t *testing.T, s *stage) {
				for _, body := range []string{"1", "2", "3", "4"} {
					send(s, s.queue, "g", body)
				}
				order := deleted(s.Server)
				r := s.open()
				s.settle(r, sources.Done, s.fetch(r, 10, "1")...)
				ms := s.fetch(r, 10, "2")
				s.Expire(s.queue, "2")
				s.settle(r, o, ms...)
				s.refused(r, time.Second)
				s.none(r, 15*time.Second)
				s.settle(r, sources.Done, s.fetch(r, 10, "3")...)
				s.settle(r, sources.Done, s.fetch(r, 10, "4")...)
				if got := order(); !slices.Equal(got, []string{"1", "2", "3", "4"}) {
					t.Fatalf("deleted %q", got)
				}
			})
		})
	}
}

// TestOneExpiresWhileTheNextStarts: the next of its group was started when the deletion is refused; it is not deleted before.
func TestOneExpiresWhileTheNextStarts(t *testing.T) {
	onStage(t, fifoSuffix, nil, func(t *testing.T, s *stage) {
		for _, body := range []string{"1", "2", "3"} {
			send(s, s.queue, "g", body)
		}
		order := deleted(s.Server)
		r := s.open()
		first := s.fetch(r, 10, "1")
		s.Expire(s.queue, "1")
		answer := make(chan struct{})
		s.Intercept(func(call string, _ any) error {
			if call == "DeleteMessageBatch" {
				<-answer
			}
			return nil
		})
		settled := make(chan struct{})
		go func() { defer close(settled); s.settle(r, sources.Done, first...) }()
		synctest.Wait()
		second := s.fetch(r, 10, "2")
		s.Intercept(nil)
		close(answer)
		<-settled
		s.settle(r, sources.Done, second...)
		if got := order(); len(got) > 0 {
			t.Fatalf("%q was deleted before 1", got)
		}
		s.refused(r, time.Second)
		s.settle(r, sources.Done, s.fetch(r, 10, "3")...)
		if got := order(); !slices.Equal(got, []string{"1", "2", "3"}) {
			t.Fatalf("deleted %q", got)
		}
	})
}

// TestFinishedComesAgain: a message that was worked and comes again is deleted before the next of its group starts. When that fails the group is given
// up; else the message would come a third time, perhaps to another node, behind what was worked after it.
func TestFinishedComesAgain(t *testing.T) {
	onStage(t, fifoSuffix, nil, func(t *testing.T, s *stage) {
		for _, body := range []string{"1", "2"} {
			send(s, s.queue, "g", body)
		}
		order := deleted(s.Server)
		r := s.open()
		ms := s.fetch(r, 10, "1")
		s.Expire(s.queue, "1")
		s.refused(r, 11*time.Second)
		s.settle(r, sources.Done, ms...)
		throttled := sqstest.Error("ThrottlingException", "slower")
		refuse(s.Server, "DeleteMessageBatch", throttled)
		before := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if ms, err := r.Fetch(ctx, 10); err == nil || ctx.Err() != nil || !strings.Contains(err.Error(), "could not be deleted") {
			t.Fatalf("Fetch: %d messages, %v, after %v", len(ms), err, time.Since(before))
		}
		s.SetLatency(4 * time.Second) // the deletion takes its time
		s.Intercept(nil)
		ms = s.fetch(r, 10, "2")
		if got := order(); !slices.Equal(got, []string{"1"}) {
			t.Fatalf("deleted %q before 2 starts", got)
		}
		s.settle(r, sources.Done, ms...)
		s.SetLatency(0)
		s.left(s.queue)
	})
}

package sqs

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/sources"
	"github.com/rebalancer-go/rebalancer/sources/sqs/sqstest"
)

// TestReceives: as many at a time as there are free handlers, in tens, each waiting for 20 s and setting the visibility.
func TestReceives(t *testing.T) {
	onStage(t, "", nil, func(t *testing.T, s *stage) {
		r := s.open()
		seen := watch[receipts](s.Server)
		ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
		defer cancel()
		_, _ = r.Fetch(ctx, 34)
		s.none(r, 2*time.Second)
		sizes := map[int32]int{}
		ins, _ := seen.all()
		for _, in := range ins {
			sizes[in.MaxNumberOfMessages]++
			if in.VisibilityTimeout != 30 || in.WaitTimeSeconds != 20 || in.ReceiveRequestAttemptId != nil {
				t.Errorf("received with %+v", in)
			}
		}
		if sizes[10] != 3 || len(ins) != 3 {
			t.Errorf("receives by size: %v, want 3 × 10 while nothing comes", sizes)
		}
	})
	onStageAgain(t, "few", "", nil, func(t *testing.T, s *stage) {
		r := s.open()
		seen := watch[receipts](s.Server)
		s.none(r, 5*time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, _ = r.Fetch(ctx, 3)
		if ins, _ := seen.all(); len(ins) != 1 || ins[0].MaxNumberOfMessages != 10 {
			t.Errorf("%d receives", len(ins))
		}
	})
}

// onStageAgain is onStage as a test of its own.
func onStageAgain(t *testing.T, name, suffix string, change func(*Config), run func(t *testing.T, s *stage)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { onStage(t, suffix, change, run) })
}

// TestNoMoreThanAskedFor: what is received never exceeds what may be handed out, whatever Fetches ask for one after the other.
func TestNoMoreThanAskedFor(t *testing.T) {
	onStage(t, "", nil, func(t *testing.T, s *stage) {
		for i := range 100 {
			send(s, s.queue, "", fmt.Sprint(i))
		}
		s.SetLatency(50 * time.Millisecond)
		r := s.open()
		handed := 0
		for handed < 40 {
			ctx, cancel := context.WithTimeout(t.Context(), 7*time.Millisecond)
			ms, err := r.Fetch(ctx, 40-handed)
			cancel()
			if err != nil && !errors.Is(err, context.DeadlineExceeded) {
				t.Fatal(err)
			}
			handed += len(ms)
			if _, inFlight := s.Counts(s.queue); inFlight > 40 {
				t.Fatalf("%d messages were received for 40 handlers", inFlight)
			}
		}
	})
}

// TestLateArrivals: a receive that runs when the reader is closed is not cut off; what it brings is given back at once.
func TestLateArrivals(t *testing.T) {
	for _, suffix := range []string{"", fifoSuffix} {
		t.Run(suffix, func(t *testing.T) {
			onStage(t, suffix, nil, func(t *testing.T, s *stage) {
				r := s.open()
				s.none(r, time.Second)
				s.close(r)
				send(s, s.queue, suffix, "1")
				send(s, s.queue, suffix, "2")
				time.Sleep(time.Second)
				if waiting, inFlight := s.Counts(s.queue); waiting != 2 || inFlight != 0 {
					t.Fatalf("%d messages wait, %d are in flight; want all to wait", waiting, inFlight)
				}
				if err := s.source.Close(); err != nil {
					t.Fatal(err)
				}
				if _, err := s.source.Open(t.Context(), r.claim); !errors.Is(err, sources.ErrClosed) {
					t.Errorf("Open of a closed source: %v", err)
				}
			})
		})
	}
}

// TestSourceCloseWaits: for receives that run, and no longer.
func TestSourceCloseWaits(t *testing.T) {
	onStage(t, "", nil, func(t *testing.T, s *stage) {
		r := s.open()
		s.none(r, 5*time.Second)
		s.close(r)
		start := time.Now()
		if err := s.source.Close(); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(start); d != 15*time.Second {
			t.Fatalf("Close took %v, want what was left of 20 s", d)
		}
	})
}

// TestAttemptIDs: a receive from a FIFO queue whose outcome is unknown is repeated under its id, which gives the same messages; one that was
// throttled is not.
func TestAttemptIDs(t *testing.T) {
	onStage(t, fifoSuffix, nil, func(t *testing.T, s *stage) {
		r := s.open()
		var mu sync.Mutex
		var ids []string
		cut := errors.New("connection reset")
		answers := []error{cut, sqstest.Error("ThrottlingException", "slow down"), nil}
		s.Intercept(func(_ string, in any) error {
			mu.Lock()
			defer mu.Unlock()
			if in, ok := in.(*receipts); ok {
				ids = append(ids, *in.ReceiveRequestAttemptId)
				if len(ids) <= len(answers) {
					return answers[len(ids)-1]
				}
			}
			return nil
		})
		s.trouble(r, time.Second, cut)
		s.trouble(r, time.Second, answers[1])
		s.none(r, 30*time.Second)
		mu.Lock()
		defer mu.Unlock()
		if len(ids) < 4 || ids[0] != ids[1] || ids[1] == ids[2] || ids[2] == ids[3] {
			t.Fatalf("ids %q: want the first twice, then new ones", ids)
		}
	})
}

// TestAnswerLost: the messages of a receive whose answer was lost come with the next, rather than after their visibility.
func TestAnswerLost(t *testing.T) {
	onStage(t, fifoSuffix, nil, func(t *testing.T, s *stage) {
		lossy := &lossy{Server: s.Server}
		s.source.cfg.Client = lossy
		send(s, s.queue, "g", "1")
		send(s, s.queue, "g", "2")
		r := s.open()
		lossy.lose = true
		start := time.Now()
		s.trouble(r, time.Minute, errLost)
		ms := s.fetch(r, 10, "1")
		if time.Since(start) > time.Second || ms[0].Attempt != 1 {
			t.Fatalf("came after %v, attempt %d", time.Since(start), ms[0].Attempt)
		}
	})
}

// TestTroubleOnce: receives that fail side by side are one trouble.
func TestTroubleOnce(t *testing.T) {
	onStage(t, "", nil, func(t *testing.T, s *stage) {
		r := s.open()
		s.SetLatency(10 * time.Millisecond)
		denied := sqstest.Error("KMS.AccessDeniedException", "no right to the key")
		refuse(s.Server, "ReceiveMessage", denied)
		s.trouble(r, time.Minute, denied)
		s.Intercept(nil)
		s.none(r, time.Minute)
	})
}

// crash ends a reader as the end of its process would: nothing is given back.
func (r *reader) crash() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		r.closed = true
		close(r.stop)
	}
}

// TestSilence: a queue with nearly too many messages in flight gives nothing and says nothing; it is said for it.
func TestSilence(t *testing.T) {
	for _, suffix := range []string{"", fifoSuffix} {
		t.Run(suffix, func(t *testing.T) {
			onStage(t, suffix, nil, func(t *testing.T, s *stage) {
				s.source.cfg.Client = &crowded{s.Server}
				r := s.open()
				s.none(r, 55*time.Second)
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
				defer cancel()
				if _, err := r.Fetch(ctx, 10); err == nil || errors.Is(err, context.DeadlineExceeded) {
					t.Fatalf("Fetch: %v, want that so many messages are in flight", err)
				}
			})
		})
	}
}

// TestFreedWhileFetching: handlers that are done while a Fetch waits may be received for at once.
func TestFreedWhileFetching(t *testing.T) {
	onStage(t, "", nil, func(t *testing.T, s *stage) {
		for i := range 10 {
			send(s, s.queue, "", fmt.Sprint(i))
		}
		r := s.open()
		ms, err := r.Fetch(t.Context(), 13)
		if err != nil {
			t.Fatal(err)
		}
		seen := watch[receipts](s.Server)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		ended := make(chan struct{})
		go func() { defer close(ended); _, _ = r.Fetch(ctx, 3) }()
		time.Sleep(time.Second)
		s.settle(r, sources.Done, ms...)
		time.Sleep(time.Second)
		ins, _ := seen.all()
		if len(ins) != 2 || ins[0].MaxNumberOfMessages != 3 || ins[1].MaxNumberOfMessages != 10 {
			t.Errorf("%d receives, want one for 3 and then one for 10", len(ins))
		}
		<-ended
	})
}

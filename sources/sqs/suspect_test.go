package sqs

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/sources"
	"github.com/rebalancer-go/rebalancer/sources/sqs/sqstest"
)

// TestLastReceives: one message that ends every process that works it takes no other along to the dead-letter queue, also where new messages come
// all the time and a new process starts at once.
func TestLastReceives(t *testing.T) {
	for _, suffix := range []string{"", fifoSuffix} {
		for _, stream := range []bool{false, true} {
			for _, pause := range []time.Duration{0, 31 * time.Second} {
				t.Run(fmt.Sprint(suffix, stream, pause), func(t *testing.T) {
					onStage(t, suffix, nil, func(t *testing.T, s *stage) { lastReceives(t, s, suffix, stream, pause) })
				})
			}
		}
	}
}

func lastReceives(t *testing.T, s *stage, suffix string, stream bool, pause time.Duration) {
	s.Create(s.queue, map[string]string{"RedrivePolicy": sqstest.RedrivePolicy("dead"+suffix, 3)})
	r := s.open()
	s.none(r, time.Minute) // it receives ten at once now
	for i := range 30 {
		send(s, s.queue, suffix, fmt.Sprintf("%02d", i))
	}
	if stream {
		var wg sync.WaitGroup
		ctx, cancel := context.WithCancel(t.Context())
		defer wg.Wait()
		defer cancel()
		wg.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				send(s, s.queue, suffix+fmt.Sprint(i), "new")
				time.Sleep(300 * time.Millisecond)
			}
		})
	}
	for lives := 0; len(s.Bodies("dead"+suffix)) == 0; lives++ {
		if lives > 10 {
			t.Fatal("the poison is worked again and again")
		}
		s.untilPoison(r, "05", 5*time.Minute)
		r.crash()
		time.Sleep(pause)
		r = s.open()
	}
	s.left("dead"+suffix, "05")
	s.untilPoison(r, "05", 5*time.Minute)
	s.left("dead"+suffix, "05")
}

// untilPoison works messages, one at a time, until one comes along with the poison, or for a time.
func (s *stage) untilPoison(r *reader, poison string, within time.Duration) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), within)
	defer cancel()
	for {
		ms, err := r.Fetch(ctx, 10)
		if errors.Is(err, context.DeadlineExceeded) {
			return
		} else if err != nil {
			s.t.Fatal(err)
		}
		for _, m := range ms {
			if string(m.Body) == poison {
				return
			}
		}
		s.settle(r, sources.Done, ms...)
	}
}

// TestSuspectsAlone: suspects that come in one receive all the same are handed out one at a time, and what is not suspected beside them.
func TestSuspectsAlone(t *testing.T) {
	onStage(t, "", nil, func(t *testing.T, s *stage) {
		s.Create(s.queue, map[string]string{"RedrivePolicy": sqstest.RedrivePolicy("dead", 3)})
		for i := range 3 {
			send(s, s.queue, "", fmt.Sprint(i))
		}
		first := s.open()
		for i := range 3 { // alone: these are not suspected yet
			s.fetch(first, 10, fmt.Sprint(i))
		}
		first.crash()
		r := s.open()
		s.none(r, 20*time.Second)
		r.mu.Lock()
		r.carefulTo = time.Time{} // as if it were later
		r.mu.Unlock()
		one := s.fetch(r, 10, "0")
		send(s, s.queue, "", "new")
		s.none(r, time.Second)
		s.settle(r, sources.Done, one...)
		two := s.fetch(r, 10, "1")
		s.settle(r, sources.Done, two...)
		s.fetch(r, 10, "2")
		start := time.Now() // it is tried again and again: that is no reason to stop everything
		s.fetch(r, 10, "new")
		if d := time.Since(start); d < 20*time.Second || d > time.Minute {
			t.Errorf("others waited for %v", d)
		}
	})
}

// TestCarefulWorksSideBySide: what is not suspected is received singly after a queue was opened, but not worked singly.
func TestCarefulWorksSideBySide(t *testing.T) {
	onStage(t, "", nil, func(t *testing.T, s *stage) {
		s.Create(s.queue, map[string]string{"RedrivePolicy": sqstest.RedrivePolicy("dead", 10)})
		for i := range 40 {
			send(s, s.queue, "", fmt.Sprint(i))
		}
		r := s.open()
		seen := watch[receipts](s.Server)
		var held []*rebalancer.Message
		for i := range 10 {
			held = append(held, s.fetch(r, 10, fmt.Sprint(i))...)
		}
		s.none(r, 0)
		time.Sleep(51 * time.Second)
		s.settle(r, sources.Done, held...)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if ms, err := r.Fetch(ctx, 10); err != nil || len(ms) == 0 {
			t.Fatal(len(ms), err)
		}
		ins, at := seen.all()
		single, tens := 0, 0
		for i, in := range ins {
			switch {
			case at[i] < 50*time.Second && in.MaxNumberOfMessages == 1:
				single++
			case at[i] >= 50*time.Second && in.MaxNumberOfMessages == 10:
				tens++
			default:
				t.Errorf("a receive for %d after %v", in.MaxNumberOfMessages, at[i])
			}
		}
		if single < 10 || tens == 0 {
			t.Errorf("%d receives for one, %d for ten", single, tens)
		}
	})
}

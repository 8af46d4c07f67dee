package sqs

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rebalancer-go/rebalancer/sources"
	"github.com/rebalancer-go/rebalancer/sources/sqs/sqstest"
)

// TestExtensions: what is in hand is extended at a third of the visibility, always to all of it, from the receipt on.
func TestExtensions(t *testing.T) {
	onStage(t, "", nil, func(t *testing.T, s *stage) {
		r := s.open()
		send(s, s.queue, "", "1")
		seen := watch[changes](s.Server)
		ms := s.fetch(r, 1, "1")
		time.Sleep(95 * time.Second)
		ins, at := seen.all()
		if len(ins) != 9 {
			t.Fatalf("%d extensions in 95 s at %v, want 9", len(ins), at)
		}
		for i, in := range ins {
			if want := time.Duration(i+1) * 10 * time.Second; at[i] < want-3*time.Second || at[i] > want {
				t.Errorf("extension %d after %v, want %v", i, at[i], want)
			}
			if v := in.Entries[0].VisibilityTimeout; v != 30 {
				t.Errorf("extension %d to %d s, want the full 30", i, v)
			}
		}
		s.settle(r, sources.Done, ms...)
		time.Sleep(time.Minute)
		if ins, _ := seen.all(); len(ins) != 9 {
			t.Fatal("extended after it was deleted")
		}
		s.left(s.queue)
	})
}

// TestExtensionAfterALongPoll: what a receive brings that waited for long may have been invisible for as long; an extension makes sure.
func TestExtensionAfterALongPoll(t *testing.T) {
	onStage(t, "", nil, func(t *testing.T, s *stage) {
		r := s.open()
		seen := watch[changes](s.Server)
		time.AfterFunc(19*time.Second, func() { send(s, s.queue, "", "1") })
		s.fetch(r, 1, "1")
		time.Sleep(2 * time.Second)
		if ins, at := seen.all(); len(ins) != 1 {
			t.Fatalf("extensions at %v, want one within 2 s", at)
		}
	})
}

// TestBufferIsKept: what waits behind the first of its group is extended with it, in one call.
func TestBufferIsKept(t *testing.T) {
	onStage(t, fifoSuffix, nil, func(t *testing.T, s *stage) {
		for _, body := range []string{"1", "2", "3"} {
			send(s, s.queue, "g", body)
		}
		r := s.open()
		seen := watch[changes](s.Server)
		ms := s.fetch(r, 10, "1")
		time.Sleep(5 * time.Minute)
		ins, _ := seen.all()
		for i, in := range ins {
			if len(in.Entries) != 3 {
				t.Fatalf("extension %d is for %d messages, want the whole group", i, len(in.Entries))
			}
		}
		if len(ins) < 28 {
			t.Fatalf("%d extensions in 5 min", len(ins))
		}
		s.settle(r, sources.Done, ms...)
		s.settle(r, sources.Done, s.fetch(r, 10, "2")...)
		s.settle(r, sources.Done, s.fetch(r, 10, "3")...)
		s.left(s.queue)
	})
}

// TestExtensionIsJoined: a message is deleted, retried or given back only when its extension has been answered; else that would set the
// visibility again.
func TestExtensionIsJoined(t *testing.T) {
	for what, end := range map[string]func(s *stage, r *reader) error{
		"done":  func(s *stage, r *reader) error { return r.Settle(s.t.Context(), settlements(sources.Done, outOf(r))) },
		"retry": func(s *stage, r *reader) error { return r.Settle(s.t.Context(), settlements(sources.Retry, outOf(r))) },
		"close": func(s *stage, r *reader) error { return r.Close(s.t.Context()) },
	} {
		for _, suffix := range []string{"", fifoSuffix} {
			if suffix == fifoSuffix && what == "retry" {
				continue // it makes no call
			}
			onStageAgain(t, what+suffix, suffix, nil, func(t *testing.T, s *stage) {
				r := s.open()
				send(s, s.queue, suffix, "1")
				var extending, overtaken bool
				answer := make(chan struct{})
				s.Intercept(func(call string, in any) error {
					if c, ok := in.(*changes); ok && c.Entries[0].VisibilityTimeout == 30 {
						extending = true
						<-answer
						extending = false
						return nil
					}
					overtaken = overtaken || extending && call != "ReceiveMessage"
					return nil
				})
				s.fetch(r, 1, "1")
				time.Sleep(11 * time.Second)
				synctest.Wait()
				if !extending {
					t.Fatal("no extension runs")
				}
				ended := make(chan error)
				go func() { ended <- end(s, r) }()
				time.Sleep(2 * time.Second)
				close(answer)
				if err := <-ended; err != nil {
					t.Fatal(err)
				}
				if overtaken {
					t.Fatal("the extension was overtaken")
				}
			})
		}
	}
}

// TestExtensionFails: one that fails is repeated and reported; the message stays in hand.
func TestExtensionFails(t *testing.T) {
	onStage(t, fifoSuffix, nil, func(t *testing.T, s *stage) {
		r := s.open()
		send(s, s.queue, "g", "1")
		ms := s.fetch(r, 1, "1")
		denied := sqstest.Error("AccessDenied", "no right to change visibility")
		refuse(s.Server, "ChangeMessageVisibilityBatch", denied)
		s.trouble(r, 15*time.Second, denied)
		s.Intercept(nil)
		time.Sleep(40 * time.Second)
		s.settle(r, sources.Done, ms...)
		s.left(s.queue)
	})
}

// TestLostLane: extensions that nobody answers before the margin lose the group: nothing of it is started or deleted, and what was finished
// meanwhile is not worked again.
func TestLostLane(t *testing.T) {
	onStage(t, fifoSuffix, nil, func(t *testing.T, s *stage) {
		for _, body := range []string{"1", "2", "3"} {
			send(s, s.queue, "g", body)
		}
		r := s.open()
		ms := s.fetch(r, 10, "1")
		received := time.Now()
		refuse(s.Server, "ChangeMessageVisibilityBatch", errors.New("no route to host"))
		var err error
		for !errors.Is(err, errUnheard) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			var more []any
			if got, e := r.Fetch(ctx, 10); len(got) > 0 {
				more = append(more, got)
			} else {
				err = e
			}
			cancel()
			if len(more) > 0 || errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("%v was started, %v", more, err)
			}
		}
		if d := time.Since(received); d > 25*time.Second {
			t.Fatalf("lost after %v, must be a margin before the 30 s are over", d)
		}
		s.settle(r, sources.Done, ms...)
		if s.Calls("DeleteMessageBatch") > 0 {
			t.Fatal("deleted although it was lost")
		}
		s.Intercept(nil)
		// They become visible and come again, but for the first, which was worked.
		s.settle(r, sources.Done, s.fetch(r, 10, "2")...)
		s.settle(r, sources.Done, s.fetch(r, 10, "3")...)
		s.left(s.queue)
	})
}

// TestLostWhileWorked: a group that was lost and comes again waits until the handler of before has ended, which keeps its message.
func TestLostWhileWorked(t *testing.T) {
	onStage(t, fifoSuffix, nil, func(t *testing.T, s *stage) {
		send(s, s.queue, "g", "1")
		send(s, s.queue, "g", "2")
		r := s.open()
		ms := s.fetch(r, 10, "1")
		s.Expire(s.queue) // as if time had passed at the server
		time.Sleep(11 * time.Second)
		// The extension at 10 s is refused: what was in hand is not ours any more. It is received again.
		var no *refusal
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := r.Fetch(ctx, 10); !errors.As(err, &no) {
			t.Fatalf("Fetch: %v, want what refused the extension", err)
		}
		s.none(r, 3*time.Minute) // 1 is worked still, so that 2 waits
		s.settle(r, sources.Done, ms...)
		s.left(s.queue, "2")
		s.settle(r, sources.Done, s.fetch(r, 10, "2")...)
		s.left(s.queue)
	})
}

// TestTwelveHours: SQS keeps no message invisible for longer from its receipt; it is reported, and comes again.
func TestTwelveHours(t *testing.T) {
	for _, suffix := range []string{"", fifoSuffix} {
		t.Run(suffix, func(t *testing.T) {
			onStage(t, suffix, func(c *Config) { c.Visibility = time.Hour }, func(t *testing.T, s *stage) {
				send(s, s.queue, suffix, "1")
				r := s.open()
				ms := s.fetch(r, 1, "1")
				time.Sleep(11*time.Hour + 40*time.Minute)
				if _, inFlight := s.Counts(s.queue); inFlight != 1 {
					t.Fatal("it was not kept invisible for as long as it may be")
				}
				s.trouble(r, time.Hour, errMostHeld)
				s.none(r, time.Hour) // it came again to whom it works, who keeps it
				s.settle(r, sources.Done, ms...)
				s.left(s.queue)
			})
		})
	}
}

// TestTwice: a message of a standard queue that is delivered while it is worked goes to no second handler.
func TestTwice(t *testing.T) {
	onStage(t, "", nil, func(t *testing.T, s *stage) {
		send(s, s.queue, "", "1")
		r := s.open()
		ms := s.fetch(r, 1, "1")
		s.Twice(s.queue, "1")
		s.none(r, 5*time.Minute)
		s.settle(r, sources.Done, ms...) // under the newest receipt
		s.left(s.queue)
	})
}

// TestFinishedTooLate: a deletion that comes to nothing, since the receipt is too old, deletes the message when it comes again.
func TestFinishedTooLate(t *testing.T) {
	onStage(t, "", nil, func(t *testing.T, s *stage) {
		send(s, s.queue, "", "1")
		r := s.open()
		ms := s.fetch(r, 1, "1")
		refuse(s.Server, "ChangeMessageVisibilityBatch", errors.New("no route to host"))
		time.Sleep(40 * time.Second)
		s.Intercept(nil)
		other := s.open() // another consumer gets it, and dies
		s.fetch(other, 1, "1")
		s.settle(r, sources.Done, ms...)
		s.left(s.queue, "1")
		s.close(other)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for ctx.Err() == nil {
			if ms, err := r.Fetch(ctx, 1); len(ms) > 0 {
				t.Fatalf("it was worked again: %v", err)
			}
		}
		s.left(s.queue)
	})
}

package sqs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/rebalancer-go/rebalancer/sources"
	"github.com/rebalancer-go/rebalancer/sources/sqs/sqstest"
)

// TestFrozenBeforeFetch: what is in hand is not handed out when the process stood still for so long that it may be another's.
func TestFrozenBeforeFetch(t *testing.T) {
	onStage(t, fifoSuffix, nil, func(t *testing.T, s *stage) {
		send(s, s.queue, "g", "1")
		send(s, s.queue, "h", "2")
		r := s.open()
		ms := s.fetch(r, 10, "1", "2")
		s.settle(r, sources.Release, ms...)
		s.fetch(r, 1, "1")
		r.expire()
		s.trouble(r, time.Second, errFrozen)
	})
}

// TestFrozenBeforeDeletion: a message of a FIFO queue that was worked while the process stood still is not deleted under its old receipt; it is
// when it comes again.
func TestFrozenBeforeDeletion(t *testing.T) {
	onStage(t, fifoSuffix, nil, func(t *testing.T, s *stage) {
		send(s, s.queue, "g", "1")
		r := s.open()
		ms := s.fetch(r, 1, "1")
		r.expire()
		s.settle(r, sources.Done, ms...)
		if n := s.Calls("DeleteMessageBatch"); n > 0 {
			t.Fatal("it was deleted")
		}
		s.trouble(r, time.Second, errFrozen)
		s.none(r, time.Minute)
		s.left(s.queue)
	})
}

// TestFrozenWhileLingering: deletions that waited for others while the process stood still are not made; they are asked for again.
func TestFrozenWhileLingering(t *testing.T) {
	onStage(t, "", nil, func(t *testing.T, s *stage) {
		send(s, s.queue, "", "1")
		send(s, s.queue, "", "2")
		r := s.open()
		ms := s.fetch(r, 10, "1", "2")
		s.source.past = func(time.Time) bool { return true }
		if err := r.Settle(t.Context(), settlements(sources.Done, ms[0])); err == nil || s.Calls("DeleteMessageBatch") > 0 {
			t.Fatalf("Settle: %v, %d deletions", err, s.Calls("DeleteMessageBatch"))
		}
		s.source.past = past
		s.settle(r, sources.Done, ms...)
		s.left(s.queue)
	})
}

// refusingOne is a client whose extensions of one receipt are refused.
type refusingOne struct {
	Client
	receipt string
}

func (c *refusingOne) ChangeMessageVisibilityBatch(ctx context.Context, in *changes, o ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
	out, err := c.Client.ChangeMessageVisibilityBatch(ctx, in, o...)
	for _, e := range in.Entries {
		if err == nil && *e.ReceiptHandle == c.receipt {
			out.Failed = append(out.Failed, types.BatchResultErrorEntry{Id: e.Id, Code: aws.String("ReceiptHandleIsInvalid"), SenderFault: true})
		}
	}
	return out, err
}

// TestRefusedWhileSettled: an extension that is refused for a message which is just being deleted does not lose what waits behind it.
func TestRefusedWhileSettled(t *testing.T) {
	onStage(t, fifoSuffix, nil, func(t *testing.T, s *stage) {
		id := send(s, s.queue, "g", "1")
		send(s, s.queue, "g", "2")
		s.source.cfg.Client = &refusingOne{s.Server, id + "#1"} // its first receipt
		r := s.open()
		ms := s.fetch(r, 10, "1")
		s.Intercept(func(_ string, in any) error {
			if _, ok := in.(*changes); ok {
				time.Sleep(5 * time.Second)
			}
			return nil
		})
		time.Sleep(11 * time.Second) // the extension runs
		s.settle(r, sources.Done, ms...)
		s.settle(r, sources.Done, s.fetch(r, 10, "2")...)
		s.left(s.queue)
	})
}

// TestNotGivenBack: what is not ours any more is not given back, whether that was noticed or not: another may work it.
func TestNotGivenBack(t *testing.T) {
	for what, lose := range map[string]func(r *reader){"noticed": func(r *reader) { r.expire(); r.notice(); r.prolong() }, "not noticed": (*reader).expire} {
		t.Run(what, func(t *testing.T) {
			onStage(t, "", nil, func(t *testing.T, s *stage) {
				send(s, s.queue, "", "1")
				r := s.open()
				s.fetch(r, 1, "1")
				lose(r)
				s.close(r)
				if n := s.Calls("ChangeMessageVisibilityBatch"); n > 0 {
					t.Error("it was given back")
				}
			})
		})
	}
}

// prolong undoes expire.
func (r *reader) prolong() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.byID {
		e.until = time.Now().Add(time.Hour)
	}
}

// TestAttemptIsNoExcuse: a receive is not repeated under its id when it is for more messages than there are free handlers by now.
func TestAttemptIsNoExcuse(t *testing.T) {
	onStage(t, fifoSuffix, nil, func(t *testing.T, s *stage) {
		r := s.open()
		refuse(s.Server, "ReceiveMessage", errLost)
		s.trouble(r, time.Second, errLost) // for 10
		s.Intercept(nil)
		seen := watch[receipts](s.Server)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, _ = r.Fetch(ctx, 1)
		if ins, _ := seen.all(); len(ins) != 1 || ins[0].MaxNumberOfMessages != 1 {
			t.Errorf("%d receives, the first for %d messages, want one for 1", len(ins), ins[0].MaxNumberOfMessages)
		}
	})
}

// TestLongRetry: a delay beyond the 12 hours for which a message may be invisible is cut down to them.
func TestLongRetry(t *testing.T) {
	onStage(t, "", func(c *Config) { c.Visibility = time.Hour }, func(t *testing.T, s *stage) {
		send(s, s.queue, "", "1")
		r := s.open()
		ms := s.fetch(r, 1, "1")
		time.Sleep(9 * time.Hour)
		list := settlements(sources.Retry, ms...)
		list[0].Delay = 11 * time.Hour
		if err := r.Settle(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		s.none(r, 2*time.Hour+50*time.Minute)
		s.fetch(r, 1, "1")
		if d := time.Since(start); d > 3*time.Hour {
			t.Errorf("came again after %v", d)
		}
	})
}

// lookUp is the queue, without a call.
func (s *stage) lookUp() queue {
	return queue{name: s.queue, url: sqstest.URL(s.queue), fifo: isFIFO(s.queue)}
}

// TestLateInReverse: what comes after Close is given back with the last of a message group first.
func TestLateInReverse(t *testing.T) {
	onStage(t, fifoSuffix, nil, func(t *testing.T, s *stage) {
		s.SetLatency(2 * time.Second)
		r := newReader(s.source, s.lookUp(), nil)
		s.none(r, time.Millisecond) // a receive is on its way
		for i := range 4 {
			send(s, s.queue, "g", fmt.Sprint(i))
		}
		s.close(r)
		back := watch[changes](s.Server)
		time.Sleep(5 * time.Second)
		ins, _ := back.all()
		if len(ins) != 1 || len(ins[0].Entries) != 4 {
			t.Fatalf("given back in %d calls", len(ins))
		}
		for i, e := range ins[0].Entries[1:] {
			if front := ins[0].Entries[i]; *e.ReceiptHandle >= *front.ReceiptHandle { // they begin with a serial number
				t.Errorf("%s is given back after %s", *e.ReceiptHandle, *front.ReceiptHandle)
			}
		}
	})
}

// TestCutLanes: calls hold ten at most; a message group is cut up only when it is longer.
func TestCutLanes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		groups string // one letter a message
		want   []int
	}{
		{"", []int{0}},
		{"a", []int{0, 1}},
		{strings.Repeat("a", 10), []int{0, 10}},
		{strings.Repeat("a", 25), []int{0, 10, 20, 25}},
		{strings.Repeat("a", 6) + strings.Repeat("b", 6), []int{0, 6, 12}},
		{strings.Repeat("a", 6) + strings.Repeat("b", 12) + "c", []int{0, 6, 16, 19}},
		{strings.Repeat("a", 12) + strings.Repeat("b", 8), []int{0, 10, 20}},
		{strings.Repeat("a", 12) + strings.Repeat("b", 9), []int{0, 10, 12, 21}},
	} {
		var entries []*entry
		for i, g := range c.groups {
			entries = append(entries, &entry{lane: &lane{group: string(g)}, seq: strconv.Itoa(i)})
		}
		if got := cutLanes(entries); !slices.Equal(got, c.want) {
			t.Errorf("%q: cut at %v, want %v", c.groups, got, c.want)
		}
	}
}

// TestFinishedIsBounded: so many messages that were finished too late are remembered, and for so long.
func TestFinishedIsBounded(t *testing.T) {
	onStage(t, "", nil, func(t *testing.T, s *stage) {
		r := s.open()
		remember := func(what string, n int) int {
			r.mu.Lock()
			defer r.mu.Unlock()
			for i := range n {
				r.remember(fmt.Sprint(what, i), true)
			}
			return len(r.finished)
		}
		if n := remember("a", mostFinished+100); n != mostFinished {
			t.Errorf("%d are remembered, want %d", n, mostFinished)
		}
		time.Sleep(finishedLife + time.Second)
		if n := remember("b", 1); n != 1 {
			t.Errorf("%d are remembered after an hour, want the new one", n)
		}
	})
}

// TestSourceCloseOfAFrozenServer: Close waits for a receive that is never answered no longer than for one that is.
func TestSourceCloseOfAFrozenServer(t *testing.T) {
	onStage(t, "", nil, func(t *testing.T, s *stage) {
		s.SetLatency(time.Hour)
		r := newReader(s.source, s.lookUp(), nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := r.Fetch(ctx, 1); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		s.close(r)
		start := time.Now()
		if err := s.source.Close(); err != nil || time.Since(start) > s.source.cfg.Wait+callTimeout {
			t.Errorf("Close: %v after %v", err, time.Since(start))
		}
	})
}

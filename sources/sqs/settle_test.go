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

// TestDeletesAreBatched: ten go in one call at once; fewer wait for others, a second at most, where others may come.
func TestDeletesAreBatched(t *testing.T) {
	onStage(t, "", nil, func(t *testing.T, s *stage) {
		for i := range 25 {
			send(s, s.queue, "", fmt.Sprint(i))
		}
		r := s.open()
		seen := watch[deletions](s.Server)
		var all []sources.Settlement
		for range 3 {
			ms, err := r.Fetch(t.Context(), 10)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, settlements(sources.Done, ms...)...)
		}
		start := time.Now()
		if err := r.Settle(t.Context(), all[:23]); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(start); d > 0 {
			t.Errorf("23 deletions waited %v", d)
		}
		if err := r.Settle(t.Context(), all[23:24]); err != nil { // the last is worked still
			t.Fatal(err)
		}
		if d := time.Since(start); d == 0 || d > time.Second {
			t.Errorf("one deletion waited %v for others", d)
		}
		start = time.Now()
		if err := r.Settle(t.Context(), all[24:]); err != nil { // nothing else is in hand
			t.Fatal(err)
		}
		if d := time.Since(start); d > 0 {
			t.Errorf("the last deletion waited %v", d)
		}
		ins, _ := seen.all()
		sizes := map[int]int{}
		for _, in := range ins {
			sizes[len(in.Entries)]++
		}
		if sizes[10] != 2 || sizes[3] != 1 || sizes[1] != 2 {
			t.Errorf("deletions by size of their call: %v, want 2 × 10, 3, 1, 1", sizes)
		}
		s.left(s.queue)
	})
}

// TestLingerEnds: a Fetch that is given up ends the wait, since the resource may be wanted by another node; so does a release.
func TestLingerEnds(t *testing.T) {
	onStage(t, "", func(c *Config) { c.Linger = 5 * time.Second }, func(t *testing.T, s *stage) {
		for i := range 3 {
			send(s, s.queue, "", fmt.Sprint(i))
		}
		r := s.open()
		ms := s.fetch(r, 10, "0", "1", "2")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		go func() { _, _ = r.Fetch(ctx, 1) }()
		time.Sleep(time.Millisecond)
		start := time.Now()
		s.settle(r, sources.Done, ms[0])
		if d := time.Since(start); d > time.Second {
			t.Errorf("deletion waited %v beyond the end of the Fetch", d)
		}
		start = time.Now()
		list := append(settlements(sources.Done, ms[1]), settlements(sources.Release, ms[2])...)
		if err := r.Settle(t.Context(), list); err != nil || time.Since(start) > 0 {
			t.Errorf("deletion beside a release: %v, after %v", err, time.Since(start))
		}
	})
}

// TestFIFODeletesAtOnce: their group waits for them.
func TestFIFODeletesAtOnce(t *testing.T) {
	onStage(t, fifoSuffix, nil, func(t *testing.T, s *stage) {
		send(s, s.queue, "g", "1")
		send(s, s.queue, "h", "2")
		r := s.open()
		ms := s.fetch(r, 10, "1", "2")
		start := time.Now()
		s.settle(r, sources.Done, ms[0])
		if d := time.Since(start); d > 0 {
			t.Fatalf("deletion waited %v", d)
		}
	})
}

// TestRetryIsNoHotLoop: SQS delivers again after the delay, a second at least, and not all at the same moment.
func TestRetryIsNoHotLoop(t *testing.T) {
	onStage(t, "", nil, func(t *testing.T, s *stage) {
		for i := range 40 {
			send(s, s.queue, "", fmt.Sprint(i))
		}
		r := s.open()
		seen := watch[changes](s.Server)
		var list []sources.Settlement
		for len(list) < 40 {
			ms, err := r.Fetch(t.Context(), 10)
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, settlements(sources.Retry, ms...)...)
		}
		for i := range 20 {
			list[i].Delay = time.Minute
		}
		if err := r.Settle(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		different := map[int32]bool{}
		ins, _ := seen.all()
		for _, in := range ins {
			for _, e := range in.Entries {
				different[e.VisibilityTimeout] = true
				if v := e.VisibilityTimeout; v < 1 || v > 1+1 && v < 60 || v > 77 {
					t.Errorf("visibility %d s for a delay of 0 or 60 s", v)
				}
			}
		}
		if len(different) < 4 {
			t.Errorf("visibilities %v: no jitter", different)
		}
	})
}

// TestRetryKeepsItsDelay: no extension sets it again.
func TestRetryKeepsItsDelay(t *testing.T) {
	onStage(t, "", nil, func(t *testing.T, s *stage) {
		send(s, s.queue, "", "1")
		r := s.open()
		ms := s.fetch(r, 1, "1")
		time.Sleep(9 * time.Second)
		list := settlements(sources.Retry, ms...)
		list[0].Delay = 5 * time.Minute
		if err := r.Settle(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		again := s.fetch(r, 1, "1")
		if d := time.Since(start); d < 5*time.Minute || d > 7*time.Minute {
			t.Errorf("came again after %v, want 5 min and some", d)
		}
		if again[0].Attempt != 2 {
			t.Errorf("attempt %d, want 2", again[0].Attempt)
		}
	})
}

// TestFIFORetryHoldsItsGroup: it is made here, burns no receive, and those behind it wait; another group does not.
func TestFIFORetryHoldsItsGroup(t *testing.T) {
	onStage(t, fifoSuffix, nil, func(t *testing.T, s *stage) {
		for _, body := range []string{"1", "2"} {
			send(s, s.queue, "g", body)
		}
		send(s, s.queue, "h", "3")
		r := s.open()
		ms := s.fetch(r, 10, "1", "3")
		list := settlements(sources.Retry, ms[0])
		list[0].Delay = time.Minute
		if err := r.Settle(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		s.settle(r, sources.Done, ms[1])
		s.none(r, 59*time.Second)
		again := s.fetch(r, 10, "1")
		if again[0].Attempt != 2 || again[0].ID != ms[0].ID || again[0].Native.(*types.Message).Attributes["ApproximateReceiveCount"] != "1" {
			t.Errorf("attempt %d, receive count %v", again[0].Attempt, again[0].Native)
		}
		s.settle(r, sources.Done, again...)
		s.fetch(r, 10, "2")
	})
}

// TestDeadLetter: what is given up goes to the named queue with what it was, where it came from and why, and only then leaves its own.
func TestDeadLetter(t *testing.T) {
	for _, suffix := range []string{"", fifoSuffix} {
		t.Run(suffix, func(t *testing.T) {
			onStage(t, suffix, func(c *Config) { c.DeadLetter = "dead" }, func(t *testing.T, s *stage) {
				in := &sqs.SendMessageInput{QueueUrl: aws.String(sqstest.URL(s.queue)), MessageBody: aws.String("1"), MessageAttributes: attributesOf("k", "v")}
				if suffix != "" {
					in.MessageGroupId, in.MessageDeduplicationId = aws.String("g"), aws.String("d")
				}
				if _, err := s.SendMessage(t.Context(), in); err != nil {
					t.Fatal(err)
				}
				r := s.open()
				ms := s.fetch(r, 1, "1")
				full := errors.New("quota of the dead-letter queue")
				refuse(s.Server, "SendMessage", full)
				if err := r.Settle(t.Context(), settlements(sources.Reject, ms...)); !errors.Is(err, full) {
					t.Fatalf("Settle: %v", err)
				}
				s.left(s.queue, "1")
				refuse(s.Server, "DeleteMessageBatch", full) // it goes there, but not from here
				if err := r.Settle(t.Context(), settlements(sources.Reject, ms...)); !errors.Is(err, full) {
					t.Fatalf("Settle: %v", err)
				}
				s.Intercept(nil)
				s.settle(r, sources.Reject, ms...)
				s.left(s.queue)
				got := s.receiveDead(suffix)
				if suffix != "" && len(got) != 1 {
					t.Fatalf("%d messages in the dead-letter queue: its id must tell copies", len(got))
				}
				a := got[0].MessageAttributes
				if *a["k"].StringValue != "v" || *a[AttributeError].StringValue != "the handler said no" || *a[AttributeQueue].StringValue != s.queue ||
					*a[AttributeID].StringValue != ms[0].ID || *a[AttributeAttempt].StringValue != "1" {
					t.Errorf("attributes %v", a)
				}
				if suffix != "" && (got[0].Attributes["MessageGroupId"] != "g" || got[0].Attributes["MessageDeduplicationId"] != ms[0].ID) {
					t.Errorf("attributes %v", got[0].Attributes)
				}
			})
		})
	}
}

func attributesOf(pairs ...string) map[string]types.MessageAttributeValue {
	a := map[string]types.MessageAttributeValue{}
	for i := 0; i < len(pairs); i += 2 {
		a[pairs[i]] = types.MessageAttributeValue{DataType: aws.String("String"), StringValue: &pairs[i+1]}
	}
	return a
}

func (s *stage) receiveDead(suffix string) []types.Message {
	s.t.Helper()
	out, err := s.ReceiveMessage(s.t.Context(), &sqs.ReceiveMessageInput{QueueUrl: aws.String(sqstest.URL("dead" + suffix)), MaxNumberOfMessages: 10})
	if err != nil {
		s.t.Fatal(err)
	}
	return out.Messages
}

// TestDeadLetterFits: the attributes of the message itself go first, and a text that SQS does not take is made one that it does.
func TestDeadLetterFits(t *testing.T) {
	onStage(t, "", func(c *Config) { c.DeadLetter = "dead" }, func(t *testing.T, s *stage) {
		var pairs []string
		for i := range 9 {
			pairs = append(pairs, fmt.Sprint("k", i), "v")
		}
		for _, body := range []string{"1", strings.Repeat("x", 1<<20-200)} {
			in := &sqs.SendMessageInput{QueueUrl: aws.String(sqstest.URL(s.queue)), MessageBody: &body, MessageAttributes: attributesOf(pairs...)}
			if _, err := s.SendMessage(t.Context(), in); err != nil {
				t.Fatal(err)
			}
		}
		r := s.open()
		ms, err := r.Fetch(t.Context(), 10)
		if err != nil {
			t.Fatal(err)
		}
		list := settlements(sources.Reject, ms...)
		for i := range list {
			list[i].Err = errors.New("\x00bad \xff bytes " + strings.Repeat("ü", 1000))
		}
		if err := r.Settle(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		got := s.receiveDead("")
		slices.SortFunc(got, func(a, b types.Message) int { return len(*a.Body) - len(*b.Body) })
		if n := len(got[0].MessageAttributes); n != 10 {
			t.Errorf("%d attributes, want 10", n)
		}
		if text := *got[0].MessageAttributes[AttributeError].StringValue; len(text) > mostErrorText || !strings.HasPrefix(text, "\uFFFDbad \uFFFD bytes ü") {
			t.Errorf("error %q", text)
		}
		if n := len(got[1].MessageAttributes); n != 9 {
			t.Errorf("%d attributes on the message that has no room for more, want its own 9", n)
		}
	})
}

// TestRedrive: what is given up is left to the queue's policy, with a delay that grows.
func TestRedrive(t *testing.T) {
	onStage(t, "", func(c *Config) { c.Redrive = true }, func(t *testing.T, s *stage) {
		if _, err := s.source.lookUp(t.Context(), s.queue); err == nil {
			t.Error("a queue without a policy was opened")
		}
		s.Create(s.queue, map[string]string{"RedrivePolicy": sqstest.RedrivePolicy("dead", 3)})
		send(s, s.queue, "", "1")
		r := s.open()
		var last time.Duration
		for i := range 3 {
			start := time.Now()
			ms := s.fetch(r, 1, "1")
			if d := time.Since(start); i > 0 && d <= last/2 || ms[0].Attempt != i+1 {
				t.Errorf("attempt %d after %v, before that %v", ms[0].Attempt, d, last)
			} else {
				last = d
			}
			err := r.Settle(t.Context(), settlements(sources.Reject, ms...)) // it is given up the last time, and not before
			if more := i < 2; more != (err != nil) || more != errors.Is(err, sources.ErrRedelivered) {
				t.Errorf("rejection %d: %v", i+1, err)
			}
		}
		s.none(r, time.Hour)
		s.left("dead", "1")
		if _, err := s.source.Names([]string{"a.fifo"}); err == nil {
			t.Error("Redrive was accepted for a FIFO queue")
		}
	})
}

// TestGivenBack: what a node gives back is there at once for the next, in order, and has burnt one receive.
func TestGivenBack(t *testing.T) {
	onStage(t, fifoSuffix, nil, func(t *testing.T, s *stage) {
		for i := range 5 {
			send(s, s.queue, "g", fmt.Sprintf("%02d", i))
			send(s, s.queue, "h", fmt.Sprintf("%02d", i))
		}
		r := s.open()
		ms := s.fetch(r, 10, "00", "00")
		seen := watch[changes](s.Server)
		s.settle(r, sources.Release, ms...)
		s.close(r)
		ins, _ := seen.all()
		if len(ins) == 0 || len(ins) > 2 {
			t.Fatalf("given back in %d calls", len(ins))
		}
		for _, in := range ins {
			last := map[bool]int64{}
			for _, e := range in.Entries {
				hex, _, _ := strings.Cut(*e.ReceiptHandle, "-")
				id, _ := strconv.ParseInt(hex, 16, 64) // odd for g, even for h
				if before := last[id%2 == 0]; e.VisibilityTimeout != 0 || before > 0 && id > before {
					t.Errorf("%d after %d, visibility %d", id, before, e.VisibilityTimeout)
				}
				last[id%2 == 0] = id
			}
		}
		r = s.open()
		again := s.fetch(r, 10, "00", "00")
		if again[0].Attempt != 2 {
			t.Errorf("attempt %d: a receive that was given back counts", again[0].Attempt)
		}
	})
}

// TestQueueIsGone: there is nothing to settle any more, which is no error; Fetch says what has happened.
func TestQueueIsGone(t *testing.T) {
	onStage(t, "", func(c *Config) { c.DeadLetter = "dead" }, func(t *testing.T, s *stage) {
		for i := range 3 {
			send(s, s.queue, "", fmt.Sprint(i))
		}
		r := s.open()
		ms := s.fetch(r, 10, "0", "1", "2")
		s.Remove(s.queue)
		s.settle(r, sources.Done, ms[0])
		s.settle(r, sources.Retry, ms[1])
		s.trouble(r, time.Minute, sources.ErrGone)
		s.Create(s.queue, nil)
		send(s, s.queue, "", "new")
		var got []string
		for len(got) == 0 {
			again, err := r.Fetch(t.Context(), 1)
			if err != nil && !errors.Is(err, sources.ErrGone) {
				var no *refusal
				if !errors.As(err, &no) {
					t.Fatal(err)
				}
			}
			for _, m := range again {
				got = append(got, string(m.Body))
			}
		}
		if got[0] != "new" {
			t.Fatalf("got %q", got)
		}
	})
}

// TestRevokedRights: a deletion that is refused is an error, and the message stays in hand for another try.
func TestRevokedRights(t *testing.T) {
	onStage(t, "", nil, func(t *testing.T, s *stage) {
		send(s, s.queue, "", "1")
		r := s.open()
		ms := s.fetch(r, 1, "1")
		denied := sqstest.Error("AccessDenied", "no right to delete")
		refuse(s.Server, "DeleteMessageBatch", denied)
		var some *sources.SettleError
		if err := r.Settle(t.Context(), settlements(sources.Done, ms...)); !errors.As(err, &some) || !errors.Is(err, denied) {
			t.Fatalf("Settle: %v", err)
		}
		time.Sleep(5 * time.Minute)
		if _, inFlight := s.Counts(s.queue); inFlight != 1 {
			t.Fatal("it was not kept invisible")
		}
		s.Intercept(nil)
		s.settle(r, sources.Done, ms...)
		s.left(s.queue)
	})
}

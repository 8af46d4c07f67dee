package sqs

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
)

// Attributes of a message in the dead-letter queue, beside its own. SQS allows ten; those that find no room are left out, the last first.
const (
	AttributeError   = "rebalancer-error"   // what the last handler returned, its first 1,000 bytes
	AttributeQueue   = "rebalancer-queue"   // where it came from
	AttributeID      = "rebalancer-id"      // its id there
	AttributeAttempt = "rebalancer-attempt" // how often it was tried, a number
)

const (
	mostAttributes = 10
	mostErrorText  = 1000
)

// errComesAgain: a message is not ours any more, so that it comes again, and is not sent to the dead-letter queue.
var errComesAgain = errors.New("it comes again")

// rejectJobs sends messages to the dead-letter queue, those of a message group in their order, and deletes each only once it is there.
func (r *reader) rejectJobs(ctx context.Context, jobs []job) []error {
	errs := make([]error, len(jobs))
	slots := make(chan struct{}, parallelCalls)
	var wg sync.WaitGroup
	for _, order := range byLane(jobs) {
		slots <- struct{}{}
		wg.Go(func() { r.deadLetterInOrder(ctx, jobs, order, errs); <-slots })
	}
	wg.Wait()
	var sent []*entry
	var at []int
	for i := range jobs {
		switch errs[i] {
		case nil:
			sent, at = append(sent, jobs[i].entry), append(at, i)
		case errComesAgain:
			errs[i] = nil
		}
	}
	for k, err := range r.delete(ctx, sent) {
		errs[at[k]] = r.settledAnyway(jobs[at[k]], err)
	}
	return errs
}

// byLane gives the indexes of jobs, for each lane in the order of its messages.
func byLane(jobs []job) map[*lane][]int {
	lanes := map[*lane][]int{}
	for i, j := range jobs {
		lanes[j.entry.lane] = append(lanes[j.entry.lane], i)
	}
	for _, order := range lanes {
		slices.SortFunc(order, func(a, b int) int { return lastFirst(jobs[b].entry, jobs[a].entry) })
	}
	return lanes
}

// deadLetterInOrder sends messages of one lane on. When one cannot be sent, those behind it wait for it.
func (r *reader) deadLetterInOrder(ctx context.Context, jobs []job, order []int, errs []error) {
	for k, i := range order {
		errs[i] = r.deadLetter(ctx, jobs[i])
		if errs[i] == nil || errs[i] == errComesAgain {
			continue
		}
		for _, behind := range order[k+1:] {
			errs[behind] = fmt.Errorf("it waits for message %q of its group: %w", jobs[i].entry.id, errs[i])
		}
		return
	}
}

// deadLetter sends one message on, unless that has happened before and only its deletion failed. In a FIFO queue it keeps its group, and its id is
// what duplicates are known by: where the answer is lost, the second copy is dropped by SQS.
func (r *reader) deadLetter(ctx context.Context, j job) error {
	e := j.entry
	if e.sent {
		return nil
	}
	until, ours := r.stillOurs(e)
	if !ours {
		return errComesAgain
	}
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	ctx, cancelCall := context.WithTimeout(ctx, callTimeout)
	defer cancelCall()
	in := &sqs.SendMessageInput{
		QueueUrl: &r.q.deadLetter, MessageBody: e.raw.Body,
		MessageAttributes: deadAttributes(r.q.name, j),
	}
	if r.q.fifo {
		in.MessageGroupId, in.MessageDeduplicationId = &e.lane.group, &e.id
	}
	_, err := r.s.cfg.Client.SendMessage(ctx, in)
	if tooLong(err) && len(in.MessageAttributes) > len(e.raw.MessageAttributes) {
		in.MessageAttributes = e.raw.MessageAttributes // as it came, at least
		_, err = r.s.cfg.Client.SendMessage(ctx, in)
	}
	if err != nil {
		return fmt.Errorf("dead-letter queue: %w", err)
	}
	e.sent = true
	return nil
}

// stillOurs looks again, after extensions were waited for, and says until when a message is invisible to others at least.
func (r *reader) stillOurs(e *entry) (until time.Time, ours bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !e.stale && past(e.until.Add(-r.s.cfg.margin())) {
		r.lose(e.lane, errFrozen)
	}
	return e.until, !e.stale
}

// tooLong tells whether SQS refused what a message consists of, such as its length.
func tooLong(err error) bool {
	var api smithy.APIError
	return errors.As(err, &api) && slices.Contains([]string{"InvalidParameterValue", "InvalidParameterValueException", "InvalidMessageContents"}, api.ErrorCode())
}

func deadAttributes(queue string, j job) map[string]types.MessageAttributeValue {
	a := map[string]types.MessageAttributeValue{}
	maps.Copy(a, j.entry.raw.MessageAttributes)
	text := func(kind, value string) types.MessageAttributeValue {
		return types.MessageAttributeValue{DataType: aws.String(kind), StringValue: aws.String(value)}
	}
	reason := "given up"
	if j.s.Err != nil {
		reason = j.s.Err.Error()
	}
	attempt := j.s.Message.Attempt
	for _, own := range []struct {
		name  string
		value types.MessageAttributeValue
	}{
		{AttributeError, text("String", printable(reason, mostErrorText))}, {AttributeQueue, text("String", queue)},
		{AttributeID, text("String", j.entry.id)}, {AttributeAttempt, text("Number", strconv.Itoa(attempt))},
	} {
		if _, there := a[own.name]; there || len(a) < mostAttributes {
			a[own.name] = own.value
		}
	}
	return a
}

// printable is a text that SQS takes, of at most so many bytes and not empty.
func printable(s string, most int) string {
	s = strings.Map(func(c rune) rune {
		if c < ' ' && c != '\t' && c != '\n' && c != '\r' || c == '\uFFFE' || c == '\uFFFF' {
			return '\uFFFD'
		}
		return c
	}, strings.ToValidUTF8(s, "\uFFFD"))
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "")
	}
	if s == "" {
		return "?"
	}
	return s
}

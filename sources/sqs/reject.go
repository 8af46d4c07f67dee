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

// rejectJobs sends messages to the dead-letter queue, and deletes each only once it is there.
func (r *reader) rejectJobs(ctx context.Context, jobs []job) []error {
	errs := make([]error, len(jobs))
	slots := make(chan struct{}, parallelCalls)
	var wg sync.WaitGroup
	for i, j := range jobs {
		slots <- struct{}{}
		wg.Go(func() { errs[i] = r.deadLetter(ctx, j); <-slots })
	}
	wg.Wait()
	var sent []*entry
	var at []int
	for i := range jobs {
		if errs[i] == nil {
			sent, at = append(sent, jobs[i].entry), append(at, i)
		}
	}
	for k, err := range r.delete(ctx, sent) {
		errs[at[k]] = r.settledAnyway(sent[k], err)
	}
	return errs
}

// deadLetter sends one message on. In a FIFO queue it keeps its group, and its id is what duplicates are known by: when the
// deletion afterwards fails, the second copy is dropped by SQS.
func (r *reader) deadLetter(ctx context.Context, j job) error {
	e := j.entry
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
	return nil
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

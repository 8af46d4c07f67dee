package sqstest

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// DeleteMessageBatch deletes messages by their receipts.
func (s *Server) DeleteMessageBatch(ctx context.Context, in *sqs.DeleteMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error) {
	ids := make([]string, len(in.Entries))
	for i, e := range in.Entries {
		ids[i] = aws.ToString(e.Id)
	}
	out := &sqs.DeleteMessageBatchOutput{Failed: []types.BatchResultErrorEntry{}}
	err := s.batch(ctx, "DeleteMessageBatch", in, in.QueueUrl, ids, func(q *queue, i int) {
		if err := s.delete(q, aws.ToString(in.Entries[i].ReceiptHandle)); err != nil {
			out.Failed = append(out.Failed, *failed(ids[i], err))
			return
		}
		out.Successful = append(out.Successful, types.DeleteMessageBatchResultEntry{Id: &ids[i]})
	})
	if err != nil {
		return nil, err
	}
	return out, s.end(ctx)
}

// DeleteMessage deletes one message.
func (s *Server) DeleteMessage(ctx context.Context, in *sqs.DeleteMessageInput, _ ...func(*sqs.Options)) (*sqs.DeleteMessageOutput, error) {
	err := s.batch(ctx, "DeleteMessage", in, in.QueueUrl, []string{"0"}, nil)
	if err == nil {
		s.mu.Lock()
		q, gone := s.locate(in.QueueUrl)
		if err = gone; gone == nil {
			if no := s.delete(q, aws.ToString(in.ReceiptHandle)); no != nil {
				err = Error(no.code, "%s", no.text)
			}
		}
		s.mu.Unlock()
	}
	if err != nil {
		return nil, err
	}
	return &sqs.DeleteMessageOutput{}, s.end(ctx)
}

// ChangeMessageVisibilityBatch sets when messages become visible, from now on.
func (s *Server) ChangeMessageVisibilityBatch(ctx context.Context, in *sqs.ChangeMessageVisibilityBatchInput, _ ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
	ids := make([]string, len(in.Entries))
	for i, e := range in.Entries {
		ids[i] = aws.ToString(e.Id)
	}
	out := &sqs.ChangeMessageVisibilityBatchOutput{Failed: []types.BatchResultErrorEntry{}}
	err := s.batch(ctx, "ChangeMessageVisibilityBatch", in, in.QueueUrl, ids, func(q *queue, i int) {
		e := in.Entries[i]
		if err := q.change(aws.ToString(e.ReceiptHandle), time.Duration(e.VisibilityTimeout)*time.Second); err != nil {
			out.Failed = append(out.Failed, *failed(ids[i], err))
			return
		}
		out.Successful = append(out.Successful, types.ChangeMessageVisibilityBatchResultEntry{Id: &ids[i]})
	})
	if err != nil {
		return nil, err
	}
	return out, s.end(ctx)
}

// batch checks the entries of a call and carries them out, one by one.
func (s *Server) batch(ctx context.Context, call string, in any, url *string, ids []string, one func(q *queue, i int)) error {
	if err := s.begin(ctx, call, in); err != nil {
		return err
	}
	if len(ids) == 0 {
		return Error("AWS.SimpleQueueService.EmptyBatchRequest", "no entries")
	}
	if len(ids) > 10 {
		return Error("AWS.SimpleQueueService.TooManyEntriesInBatchRequest", "%d entries", len(ids))
	}
	different := map[string]bool{}
	for _, id := range ids {
		different[id] = true
	}
	if len(different) < len(ids) {
		return Error("AWS.SimpleQueueService.BatchEntryIdsNotDistinct", "%q", ids)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	q, err := s.locate(url)
	if err != nil {
		return err
	}
	for i := range ids {
		if one != nil {
			one(q, i)
		}
	}
	q.wake()
	return nil
}

// refused is why one entry is.
type refused struct{ code, text string }

func failed(id string, r *refused) *types.BatchResultErrorEntry {
	return &types.BatchResultErrorEntry{Id: &id, Code: &r.code, Message: &r.text, SenderFault: true}
}

func (s *Server) delete(q *queue, receipt string) *refused {
	m := q.find(receipt)
	now := time.Now()
	switch {
	case receipt == "":
		return &refused{"ReceiptHandleIsInvalid", "The input receipt handle is invalid."}
	case m == nil:
		return nil // deleted before, or the receipt is not the latest
	case q.fifo && !m.inFlight(now):
		return &refused{"InvalidParameterValue", "Value " + receipt + " for parameter ReceiptHandle is invalid. Reason: The receipt handle has expired."}
	}
	q.remove(m)
	q.wake()
	if s.observe != nil {
		s.observe(Deletion{Queue: q.name, ID: m.id, Group: m.group, Body: m.body, Receipt: receipt, At: now})
	}
	return nil
}

func (q *queue) change(receipt string, visibility time.Duration) *refused {
	m := q.find(receipt)
	now := time.Now()
	switch {
	case m == nil || !m.inFlight(now):
		return &refused{"InvalidParameterValue", "Value " + receipt + " for parameter ReceiptHandle is invalid. Reason: Message does not exist or is not available for visibility timeout change."}
	case visibility < 0 || visibility > mostHeld || now.Add(visibility).Sub(m.received) > mostHeld:
		return &refused{"InvalidParameterValue", "Total VisibilityTimeout for the message is beyond the limit [43200 seconds]"}
	}
	m.visibleAt = now.Add(visibility)
	q.flying[m] = true
	return nil
}

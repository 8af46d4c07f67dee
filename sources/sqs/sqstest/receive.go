package sqstest

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// ReceiveMessage gives messages, or waits for them.
func (s *Server) ReceiveMessage(ctx context.Context, in *sqs.ReceiveMessageInput, _ ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error) {
	if err := s.begin(ctx, "ReceiveMessage", in); err != nil {
		return nil, err
	}
	most := int(in.MaxNumberOfMessages)
	if most == 0 {
		most = 1
	}
	if most < 0 || most > 10 || in.WaitTimeSeconds < 0 || in.WaitTimeSeconds > 20 || in.VisibilityTimeout < 0 || in.VisibilityTimeout > int32(mostHeld/time.Second) {
		return nil, Error("InvalidParameterValue", "a number out of range")
	}
	deadline := time.Now().Add(time.Duration(in.WaitTimeSeconds) * time.Second)
	for {
		ms, changed, next, err := s.tryReceive(in, most)
		if err != nil {
			return nil, err
		}
		if left := time.Until(deadline); len(ms) > 0 || left <= 0 {
			out := &sqs.ReceiveMessageOutput{Messages: ms}
			return out, s.end(ctx)
		} else if err := await(ctx, changed, min(left, next)); err != nil {
			return nil, err
		}
	}
}

func await(ctx context.Context, changed <-chan struct{}, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-changed:
	case <-t.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// tryReceive gives what there is, and says what to wait for.
func (s *Server) tryReceive(in *sqs.ReceiveMessageInput, most int) (ms []types.Message, changed <-chan struct{}, next time.Duration, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q, err := s.locate(in.QueueUrl)
	if err != nil {
		return nil, nil, 0, err
	}
	now := time.Now()
	visibility := q.visibility
	if in.VisibilityTimeout > 0 {
		visibility = time.Duration(in.VisibilityTimeout) * time.Second
	}
	given := q.replay(in.ReceiveRequestAttemptId, now, visibility)
	if given == nil {
		if given, err = s.receive(q, now, visibility, most, in.WaitTimeSeconds == 0); err != nil {
			return nil, nil, 0, err
		}
		if in.ReceiveRequestAttemptId != nil && len(given) > 0 {
			a := attempt{at: now}
			for _, m := range given {
				a.receipts = append(a.receipts, m.receipt)
			}
			q.attempts[*in.ReceiveRequestAttemptId] = a
		}
	}
	for _, m := range given {
		ms = append(ms, m.out(q.fifo))
	}
	next = time.Hour
	if at, some := q.nextVisible(now); some {
		next = at.Sub(now)
	}
	return ms, q.changed, next, nil
}

// replay is what an attempt gave before, as far as it is still in flight.
func (q *queue) replay(id *string, now time.Time, visibility time.Duration) []*message {
	if !q.fifo || id == nil {
		return nil
	}
	a, ok := q.attempts[*id]
	if !ok || now.Sub(a.at) > dedupWindow {
		return nil
	}
	var ms []*message
	for _, receipt := range a.receipts {
		if m := q.find(receipt); m != nil && m.inFlight(now) {
			m.visibleAt = now.Add(visibility)
			ms = append(ms, m)
		}
	}
	return ms
}

// receive takes messages that may be given, and moves to the dead-letter queue what was received too often.
func (s *Server) receive(q *queue, now time.Time, visibility time.Duration, most int, short bool) ([]*message, error) {
	deadName, times := q.redrive()
	dead := s.queues[deadName]
	_, inFlight := q.counts(now)
	var given, over []*message
	refused := false
	for m := range q.candidates(now) { // which does not change meanwhile
		if len(given) == most {
			break
		}
		if dead != nil && m.count >= times {
			over = append(over, m)
			continue
		}
		if refused = inFlight+len(given) >= q.limit; refused {
			break
		}
		m.give(now, visibility)
		given = append(given, m)
	}
	for _, m := range given {
		q.flying[m] = true
	}
	for _, m := range over {
		q.remove(m)
		m.source, m.count, m.receipt = ARN(q.name), 0, ""
		if dead.fifo {
			dead.sequence++
			m.sent, m.dedup, m.sequence = now, m.id, dead.number()
		}
		dead.messages = append(dead.messages, m)
		dead.byID[m.id] = m
		dead.wake()
	}
	if refused && len(given) == 0 && short && !q.fifo {
		return nil, Error("OverLimit", "too many messages in flight")
	}
	return given, nil
}

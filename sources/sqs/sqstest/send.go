package sqstest

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// mostBytes is the greatest message, with its attributes.
const mostBytes = 1 << 20

// Send sends a text, to a FIFO queue with a group; each is a message of its own. It fails when there is no such queue, or SQS would not take the message.
func (s *Server) Send(queue, group, body string) (id string, err error) {
	in := &sqs.SendMessageInput{QueueUrl: aws.String(URL(queue)), MessageBody: &body}
	if group != "" {
		in.MessageGroupId = &group
	}
	out, err := s.send(in, true)
	if err != nil {
		return "", fmt.Errorf("sqstest: send to queue %q: %w", queue, err)
	}
	return *out.MessageId, nil
}

// SendMessage puts a message into a queue.
func (s *Server) SendMessage(ctx context.Context, in *sqs.SendMessageInput, _ ...func(*sqs.Options)) (*sqs.SendMessageOutput, error) {
	if err := s.begin(ctx, "SendMessage", in); err != nil {
		return nil, err
	}
	out, err := s.send(in, false)
	if err != nil {
		return nil, err
	}
	return out, s.end(ctx)
}

func (s *Server) send(in *sqs.SendMessageInput, unique bool) (*sqs.SendMessageOutput, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q, err := s.locate(in.QueueUrl)
	if err != nil {
		return nil, err
	}
	s.serial++
	now := time.Now()
	m := &message{
		id: fmt.Sprintf("%08x-0000-4000-8000-000000000000", s.serial), body: aws.ToString(in.MessageBody), attributes: in.MessageAttributes,
		group: aws.ToString(in.MessageGroupId), dedup: aws.ToString(in.MessageDeduplicationId), sent: now, visibleAt: now,
	}
	m.md5 = sum(m.body)
	if why := m.wrong(); why != "" {
		return nil, Error("InvalidParameterValue", "%s", why)
	}
	if q.fifo {
		if unique && m.dedup == "" {
			m.dedup = m.id
		}
		if m.dedup == "" && q.attributes["ContentBasedDeduplication"] == "true" {
			m.dedup = m.md5
		}
		if m.group == "" || m.dedup == "" {
			return nil, Error("MissingParameter", "a FIFO queue needs MessageGroupId and MessageDeduplicationId")
		}
		if first, ok := q.seen[m.dedup]; ok && now.Sub(first.at) < dedupWindow {
			return first.m.answer(), nil
		}
		q.sequence++
		m.sequence = q.number()
		q.seen[m.dedup] = seenID{now, m}
	}
	q.messages = append(q.messages, m)
	q.byID[m.id] = m
	q.wake()
	return m.answer(), nil
}

func (m *message) answer() *sqs.SendMessageOutput {
	id, md5 := m.id, m.md5
	out := &sqs.SendMessageOutput{MessageId: &id, MD5OfMessageBody: &md5}
	if m.sequence != "" {
		out.SequenceNumber = aws.String(m.sequence)
	}
	return out
}

// wrong is what is not allowed in a message.
func (m *message) wrong() string {
	size := len(m.body)
	for k, v := range m.attributes {
		size += len(k) + len(aws.ToString(v.DataType)) + len(aws.ToString(v.StringValue)) + len(v.BinaryValue)
		if v.DataType == nil || v.StringValue != nil && *v.StringValue == "" {
			return "the attribute " + k + " has no type or no value"
		}
	}
	switch {
	case m.body == "":
		return "the body is empty"
	case size > mostBytes:
		return fmt.Sprintf("One or more parameters are invalid. Reason: Message must be shorter than %d bytes.", mostBytes)
	case len(m.attributes) > 10:
		return "Number of message attributes exceeds the allowed maximum [10]."
	}
	return ""
}

// GetQueueUrl looks a queue up.
func (s *Server) GetQueueUrl(ctx context.Context, in *sqs.GetQueueUrlInput, _ ...func(*sqs.Options)) (*sqs.GetQueueUrlOutput, error) {
	if err := s.begin(ctx, "GetQueueUrl", in); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	name := aws.ToString(in.QueueName)
	if a := in.QueueOwnerAWSAccountId; a != nil && *a != Account {
		name = ""
	}
	q, err := s.locate(aws.String(path.Join("/", name)))
	if err != nil {
		return nil, err
	}
	return &sqs.GetQueueUrlOutput{QueueUrl: aws.String(URL(q.name))}, nil
}

// GetQueueAttributes gives all attributes, whichever are asked for.
func (s *Server) GetQueueAttributes(ctx context.Context, in *sqs.GetQueueAttributesInput, _ ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error) {
	if err := s.begin(ctx, "GetQueueAttributes", in); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	q, err := s.locate(in.QueueUrl)
	if err != nil {
		return nil, err
	}
	visible, inFlight := q.counts(time.Now())
	a := map[string]string{
		"ApproximateNumberOfMessages": strconv.Itoa(visible), "ApproximateNumberOfMessagesNotVisible": strconv.Itoa(inFlight),
		"QueueArn": ARN(q.name), "VisibilityTimeout": strconv.Itoa(int(q.visibility / time.Second)),
	}
	for k, v := range q.attributes {
		a[k] = v
	}
	if q.fifo {
		a["FifoQueue"] = "true"
	}
	return &sqs.GetQueueAttributesOutput{Attributes: a}, nil
}

// ListQueues lists queues by prefix, MaxResults on a page.
func (s *Server) ListQueues(ctx context.Context, in *sqs.ListQueuesInput, _ ...func(*sqs.Options)) (*sqs.ListQueuesOutput, error) {
	if err := s.begin(ctx, "ListQueues", in); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	for name := range s.queues {
		if strings.HasPrefix(name, aws.ToString(in.QueueNamePrefix)) && name > aws.ToString(in.NextToken) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	out := &sqs.ListQueuesOutput{}
	for _, name := range names {
		if in.MaxResults != nil && len(out.QueueUrls) == int(*in.MaxResults) {
			last := out.QueueUrls[len(out.QueueUrls)-1]
			out.NextToken = aws.String(path.Base(last))
			break
		}
		out.QueueUrls = append(out.QueueUrls, URL(name))
	}
	return out, nil
}

// ListQueueTags gives a queue's tags.
func (s *Server) ListQueueTags(ctx context.Context, in *sqs.ListQueueTagsInput, _ ...func(*sqs.Options)) (*sqs.ListQueueTagsOutput, error) {
	if err := s.begin(ctx, "ListQueueTags", in); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	q, err := s.locate(in.QueueUrl)
	if err != nil {
		return nil, err
	}
	return &sqs.ListQueueTagsOutput{Tags: q.tags}, nil
}

package sqstest

import (
	"context"
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/smithy-go"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// Account and Region are those of every Server.
const (
	Account = "123456789012"
	Region  = "eu-central-1"
)

// Server is one SQS. Its zero value is not usable, see New. Its methods that have the names of SQS's calls are those of a client; several
// clients may share a server. It is safe for concurrent use.
type Server struct {
	mu        sync.Mutex
	queues    map[string]*queue
	serial    int
	latency   time.Duration
	intercept func(call string, in any) error
	calls     map[string]int
	observe   func(Deletion)
}

// Deletion is one message that was deleted, for tests that check who did it and when.
type Deletion struct {
	Queue, ID, Group, Body, Receipt string
	At                              time.Time
}

// New makes a server without queues.
func New() *Server { return &Server{queues: map[string]*queue{}, calls: map[string]int{}} }

// SetLatency makes every call take so long at least, half of it before it is carried out. Defaults to 0.
func (s *Server) SetLatency(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.latency = d
}

// Intercept has f called before each call is carried out, with its name, such as "ReceiveMessage", and its input; several at once. An error is
// the answer of the call, which then does nothing. nil ends it.
func (s *Server) Intercept(f func(call string, in any) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.intercept = f
}

// OnDelete has f called for each message that is deleted.
func (s *Server) OnDelete(f func(Deletion)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.observe = f
}

// Calls is how often a call was made.
func (s *Server) Calls(call string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[call]
}

// Create makes a queue, with attributes as CreateQueue has them, such as "RedrivePolicy". One whose name ends in ".fifo" is a FIFO queue.
func (s *Server) Create(name string, attributes map[string]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := &queue{
		name: name, fifo: strings.HasSuffix(name, ".fifo"), attributes: map[string]string{}, visibility: 30 * time.Second, limit: defaultLimit,
		byID: map[string]*message{}, flying: map[*message]bool{}, seen: map[string]seenID{}, attempts: map[string]attempt{}, changed: make(chan struct{}),
	}
	for k, v := range attributes {
		q.attributes[k] = v
	}
	if n, err := strconv.Atoi(attributes["VisibilityTimeout"]); err == nil {
		q.visibility = time.Duration(n) * time.Second
	}
	s.queues[name] = q
}

// RedrivePolicy is the value of that attribute.
func RedrivePolicy(deadLetter string, maxReceiveCount int) string {
	b, _ := json.Marshal(map[string]any{"deadLetterTargetArn": ARN(deadLetter), "maxReceiveCount": maxReceiveCount})
	return string(b)
}

// ARN and URL are those of a queue.
func ARN(name string) string { return "arn:aws:sqs:" + Region + ":" + Account + ":" + name }

// URL is that of a queue.
func URL(name string) string {
	return "https://sqs." + Region + ".amazonaws.com/" + Account + "/" + name
}

// Tag sets tags of a queue.
func (s *Server) Tag(name string, tags map[string]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queues[name].tags = tags
}

// Limit sets how many messages of a queue can be in flight. Defaults to 120,000.
func (s *Server) Limit(name string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queues[name].limit = n
}

// Remove deletes a queue.
func (s *Server) Remove(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if q := s.queues[name]; q != nil {
		delete(s.queues, name)
		q.wake()
	}
}

// Bodies are those of all messages of a queue, in flight or not, in order.
func (s *Server) Bodies(name string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []string
	if q := s.queues[name]; q != nil {
		for _, m := range q.messages {
			all = append(all, m.body)
		}
	}
	return all
}

// Counts are the messages of a queue that wait, and those in flight.
func (s *Server) Counts(name string) (waiting, inFlight int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if q := s.queues[name]; q != nil {
		return q.counts(time.Now())
	}
	return 0, 0
}

// Twice makes the message of a standard queue with this body visible although it is in flight: standard queues deliver at least once.
func (s *Server) Twice(name, body string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.queues[name]
	for _, m := range q.messages {
		if m.body == body {
			m.visibleAt = time.Now()
		}
	}
	q.wake()
}

// Expire ends the visibility of what is in flight in a queue: of the messages with these bodies, or without any of all.
func (s *Server) Expire(name string, bodies ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.queues[name]
	now := time.Now()
	for _, m := range q.messages {
		if m.inFlight(now) && (len(bodies) == 0 || slices.Contains(bodies, m.body)) {
			m.visibleAt = now
		}
	}
	q.wake()
}

// begin counts a call, lets it take its time, and asks the interceptor.
func (s *Server) begin(ctx context.Context, call string, in any) error {
	s.mu.Lock()
	s.calls[call]++
	latency, intercept := s.latency, s.intercept
	s.mu.Unlock()
	if err := pause(ctx, latency/2); err != nil {
		return err
	}
	if intercept != nil {
		if err := intercept(call, in); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (s *Server) end(ctx context.Context) error {
	s.mu.Lock()
	latency := s.latency
	s.mu.Unlock()
	return pause(ctx, latency/2)
}

func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// locate finds a queue by its URL; s.mu is held.
func (s *Server) locate(url *string) (*queue, error) {
	if url != nil {
		if q := s.queues[(*url)[strings.LastIndex(*url, "/")+1:]]; q != nil {
			return q, nil
		}
	}
	text := "The specified queue does not exist."
	return nil, &types.QueueDoesNotExist{Message: &text}
}

// Error is an answer of the service, for Intercept: one of the client's fault, which is not tried again by the SDK.
func Error(code, format string, args ...any) error {
	return &smithy.GenericAPIError{Code: code, Message: fmt.Sprintf(format, args...), Fault: smithy.FaultClient}
}

func sum(s string) string {
	h := md5.Sum([]byte(s)) // what the protocol has, not for safety
	return hex.EncodeToString(h[:])
}

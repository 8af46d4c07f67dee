package sqs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/sources"
)

// callTimeout bounds every call that does not wait for messages: a server that is frozen still accepts connections.
const callTimeout = 10 * time.Second

// closeGrace is how long Close waits for calls that it cut off.
const closeGrace = time.Second

// Source reads queues of SQS. It is safe for concurrent use.
type Source struct {
	cfg  Config
	past func(time.Time) bool // past, but in tests of a process that stood still

	mu     sync.Mutex
	closed bool
	polls  sync.WaitGroup // receives that run, and what they brought after their reader was closed
	ctx    context.Context
	cancel context.CancelFunc
}

var (
	_ sources.Source     = (*Source)(nil)
	_ sources.Lagger     = (*Source)(nil)
	_ sources.Discoverer = (*Source)(nil)
	_ sources.Prefetcher = (*Source)(nil)
	_ sources.Keeper     = (*reader)(nil)
)

// New makes a source. It does no I/O and returns all that is wrong with its configuration.
func New(c Config) (*Source, error) {
	if err := c.complete(); err != nil {
		return nil, err
	}
	s := &Source{cfg: c, past: past}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s, nil
}

// DeadLetters is true when messages that are given up have somewhere to go: Config.DeadLetter or Config.Redrive.
func (s *Source) DeadLetters() bool { return s.cfg.DeadLetter != "" || s.cfg.Redrive }

// Prefetch is false: a receive costs an attempt.
func (s *Source) Prefetch() bool { return false }

// Close waits for the receives that are still on their way, for Config.Wait and 10 s at most, and gives back what they
// bring: a receive that is cut off can swallow messages until their visibility ends. Then it cuts them off, and fails when a
// client does not heed that within a second. It does not close Client.
func (s *Source) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	defer s.cancel()
	ended := make(chan struct{})
	go func() { s.polls.Wait(); close(ended) }()
	t := time.NewTimer(s.cfg.Wait + callTimeout)
	defer t.Stop()
	select {
	case <-ended:
		return nil
	case <-t.C:
	}
	s.cancel()
	t.Reset(closeGrace)
	select {
	case <-ended:
		return nil
	case <-t.C:
		return errors.New("sqs: close: calls of Config.Client went on although their contexts had ended; what they bring comes again when its visibility ends")
	}
}

// begin counts a receive; false when the source is closed.
func (s *Source) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.polls.Add(1)
	return true
}

// queue is what is known of a queue that exists.
type queue struct {
	name        string // canonical
	url         string
	fifo        bool
	maxReceives int    // of its redrive policy; 0 for none
	deadLetter  string // URL of Config.DeadLetter, "" for none
}

// Open looks the queue up, and its dead-letter queue, which must exist. It fails where Config.Account is set and not the client's.
func (s *Source) Open(ctx context.Context, c *rebalancer.Claim) (sources.Reader, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	closed := s.closed
	s.mu.Unlock()
	if closed {
		return nil, fmt.Errorf("sqs: open %q: %w", c.Resource, sources.ErrClosed)
	}
	q, err := s.lookUp(ctx, c.Resource)
	if err != nil {
		return nil, fmt.Errorf("sqs: open %q: %w", c.Resource, err)
	}
	return newReader(s, q, c), nil
}

func (s *Source) lookUp(ctx context.Context, name string) (queue, error) {
	canonical, err := s.canonical(name)
	if err != nil {
		return queue{}, err
	}
	q := queue{name: canonical}
	if q.url, err = s.url(ctx, canonical); err != nil {
		return queue{}, resourceError(err)
	}
	attributes, err := s.attributes(ctx, q.url, types.QueueAttributeNameAll)
	if err != nil {
		return queue{}, resourceError(err)
	}
	if err := s.checkAccount(ctx, q, attributes[string(types.QueueAttributeNameQueueArn)]); err != nil {
		return queue{}, err
	}
	q.fifo = isFIFO(canonical)
	q.maxReceives = policyOf(attributes).most
	if s.cfg.Redrive && q.maxReceives == 0 {
		return queue{}, errors.New("it has no redrive policy: give it one, or set Config.DeadLetter instead of Redrive")
	}
	account, plain := split(canonical)
	if dead := s.cfg.deadLetterOf(plain); dead != "" {
		if dead == plain && account == "" {
			return queue{}, fmt.Errorf("it is its own dead-letter queue %q: set another Config.DeadLetter", dead)
		}
		if q.deadLetter, err = s.url(ctx, dead); err != nil { // not ErrGone: it is the other queue that is missing
			return queue{}, fmt.Errorf("its dead-letter queue %q must exist: %w", dead, err)
		}
	}
	return q, nil
}

// policy is a redrive policy: the name of the dead-letter queue, and after how many receives a message goes there.
type policy struct {
	target string
	most   int
}

// policyOf is the policy in a queue's attributes; zero for none.
func policyOf(attributes map[string]string) (p policy) {
	var text struct {
		Target string      `json:"deadLetterTargetArn"`
		Most   json.Number `json:"maxReceiveCount"` // older tools write it in quotes
	}
	if json.Unmarshal([]byte(attributes[string(types.QueueAttributeNameRedrivePolicy)]), &text) == nil {
		p.target = text.Target[strings.LastIndexByte(text.Target, ':')+1:]
		p.most, _ = strconv.Atoi(text.Most.String())
	}
	return p
}

// url asks for the URL of a queue by its canonical name.
func (s *Source) url(ctx context.Context, canonical string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	account, name := split(canonical)
	in := &sqs.GetQueueUrlInput{QueueName: &name}
	if account != "" {
		in.QueueOwnerAWSAccountId = &account
	}
	out, err := s.cfg.Client.GetQueueUrl(ctx, in)
	if err != nil {
		return "", err
	}
	if out.QueueUrl == nil {
		return "", errors.New("the server gave no URL for it")
	}
	return *out.QueueUrl, nil
}

func (s *Source) attributes(ctx context.Context, url string, names ...types.QueueAttributeName) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	out, err := s.cfg.Client.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: &url, AttributeNames: names})
	if err != nil {
		return nil, err
	}
	return out.Attributes, nil
}

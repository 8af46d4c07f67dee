package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/sources"
)

// Source reads queues of one virtual host. It implements sources.Source, sources.Lagger and sources.Holder, and is safe
// for concurrent use.
type Source struct {
	settings
	consuming *link
	asking    *link // for Lag, while there is no other: the name of the one that consumes tells who does
	dead      *deadLetters
	types     types
	idle      time.Duration // after which a queue from which nothing comes is looked at

	mu      sync.Mutex
	closed  bool
	asks    int // calls that use asking
	readers map[*reader]struct{}
}

const idleLook = 30 * time.Second

// New checks cfg, all violations at once. It does no I/O: connections are made when the first queue is opened.
func New(cfg Config) (*Source, error) {
	s, err := cfg.check()
	if err != nil {
		return nil, err
	}
	src := &Source{settings: s, readers: map[*reader]struct{}{}, idle: idleLook}
	src.consuming = newLink(&src.settings, "consumes")
	src.asking = newLink(&src.settings, "asks")
	src.dead = newDeadLetters(&src.settings)
	return src, nil
}

// Names accepts names of queues as they are, each only once: 1 to 255 bytes of UTF-8.
func (s *Source) Names(resources []string) ([]string, error) {
	var errs []error
	seen := make(map[string]bool, len(resources))
	for _, name := range resources {
		if err := checkQueue(name); err != nil {
			errs = append(errs, fmt.Errorf("rabbitmq: queue %q: %w", name, err))
		} else if seen[name] {
			errs = append(errs, fmt.Errorf("rabbitmq: queue %q is listed twice; list it once", name))
		}
		seen[name] = true
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return append(make([]string, 0, len(resources)), resources...), nil
}

func checkQueue(name string) error {
	switch {
	case name == "":
		return errors.New("the name is empty")
	case len(name) > maxShort:
		return errors.New("the name has more than 255 bytes")
	case !utf8.ValidString(name):
		return errors.New("the name is not UTF-8")
	case strings.ContainsRune(name, 0):
		return errors.New("the name contains a zero byte")
	}
	return nil
}

// Open waits until nobody consumes the queue, for as long as the broker may need to notice that an earlier owner is gone,
// for the first Fetch to consume it. It fails with ErrGone when there is no such queue.
func (s *Source) Open(ctx context.Context, c *rebalancer.Claim) (sources.Reader, error) {
	if err := ctx.Err(); err != nil {
		return nil, s.openError(c.Resource, err)
	}
	if err := checkQueue(c.Resource); err != nil {
		return nil, s.openError(c.Resource, err)
	}
	r := newReader(s, c)
	if err := s.remember(r); err != nil {
		return nil, s.openError(c.Resource, err)
	}
	if err := r.start(ctx); err != nil {
		_ = r.Close(ctx)
		return nil, s.openError(c.Resource, err)
	}
	return r, nil
}

func (s *Source) openError(queue string, err error) error {
	return fmt.Errorf("rabbitmq: open queue %q: %w", queue, err)
}

func (s *Source) remember(r *reader) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return sources.ErrClosed
	}
	s.readers[r] = struct{}{}
	return nil
}

func (s *Source) forget(r *reader) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.readers, r)
}

// DeadLetters reports whether Config.DeadLetter is set.
func (s *Source) DeadLetters() bool { return !s.DeadLetter.none() }

// HeldFor is three heartbeats: for so long the broker may keep the messages of a node that froze or was cut off.
func (s *Source) HeldFor() time.Duration { return 3 * s.Heartbeat }

// Lag is the number of messages that are ready in the queue; those in a consumer's hands are not counted. It fails with
// ErrGone when there is no such queue.
func (s *Source) Lag(ctx context.Context, resource string) (int64, error) {
	c, err := s.consuming.current()
	if c == nil && err == nil {
		s.ask(1)
		defer s.ask(-1)
		c, err = s.asking.get(ctx, "rebalancer")
	}
	s.ask(0)
	if err == nil {
		var q amqp.Queue
		if q, err = inspect(ctx, c, resource); err == nil {
			return int64(q.Messages), nil
		}
	}
	return 0, fmt.Errorf("rabbitmq: lag of queue %q: %w", resource, err)
}

// ask counts the calls that use the connection that only asks, which ends when the other one is there.
func (s *Source) ask(n int) {
	c, _ := s.consuming.current()
	s.mu.Lock()
	s.asks += n
	idle := s.asks == 0
	s.mu.Unlock()
	if c != nil && idle {
		s.asking.rest()
	}
}

// Close closes all Readers and the connections; later calls fail with ErrClosed. Idempotent.
func (s *Source) Close() error {
	s.mu.Lock()
	s.closed = true
	readers := make([]*reader, 0, len(s.readers))
	for r := range s.readers {
		readers = append(readers, r)
	}
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	var wg sync.WaitGroup
	for _, r := range readers {
		wg.Go(func() { _ = r.Close(ctx) }) // what is not answered ends with the connection
	}
	wg.Wait()
	s.dead.close()
	s.asking.close()
	s.consuming.close()
	return nil
}

package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rebalancer-go/rebalancer/sources"
)

// inspect asks for a queue on a channel of its own: the broker closes the channel of a question about a queue that does
// not exist.
func inspect(ctx context.Context, c *conn, queue string) (amqp.Queue, error) {
	var q amqp.Queue
	err := c.aside(ctx, func(ch *amqp.Channel) (err error) {
		q, err = ch.QueueDeclarePassive(queue, false, false, false, false, nil)
		return err
	})
	if err != nil {
		return amqp.Queue{}, explain(err)
	}
	return q, nil
}

// ask is inspect on a channel that goes on to be used, when there is an answer.
func ask(ctx context.Context, c *conn, ch *amqp.Channel, queue string) (amqp.Queue, error) {
	found := make(chan amqp.Queue, 1)
	err := c.on(ctx, ch, func() error {
		q, err := ch.QueueDeclarePassive(queue, false, false, false, false, nil)
		if err == nil {
			found <- q
		}
		return err
	})
	if err != nil {
		return amqp.Queue{}, explain(err)
	}
	return <-found, nil
}

// explain gives an error of the broker the sentinel that belongs to it.
func explain(err error) error {
	var e *amqp.Error
	if !errors.As(err, &e) {
		return err
	}
	switch {
	case missing(e):
		return fmt.Errorf("%w: %w", sources.ErrGone, err)
	case e.Code == amqp.NotFound:
		return fmt.Errorf("the queue cannot be reached now: %w", err)
	case e.Code == amqp.ResourceLocked:
		return fmt.Errorf("the queue is exclusive to another connection: %w", err)
	}
	return err
}

// missing tells whether a queue does not exist. The broker says 404 also of one that is there, but whose node is down, or does not answer
// in time.
func missing(e *amqp.Error) bool {
	return e.Code == amqp.NotFound && strings.Contains(e.Reason, "no queue")
}

// free waits until the queue has no consumer and returns a channel. Beside another consumer no order can be promised: one
// that froze is let go by the broker within three heartbeats; one that stays is somebody else's.
func (r *reader) free(ctx context.Context, c *conn) (*amqp.Channel, error) {
	until := time.Now().Add(r.source.HeldFor() + time.Second)
	wait := 10 * time.Millisecond
	for n := 0; ; n++ {
		ch, err := c.channel(ctx)
		if err != nil {
			return nil, err
		}
		q, err := ask(ctx, c, ch, r.claim.Resource)
		if err != nil {
			r.source.types.forget(r.claim.Resource)
			return nil, err
		}
		if q.Consumers == 0 {
			return ch, nil
		}
		_ = c.call(ctx, ch.Close)
		if n == 5 {
			r.source.Logger.Warn("rabbitmq: the queue has another consumer; waiting for it to go",
				"queue", r.claim.Resource, "consumers", q.Consumers)
		}
		if time.Now().Add(wait).After(until) {
			return nil, fmt.Errorf("the queue has %d other consumers, which did not go within %v: only one group may consume a queue, and nothing beside it",
				q.Consumers, r.source.HeldFor())
		}
		if !sleep(ctx, wait) {
			return nil, fmt.Errorf("the queue has %d other consumers: %w", q.Consumers, ctx.Err())
		}
		wait = min(2*wait, 500*time.Millisecond)
	}
}

// errStream is why a stream is refused.
var errStream = errors.New("it is a stream, which a group cannot work: use a quorum or classic queue")

// facts are what there is to know about a queue: through the management API where it is configured. What was known before, or AMQP tells, must
// do where that does not answer soon; AMQP tells no more than the type, and that in passing.
func (s *Source) facts(ctx context.Context, c *conn, queue string) (facts, error) {
	f, known := s.types.get(queue)
	if m := s.management(); m != nil {
		soon, cancel := context.WithTimeout(ctx, managementHaste)
		told, err := m.queue(soon, queue)
		cancel()
		switch {
		case err == nil:
			f, known = told, true
		case ctx.Err() != nil:
			return facts{}, err
		default:
			s.Logger.Warn("rabbitmq: what is known of the queue, or AMQP tells, must do", "queue", queue, "error", err)
		}
	}
	if !known {
		var err error
		if f.kind, err = probe(ctx, c, queue); err != nil {
			return facts{}, err
		}
	}
	if f.kind == typeStream {
		return facts{}, errStream
	}
	s.types.put(queue, f)
	return f, nil
}

// probe asks for the type of a queue by an argument that only consumers of streams may have: the refusal names the type. It
// takes a channel of its own, which the refusal ends. "" when the broker does not tell.
func probe(ctx context.Context, c *conn, queue string) (string, error) {
	err := c.aside(ctx, func(ch *amqp.Channel) error {
		if err := ch.Qos(1, 0, false); err != nil {
			return err
		}
		_, err := ch.Consume(queue, "", false, false, false, false, amqp.Table{headerOffset: "next"})
		return err
	})
	if err == nil {
		return typeStream, nil
	}
	var e *amqp.Error
	if !errors.As(err, &e) || e.Code != amqp.PreconditionFailed {
		return "", explain(err)
	}
	for _, kind := range []string{typeClassic, typeQuorum} {
		if strings.Contains(e.Reason, "rabbit_"+kind+"_queue") {
			return kind, nil
		}
	}
	return "", nil
}

// types remembers what queues are, so that each is asked for once.
type types struct {
	mu    sync.Mutex
	known map[string]facts
}

func (t *types) get(queue string) (facts, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f, ok := t.known[queue]
	return f, ok
}

func (t *types) put(queue string, f facts) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.known == nil {
		t.known = map[string]facts{}
	}
	t.known[queue] = f
}

// forget is for a queue that is gone: the next of that name may be another.
func (t *types) forget(queue string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.known, queue)
}

// consume starts to consume on a channel, which is closed where that fails.
func (r *reader) consume(ctx context.Context, l *live, prefetch int) (<-chan amqp.Delivery, error) {
	l.consumers++ // with zeros before it: 3.10 returns what was sent to one consumer after the other, in the order of their tags as text
	l.tag = fmt.Sprintf("%s/%s/%d#%04d", cut(r.claim.Group, 100), cut(r.claim.Node, 100), r.claim.Fence, l.consumers)
	started := make(chan (<-chan amqp.Delivery), 1)
	err := l.conn.on(ctx, l.ch, func() error {
		if err := l.ch.Qos(prefetch, 0, false); err != nil {
			return err
		}
		ds, err := l.ch.Consume(r.claim.Resource, l.tag, false, false, false, false, nil)
		if err == nil {
			started <- ds
		}
		return err
	})
	if err != nil {
		return nil, explain(err)
	}
	return <-started, nil
}

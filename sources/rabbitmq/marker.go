package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// A marker is what Partitions puts between the messages of its queues when their number changes. A reader hands none out. When all
// before a marker is settled it lets the marker pass, which may take long; then it acknowledges the marker and goes on with what is behind.
//
// What one queue must know of another is told by tokens: queues without messages, made before the markers that name them. A marker
// that tells deletes its tokens, one that waits is not passed as long as one of its tokens exists. One that ends deletes the last of its tokens, and all
// where no message is behind it. All of that can be repeated.
type marker struct {
	kind   string
	tokens []string
}

// The kinds of markers.
const (
	tells = "tell"
	waits = "wait"
	ends  = "end"
)

const (
	headerMarker = "x-rebalancer-marker"
	headerTokens = "x-rebalancer-tokens"

	minPoll = 50 * time.Millisecond // between two looks at a token
	maxPoll = time.Second
)

// markerOf returns the marker that a delivery is, or nil for a message.
func markerOf(d *amqp.Delivery) *marker {
	kind, ok := d.Headers[headerMarker].(string)
	if !ok {
		return nil
	}
	m := &marker{kind: kind}
	list, _ := d.Headers[headerTokens].([]any)
	for _, t := range list {
		name, _ := t.(string)
		m.tokens = append(m.tokens, name)
	}
	return m
}

// publishing is the message that the marker travels as.
func (m *marker) publishing() amqp.Publishing {
	tokens := make([]any, len(m.tokens))
	for i, t := range m.tokens {
		tokens[i] = t
	}
	return amqp.Publishing{
		Headers: amqp.Table{headerMarker: m.kind, headerTokens: tokens}, DeliveryMode: amqp.Persistent, Timestamp: time.Now(),
		ContentType: "text/plain", Type: headerMarker, Body: []byte("a marker of rebalancer's partitions: whoever loses it loses their order"),
	}
}

// pass does what the marker is for. It returns nil when the reader may acknowledge the marker and go on. After an error it is called
// again, on a connection that works; after the end of ctx it is not, and the marker goes back to the queue.
func (m *marker) pass(ctx context.Context, c *conn) error {
	for _, t := range m.tokens {
		if !strings.HasPrefix(t, own) { // nobody deletes other queues by a header
			return fmt.Errorf("a marker of partitions names the queue %q, which is none of theirs: remove that message", t)
		}
	}
	var one func(context.Context, *conn, string) error
	switch m.kind {
	case tells, ends:
		one = deleteToken
	case waits:
		one = awaitToken
	default:
		return fmt.Errorf("a marker of partitions of the kind %q, which this version does not know: let newer nodes work this queue", m.kind)
	}
	for _, t := range m.tokens {
		if err := one(ctx, c, t); err != nil {
			return fmt.Errorf("a marker of partitions: queue %q: %w", t, err)
		}
	}
	return nil
}

// pass lets a marker pass.
func (r *reader) pass(ctx context.Context, l *live, e *entry) error {
	m := *e.marker
	if n := len(m.tokens); m.kind == ends && n > 1 {
		more, err := r.behind(ctx, l)
		if err != nil {
			return err
		}
		if more {
			m.tokens = m.tokens[n-1:]
		}
	}
	return m.pass(ctx, l.conn)
}

// behind tells whether something is in the queue behind the next entry: waiting, or already here. The broker counts only the former.
func (r *reader) behind(ctx context.Context, l *live) (bool, error) {
	for range 2 { // by the second answer on this channel, what left the queue before the first is here
		if !r.flush.send.within(ctx) { // a channel takes one question at a time
			return true, ctx.Err()
		}
		q, err := ask(context.WithoutCancel(ctx), l.conn, l.ch, r.claim.Resource) // to the end: a question that was cut short would end the channel
		r.flush.send.Unlock()
		if err != nil || q.Messages > 0 {
			return true, err
		}
		if !sleep(ctx, minPoll) { // the pump takes in what came
			return true, ctx.Err()
		}
		r.mu.Lock()
		more := l.window.next+1 < len(l.window.list)
		r.mu.Unlock()
		if more {
			return true, nil
		}
	}
	return false, nil
}

// deleteToken deletes a queue. One that is not there is no error.
func deleteToken(ctx context.Context, c *conn, name string) error {
	err := c.aside(ctx, func(ch *amqp.Channel) error {
		_, err := ch.QueueDelete(name, false, false, false)
		return err
	})
	var e *amqp.Error
	if errors.As(err, &e) && e.Code == amqp.AccessRefused {
		return fmt.Errorf("the user needs the right to configure queues named %s*: %w", own, err)
	}
	return err
}

// awaitToken returns when there is no queue of that name.
func awaitToken(ctx context.Context, c *conn, name string) error {
	for pause := minPoll; ; pause = min(2*pause, maxPoll) {
		there, err := exists(ctx, c, name)
		if err != nil || !there {
			return err
		}
		if !sleep(ctx, pause) {
			return ctx.Err()
		}
	}
}

// exists tells whether there is a queue.
func exists(ctx context.Context, c *conn, name string) (bool, error) {
	_, err := inspect(ctx, c, name)
	return thereAfter(err)
}

// thereAfter tells what the answer to a question about a queue means. A queue that cannot be reached is an error, never proof that there is
// none (see missing).
func thereAfter(err error) (bool, error) {
	var e *amqp.Error
	switch {
	case err == nil:
		return true, nil
	case errors.As(err, &e) && missing(e):
		return false, nil
	}
	return false, err
}

package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rebalancer-go/rebalancer"
)

// The headers that a message gets on its way to [DeadLetter].
const (
	HeaderError      = "x-rebalancer-error"       // the handler's error, at most 4 KiB
	HeaderQueue      = "x-rebalancer-queue"       // where the message came from
	HeaderExchange   = "x-rebalancer-exchange"    // to which it was published
	HeaderRoutingKey = "x-rebalancer-routing-key" // with which it was published
	HeaderAttempts   = "x-rebalancer-attempts"    // how often it was tried
	HeaderGroup      = "x-rebalancer-group"
	HeaderNode       = "x-rebalancer-node"
	HeaderFence      = "x-rebalancer-fence"
	HeaderTime       = "x-rebalancer-time" // when it was given up
)

const maxErrorText = 4 << 10

var (
	errReturned = errors.New("the broker returned it: no queue is bound for it there")
	errNacked   = errors.New("the broker refused it: a queue there is full or has no leader")
	errLimit    = errors.New("returned to the queue so often that the broker's delivery limit is near: its handler may kill the process")
)

// deadLetters publishes messages that were given up, on a connection of its own: a broker that is short of memory or disk
// takes nothing from a connection that publishes, not even acknowledgements. One at a time.
type deadLetters struct {
	s    *settings
	link *link
	turn chan struct{} // of capacity 1: held by who uses what follows

	conn    *conn
	ch      *amqp.Channel
	closed  chan *amqp.Error // why ch was closed, once
	returns chan amqp.Return
	checked atomic.Bool // the destination was there
}

func newDeadLetters(s *settings) *deadLetters {
	return &deadLetters{s: s, link: newLink(s, "dead letters"), turn: make(chan struct{}, 1)}
}

func (d *deadLetters) close() { d.link.close() }

// check makes sure that there is a destination, if one is wanted, until that was once so.
func (d *deadLetters) check(ctx context.Context, who string) error {
	if d.s.DeadLetter.none() || d.checked.Load() {
		return nil
	}
	return d.locked(ctx, who, func(context.Context) error { return nil })
}

// locked waits for its turn, as long as ctx lasts, and runs f, which is given the time of a call.
func (d *deadLetters) locked(ctx context.Context, who string, f func(context.Context) error) error {
	waiting, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	select {
	case d.turn <- struct{}{}:
		defer func() { <-d.turn }()
	case <-waiting.Done():
		return fmt.Errorf("dead letters: %w", waiting.Err())
	}
	if err := ctx.Err(); err != nil { // it may have been its turn as well: the claim may be lost
		return fmt.Errorf("dead letters: %w", err)
	}
	ctx, cancel = context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if !d.checked.Load() {
		if err := d.look(ctx, who); err != nil {
			return fmt.Errorf("dead letters: %w", err)
		}
		d.checked.Store(true)
	}
	if err := f(ctx); err != nil {
		return fmt.Errorf("dead letters: %w", err)
	}
	return nil
}

// look asks for the destination.
func (d *deadLetters) look(ctx context.Context, who string) error {
	c, err := d.link.get(ctx, who)
	if err != nil {
		return err
	}
	to := d.s.DeadLetter
	if to.Exchange == "" {
		if _, err = inspect(ctx, c, to.RoutingKey); err != nil {
			return fmt.Errorf("queue %q: declare it, or change Config.DeadLetter: %w", to.RoutingKey, plain(err))
		}
		return nil
	}
	err = c.aside(ctx, func(ch *amqp.Channel) error {
		return ch.ExchangeDeclarePassive(to.Exchange, amqp.ExchangeDirect, true, false, false, false, nil)
	})
	if err != nil {
		return fmt.Errorf("exchange %q: declare it, or change Config.DeadLetter: %w", to.Exchange, err)
	}
	return nil
}

// plain is an error without ErrGone: that would say that the queue to be read does not exist.
func plain(err error) error {
	var e *amqp.Error
	if errors.As(err, &e) {
		return e
	}
	return err
}

// put publishes one message and returns nil when the broker has it, in a queue.
func (d *deadLetters) put(ctx context.Context, c *rebalancer.Claim, e *entry, attempts int, why error) error {
	p := d.letter(c, &e.d, attempts, why)
	key := d.s.DeadLetter.RoutingKey
	if key == "" {
		key = e.d.RoutingKey
	}
	return d.locked(ctx, c.Group+"/"+c.Node, func(ctx context.Context) error {
		if err := d.ready(ctx, c.Group+"/"+c.Node); err != nil {
			return err
		}
		err := d.publish(ctx, key, p)
		if err != nil && !errors.Is(err, errReturned) && !errors.Is(err, errNacked) {
			d.drop() // what was not confirmed may still be: the next message must not be taken for it
		}
		return err
	})
}

// ready opens a channel that confirms.
func (d *deadLetters) ready(ctx context.Context, who string) error {
	c, err := d.link.get(ctx, who)
	if err != nil {
		return err
	}
	if c.stalled() {
		return errors.New("the broker is short of memory or disk and takes no messages")
	}
	if d.conn == c && d.ch != nil && !d.ch.IsClosed() {
		return nil
	}
	d.ch = nil
	ch, err := c.channel(ctx)
	if err != nil {
		return err
	}
	closed, returns := ch.NotifyClose(make(chan *amqp.Error, 1)), ch.NotifyReturn(make(chan amqp.Return, 1))
	if err := c.on(ctx, ch, func() error { return ch.Confirm(false) }); err != nil {
		return err
	}
	d.conn, d.ch, d.closed, d.returns = c, ch, closed, returns
	return nil
}

func (d *deadLetters) publish(ctx context.Context, key string, p amqp.Publishing) error {
	ch, closed, returns := d.ch, d.closed, d.returns // the call may outlast this one, and the use of the channel
	sending := make(chan *amqp.DeferredConfirmation, 1)
	err := d.conn.call(ctx, func() error {
		if err := ctx.Err(); err != nil {
			return err // nothing is to be published any more
		}
		s, err := ch.PublishWithDeferredConfirm(d.s.DeadLetter.Exchange, key, true, false, p)
		sending <- s
		return err
	})
	if errors.Is(err, amqp.ErrClosed) {
		return whyClosed(ctx, closed)
	}
	if err != nil {
		return err
	}
	sent := <-sending
	select {
	case <-sent.Done():
	case <-ctx.Done():
		return fmt.Errorf("not confirmed: %w", ctx.Err())
	}
	select {
	case _, ok := <-returns: // the broker returns a message before it confirms it
		if ok {
			return errReturned
		}
		return whyClosed(ctx, closed)
	default:
	}
	if ch.IsClosed() && !sent.Acked() {
		return whyClosed(ctx, closed)
	}
	if !sent.Acked() {
		return errNacked
	}
	return nil
}

// whyClosed is the broker's reason for closing a channel, such as that its exchange does not exist any more.
func whyClosed(ctx context.Context, closed <-chan *amqp.Error) error {
	select {
	case e := <-closed: // a closed channel is known to be so a moment before its reason is
		if e != nil {
			return fmt.Errorf("the broker closed the channel: %w", e)
		}
	case <-ctx.Done():
	}
	return amqp.ErrClosed
}

// drop gives the channel up, in the background.
func (d *deadLetters) drop() {
	c, ch := d.conn, d.ch
	d.ch = nil
	if c != nil && ch != nil {
		go func() { _ = c.call(context.Background(), ch.Close) }()
	}
}

// letter is the message as it goes to the dead-letter place: as it was published, but for what would make the broker do
// something with it there.
func (d *deadLetters) letter(c *rebalancer.Claim, m *amqp.Delivery, attempts int, why error) amqp.Publishing {
	headers := make(amqp.Table, len(m.Headers)+9)
	maps.Copy(headers, m.Headers)
	for _, h := range []string{headerCount, "CC", "BCC"} {
		delete(headers, h) // a count that is not of that queue; further destinations
	}
	reason := "none given"
	if why != nil {
		reason = why.Error()
	}
	maps.Copy(headers, amqp.Table{
		HeaderError: cut(reason, maxErrorText), HeaderQueue: c.Resource, HeaderExchange: m.Exchange, HeaderRoutingKey: m.RoutingKey,
		HeaderAttempts: int64(attempts), HeaderGroup: c.Group, HeaderNode: c.Node, HeaderFence: strconv.FormatInt(c.Fence, 10),
		HeaderTime: time.Now().UTC().Truncate(time.Second),
	})
	return amqp.Publishing{
		Headers: headers, Body: m.Body, ContentType: m.ContentType, ContentEncoding: m.ContentEncoding, DeliveryMode: amqp.Persistent,
		Priority: m.Priority, CorrelationId: m.CorrelationId, ReplyTo: m.ReplyTo, MessageId: m.MessageId, Timestamp: m.Timestamp,
		Type: m.Type, AppId: m.AppId, // not UserId, which must be that of the connection, nor Expiration
	}
}

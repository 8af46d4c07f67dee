package rabbitmq

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"

	amqp "github.com/rabbitmq/amqp091-go"
)

// headerNumber is the argument of a binding that records its place among those of the exchange, which decides about the keys of its queue: they were
// bound in this order, and are in no other.
const headerNumber = "x-rebalancer-partition"

// binding is one of the exchange, as the management API shows it.
type binding struct {
	Destination string         `json:"destination"`
	Type        string         `json:"destination_type"`
	Key         string         `json:"routing_key"`
	Arguments   map[string]any `json:"arguments"`
}

// count is how many partitions are bound. It refuses an exchange whose bindings are not what Partitions makes: with others nobody knows where a key is.
// It fails with errNotFound when there is no such exchange.
func (p *Partitions) count(ctx context.Context) (int, error) {
	var all []binding
	m := p.s.management()
	exchange := "/api/exchanges/" + m.vhostPath() + "/" + url.PathEscape(p.c.Exchange)
	var x struct{ Type string }
	if err := m.get(ctx, exchange, &x); err != nil {
		return 0, err
	}
	if x.Type != "x-consistent-hash" {
		return 0, fmt.Errorf("it is an exchange of type %s, and must be x-consistent-hash", x.Type)
	}
	if err := m.get(ctx, exchange+"/bindings/source", &all); err != nil {
		return 0, err
	}
	seen := map[int]bool{}
	for _, b := range all {
		n := p.number(b.Destination)
		at, _ := b.Arguments[headerNumber].(float64)
		if b.Type != "queue" || n < 0 || b.Arguments[headerNumber] == nil || int(at) != n || b.Key != weight || seen[n] {
			return 0, fmt.Errorf("its binding to %s %q is not one of partitions: an exchange of partitions has no other", b.Type, b.Destination)
		}
		seen[n] = true
	}
	for n := range len(seen) {
		if !seen[n] {
			return 0, fmt.Errorf("the binding to %q is missing, that to a later queue is there: the keys of the later ones moved when it went; the messages in the queues are no longer in the order of their keys. "+
				"Let the group empty all queues while nobody publishes, delete exchange and queues, and create them anew", p.queue(n))
		}
	}
	return len(seen), nil
}

// weight is the routing key of the bindings: the same share of the keys for each.
const weight = "1"

// change is one command under the lock, over one connection: a node of the broker that dies in the middle ends it.
type change struct {
	*Partitions
	conn *conn
	ch   *amqp.Channel // confirms
	back chan amqp.Return
	kind string     // of queues that are declared
	args amqp.Table // of partitions that are declared
	told []telling  // so far
}

var errBusy = errors.New("another command changes these partitions at this moment: wait for its end")

// begin takes the lock, which ends with the connection.
func (p *Partitions) begin(ctx context.Context) (*change, error) {
	if !p.busy.TryLock() {
		return nil, errBusy
	}
	c, err := p.exclude(ctx)
	if err != nil {
		p.busy.Unlock()
	}
	return c, err
}

func (p *Partitions) exclude(ctx context.Context) (*change, error) {
	conn, err := p.link.get(ctx, "rebalancer")
	if err != nil {
		return nil, err
	}
	ch, err := conn.channel(ctx)
	if err != nil {
		return nil, err
	}
	c := &change{Partitions: p, conn: conn, ch: ch, back: ch.NotifyReturn(make(chan amqp.Return, 1)), kind: p.c.Type, args: p.c.Arguments}
	if c.kind == "" {
		c.kind = typeQuorum
	}
	err = c.call(ctx, func() error {
		if _, err := ch.QueueDeclare(p.lock(), false, true, true, false, nil); err != nil {
			return err
		}
		return ch.Confirm(false)
	})
	var e *amqp.Error
	if errors.As(err, &e) && e.Code == amqp.ResourceLocked {
		return nil, errBusy
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

// end gives the lock back.
func (c *change) end(ctx context.Context) {
	_ = deleteToken(context.WithoutCancel(ctx), c.conn, c.lock())
	_ = c.conn.call(context.WithoutCancel(ctx), c.ch.Close)
	c.busy.Unlock()
}

// before is asked before each request.
func (c *change) before(ctx context.Context) error {
	if err := ctx.Err(); err != nil || c.fail == nil {
		return err
	}
	return c.fail()
}

func (c *change) call(ctx context.Context, f func() error) error {
	if err := c.before(ctx); err != nil {
		return err
	}
	return c.conn.call(ctx, f)
}

// declare makes a durable queue, unless it is there; args nil: without messages, for its existence alone.
func (c *change) declare(ctx context.Context, name string, args amqp.Table) error {
	all := amqp.Table{"x-queue-type": c.kind}
	for k, v := range args {
		all[k] = v
	}
	err := c.call(ctx, func() error {
		_, err := c.ch.QueueDeclare(name, true, false, false, false, all)
		return err
	})
	if err != nil {
		return fmt.Errorf("declare queue %q: %w", name, err)
	}
	return nil
}

// headerChange is the argument of a record that holds the id of the change that was begun.
const headerChange = "x-rebalancer-change"

// record makes a record, and returns the id of the change: of the one that was begun, where there is one.
func (c *change) record(ctx context.Context, name string) (id string, err error) {
	begun, err := c.exists(ctx, name)
	if err != nil {
		return "", err
	}
	if !begun {
		id = rand.Text()[:12]
		return id, c.declare(ctx, name, amqp.Table{headerChange: id})
	}
	var q listed
	m := c.s.management()
	if err := m.get(ctx, "/api/queues/"+m.vhostPath()+"/"+url.PathEscape(name), &q); err != nil {
		return "", err
	}
	id, ok := q.Arguments[headerChange].(string)
	if !ok || id == "" {
		return "", fmt.Errorf("queue %q has no argument %s: it is no record of this version; delete it when no command runs, and repeat the command that was not ended", name, headerChange)
	}
	return id, nil
}

// partition declares the queue of a number.
func (c *change) partition(ctx context.Context, n int) error {
	return c.declare(ctx, c.queue(n), c.args)
}

// adopt makes later queues like the first, but for what the configuration wants.
func (c *change) adopt(ctx context.Context) error {
	var q listed
	m := c.s.management()
	if err := m.get(ctx, "/api/queues/"+m.vhostPath()+"/"+url.PathEscape(c.queue(0)), &q); err != nil {
		return err
	}
	if c.c.Type == "" {
		c.kind = q.kind()
	}
	if c.c.Arguments != nil {
		return nil
	}
	c.args = amqp.Table{}
	for name, v := range q.Arguments {
		if n, ok := v.(float64); ok { // JSON knows no other numbers
			v = int64(n)
		}
		if name != "x-queue-type" {
			c.args[name] = v
		}
	}
	return nil
}

// bind adds a queue behind those that are bound. A binding that is there stays what it is.
func (c *change) bind(ctx context.Context, n int) error {
	err := c.call(ctx, func() error {
		return c.ch.QueueBind(c.queue(n), weight, c.c.Exchange, false, amqp.Table{headerNumber: int64(n)})
	})
	if err != nil {
		return fmt.Errorf("bind queue %q: %w", c.queue(n), err)
	}
	return nil
}

func (c *change) unbind(ctx context.Context, n int) error {
	err := c.call(ctx, func() error {
		return c.ch.QueueUnbind(c.queue(n), weight, c.c.Exchange, amqp.Table{headerNumber: int64(n)})
	})
	if err != nil {
		return fmt.Errorf("unbind queue %q: %w", c.queue(n), err)
	}
	return nil
}

// send puts a marker into a queue, past the exchange, and returns when the broker has it safe there.
func (c *change) send(ctx context.Context, queue string, m marker) error {
	err := c.call(ctx, func() error {
		ctx, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		confirm, err := c.ch.PublishWithDeferredConfirmWithContext(ctx, "", queue, true, false, m.publishing())
		if err != nil {
			return err
		}
		safe, err := confirm.WaitContext(ctx)
		if err == nil && !safe {
			err = errors.New("the broker refused it: see whether the queue is full")
		}
		select {
		case r := <-c.back: // comes before the confirmation
			err = fmt.Errorf("it was returned: %s", r.ReplyText)
		default:
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("put a marker into queue %q: %w", queue, err)
	}
	return nil
}

// exists tells whether a record, a token or a partition is there.
func (c *change) exists(ctx context.Context, name string) (bool, error) {
	if err := c.before(ctx); err != nil {
		return false, err
	}
	return exists(ctx, c.conn, name)
}

// ordered tells whether the queues take keys in the order in which they were bound. When all nodes of the broker were down, it has bound them again in any
// order.
func (c *change) ordered(ctx context.Context) (bool, error) {
	if err := c.before(ctx); err != nil {
		return false, err
	}
	err := c.conn.aside(ctx, func(ch *amqp.Channel) error {
		return ch.ExchangeDeclarePassive(c.witness(), amqp.ExchangeFanout, false, false, true, false, nil)
	})
	var e *amqp.Error
	if errors.As(err, &e) && e.Code == amqp.NotFound {
		return false, nil
	}
	return err == nil, err
}

// testify makes the witness of the order.
func (c *change) testify(ctx context.Context) error {
	return c.call(ctx, func() error {
		return c.ch.ExchangeDeclare(c.witness(), amqp.ExchangeFanout, false, false, true, false, nil)
	})
}

// idle is nil when no message waits in the queues, nor is in the hands of a consumer.
func (c *change) idle(ctx context.Context, n int) error {
	for i := range n {
		q, err := inspect(ctx, c.conn, c.queue(i))
		if err != nil {
			return err
		}
		if q.Messages > 0 {
			return fmt.Errorf("the broker was restarted and gives keys to other queues than before, and %d messages wait in queue %q: stop the publishers, let the group empty all queues, and repeat this", q.Messages, c.queue(i))
		}
		if q.Consumers == 0 {
			continue
		}
		if err := do([]func() error{
			func() error { return c.emptied(ctx, i) },
			func() error { return c.tidy(ctx, i) },
		}); err != nil {
			return err
		}
	}
	return nil
}

// forget deletes a record or a token.
func (c *change) forget(ctx context.Context, name string) error {
	if err := c.before(ctx); err != nil {
		return err
	}
	if err := deleteToken(ctx, c.conn, name); err != nil {
		return fmt.Errorf("delete queue %q: %w", name, err)
	}
	return nil
}

package rabbitmq

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// Create makes the exchange and n queues. Publish only when it has returned. An exchange that is there, of the right type and without bindings, is
// taken as it is. Where the n are there already it changes nothing, but for one case: when all nodes of the broker were down, they have bound the queues
// again in any order. Then Create binds them anew, if no message waits in them. Nothing may be published meanwhile.
func (p *Partitions) Create(ctx context.Context, n int) error {
	return p.changing(ctx, "create", n, func(c *change) error {
		begun, err := c.exists(ctx, c.creating())
		if err != nil {
			return err
		}
		have, err := p.count(ctx)
		switch {
		case errors.Is(err, errNotFound):
		case err != nil:
			return err
		case have == n && !begun:
			if ordered, err := c.ordered(ctx); err != nil || ordered {
				return err
			}
			if err := c.idle(ctx, n); err != nil {
				return err
			}
		case have > n || have > 0 && !begun:
			return fmt.Errorf("there are %d: change that by grow and shrink", have)
		}
		if have > 0 {
			if err := c.adopt(ctx); err != nil {
				return err
			}
		}
		return c.create(ctx, n)
	})
}

func (c *change) create(ctx context.Context, n int) error {
	if err := c.declare(ctx, c.creating(), nil); err != nil {
		return err
	}
	args := amqp.Table{}
	if c.c.HashHeader != "" {
		args["hash-header"] = c.c.HashHeader
	}
	if _, err := c.count(ctx); errors.Is(err, errNotFound) {
		if err := c.call(ctx, func() error {
			return c.ch.ExchangeDeclare(c.c.Exchange, "x-consistent-hash", true, false, false, false, args)
		}); err != nil {
			return fmt.Errorf("declare the exchange, which needs the plugin rabbitmq_consistent_hash_exchange: %w", err)
		}
	}
	if err := c.bindAll(ctx, n); err != nil {
		return err
	}
	return c.forget(ctx, c.creating())
}

// bindAll binds the queues in their order, anew where that of those that are bound is not known.
func (c *change) bindAll(ctx context.Context, n int) error {
	ordered, err := c.ordered(ctx)
	if err != nil {
		return err
	}
	have, err := c.count(ctx)
	for i := have - 1; i >= 0 && !ordered && err == nil; i-- {
		err = c.unbind(ctx, i)
	}
	if err == nil {
		err = c.testify(ctx)
	}
	for i := 0; i < n && err == nil; i++ {
		if err = c.partition(ctx, i); err == nil {
			err = c.bind(ctx, i)
		}
	}
	return err
}

// Grow appends queues until there are n. Some keys move to each new queue, none between the others. The messages in a new queue are held back until
// all of the older queues have been worked up to the change; it returns before that, unless Wait is set.
// Where there are n already, it sends markers again that were not passed yet: one may have been lost.
func (p *Partitions) Grow(ctx context.Context, n int) error {
	return p.changing(ctx, "grow", n, func(c *change) error {
		have, err := c.resume(ctx)
		if err != nil {
			return err
		}
		if n < have {
			return fmt.Errorf("there are %d: shrink takes some away", have)
		}
		if n == have {
			if err := c.remind(ctx, n); err != nil {
				return err
			}
		}
		for k := have; k < n; k++ {
			if err := c.grow(ctx, k); err != nil {
				return err
			}
		}
		return c.settle(ctx, n)
	})
}

// grow appends queue k to those before it.
func (c *change) grow(ctx context.Context, k int) error {
	c.c.Progress(fmt.Sprintf("adding queue %q", c.queue(k)))
	id, err := c.record(ctx, c.growing(k))
	if err != nil {
		return err
	}
	steps := []func() error{
		func() error { return c.partition(ctx, k) },
		func() error {
			gate := marker{kind: waits}
			for i := range k {
				gate.tokens = append(gate.tokens, c.settled(k, i, id))
				if err := c.declare(ctx, c.settled(k, i, id), nil); err != nil {
					return err
				}
			}
			return c.send(ctx, c.queue(k), gate) // before all messages
		},
		func() error { return c.bind(ctx, k) },
		func() error { return c.pause(ctx) },
		func() error { // behind the last message of each key that moved
			for i := range k {
				if err := c.tell(ctx, i, c.settled(k, i, id)); err != nil {
					return err
				}
			}
			return nil
		},
		func() error { return c.forget(ctx, c.growing(k)) },
	}
	return do(steps)
}

// remind puts markers again behind what the old queues hold, for those that were not passed.
func (c *change) remind(ctx context.Context, n int) error {
	return c.waiting(ctx, n, func(i int, token string) error { return c.tell(ctx, i, token) })
}

// telling is that a queue holds a marker that deletes a token.
type telling struct {
	queue int
	token string
}

// tell puts a marker behind what queue i holds, which deletes a token.
func (c *change) tell(ctx context.Context, i int, token string) error {
	c.told = append(c.told, telling{i, token})
	return c.send(ctx, c.queue(i), marker{kind: tells, tokens: []string{token}})
}

// waiting calls f for each queue i that holds back another one below n, with the token.
func (c *change) waiting(ctx context.Context, n int, f func(i int, token string) error) error {
	there, err := c.there(ctx)
	for k := 1; k < n; k++ {
		for i := range k {
			for _, token := range tokens(there, c.settled(k, i, "")) {
				if err == nil {
					err = f(i, token)
				}
			}
		}
	}
	return err
}

func do(steps []func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func (c *change) pause(ctx context.Context) error {
	if !sleep(ctx, c.c.Pause) {
		return ctx.Err()
	}
	return nil
}

// settle waits, where it is wanted, until no queue below n is held back.
func (c *change) settle(ctx context.Context, n int) error {
	if !c.c.Wait {
		return nil
	}
	wait := func(i int, token string) error {
		return c.gone(ctx, token, c.queue(i), "to be worked up to the change")
	}
	for _, m := range c.told { // the management API may not know them yet
		if err := wait(m.queue, m.token); err != nil {
			return err
		}
	}
	return c.waiting(ctx, n, wait)
}

// gone waits until a token is gone, and tells what for while that takes.
func (c *change) gone(ctx context.Context, token, queue, what string) error {
	told := time.Time{}
	for wait := minPoll; ; wait = min(2*wait, maxPoll) {
		there, err := c.exists(ctx, token)
		if err != nil || !there {
			return err
		}
		if time.Since(told) > 10*time.Second {
			q, err := inspect(ctx, c.conn, queue)
			if err != nil {
				return err
			}
			c.c.Progress(fmt.Sprintf("waiting for queue %q %s: %d messages ready, %d consumers", queue, what, q.Messages, q.Consumers))
			told = time.Now()
		}
		if !sleep(ctx, wait) {
			return ctx.Err()
		}
	}
}

// Shrink takes the last queues away until there are n, at least 1. It returns when the messages in them are worked, which needs a running group; until
// then the other queues stand still at the change.
func (p *Partitions) Shrink(ctx context.Context, n int) error {
	return p.changing(ctx, "shrink", n, func(c *change) error {
		have, err := c.resume(ctx)
		if err != nil {
			return err
		}
		if n > have {
			return fmt.Errorf("there are %d: grow adds some", have)
		}
		ordered, err := c.ordered(ctx)
		if err == nil && !ordered && n < have {
			err = errors.New("the broker was restarted and gives keys to other queues than before: stop the publishers, let the group empty all queues, and repeat create with the number that there is")
		}
		if err != nil {
			return err
		}
		for k := have - 1; k >= n; k-- {
			if err := c.shrink(ctx, k, true); err != nil {
				return err
			}
		}
		return nil
	})
}

// shrink takes queue k away, the last one.
func (c *change) shrink(ctx context.Context, k int, bound bool) error {
	c.c.Progress(fmt.Sprintf("taking queue %q away", c.queue(k)))
	id, err := c.record(ctx, c.shrinking(k))
	if err == nil {
		err = c.remind(ctx, k+1) // or queue k waits in vain: behind the markers of divert it would be too late
	}
	if err == nil && bound {
		err = c.divert(ctx, k, c.drained(k, id))
	}
	there := false
	if err == nil {
		there, err = c.exists(ctx, c.queue(k))
	}
	if err != nil {
		return err
	}
	steps := []func() error{
		func() error { return c.pause(ctx) },
		func() error { return c.emptied(ctx, k, c.drained(k, id)) },
	}
	if !there {
		steps = nil
	}
	return do(append(steps,
		func() error { return c.forget(ctx, c.queue(k)) },
		func() error { return c.forget(ctx, c.drained(k, id)) },
		func() error { return c.tidy(ctx, k) },
		func() error { return c.forget(ctx, c.shrinking(k)) },
	))
}

// divert sends the keys of queue k to the others, which stop before the first message of them.
func (c *change) divert(ctx context.Context, k int, drained string) error {
	if err := c.declare(ctx, drained, nil); err != nil {
		return err
	}
	for i := range k {
		if err := c.send(ctx, c.queue(i), marker{kind: waits, tokens: []string{drained}}); err != nil {
			return err
		}
	}
	return c.unbind(ctx, k)
}

// emptied waits until everything in queue k is worked, what comes meanwhile too. The broker does not count what a consumer has in hand, so the Reader
// is asked. Tokens are deleted at its first word that nothing is left, also when nobody waits for that here any more.
func (c *change) emptied(ctx context.Context, k int, freed ...string) error {
	var empty, reached string
	var end marker
	var more bool
	var q amqp.Queue
	steps := []func() error{
		func() error { // names of its own for each: 3.10 makes no quorum queue of a name that was just deleted
			id := rand.Text()[:12]
			empty, reached = c.empty(k, id), c.reached(k, id)
			end = marker{kind: ends, tokens: append(slices.Clone(freed), empty, reached)}
			return nil
		},
		func() error { return c.declare(ctx, empty, nil) },
		func() error { return c.declare(ctx, reached, nil) },
		func() error { return c.send(ctx, c.queue(k), end) },
		func() error { return c.gone(ctx, reached, c.queue(k), "to be worked") },
		func() (err error) { more, err = c.exists(ctx, empty); return err },
		func() (err error) { q, err = inspect(ctx, c.conn, c.queue(k)); return err },
	}
	for words := 0; words < 2; { // the first may be old already when it is heard, the second comes at once
		if err := do(steps); err != nil {
			return err
		}
		if words++; more || q.Messages > 0 {
			words = 0
		}
	}
	return nil
}

// tidy deletes the tokens that emptied has left.
func (c *change) tidy(ctx context.Context, k int) error {
	there, err := c.there(ctx)
	for _, token := range append(tokens(there, c.empty(k, "")), tokens(there, c.reached(k, ""))...) {
		if err == nil {
			err = c.forget(ctx, token)
		}
	}
	return err
}

// resume ends what an earlier command began, and counts the partitions.
func (c *change) resume(ctx context.Context) (int, error) {
	n, err := c.count(ctx)
	if errors.Is(err, errNotFound) {
		err = fmt.Errorf("there is no such exchange: create the partitions first: %w", err)
	}
	if err != nil {
		return 0, err
	}
	begun, err := c.exists(ctx, c.creating())
	if err == nil && (begun || n == 0) {
		err = errors.New("creating them was not ended: repeat it first")
	}
	if err == nil {
		err = c.adopt(ctx)
	}
	for k := max(n-1, 0); k <= n && err == nil; k++ { // the last that is bound, or the first that is not
		if begun, err = c.exists(ctx, c.growing(k)); err == nil && begun {
			err = c.grow(ctx, k)
		} else if err == nil {
			if begun, err = c.exists(ctx, c.shrinking(k)); err == nil && begun {
				err = c.shrink(ctx, k, k < n)
			}
		}
		if err == nil && begun {
			return c.count(ctx)
		}
	}
	return n, err
}

func (p *Partitions) changing(ctx context.Context, what string, n int, f func(*change) error) error {
	if n < 1 || n > maxPartitions {
		return p.wrap(what, fmt.Errorf("the number is %d, must be 1 to %d", n, maxPartitions))
	}
	c, err := p.begin(ctx)
	if err != nil {
		return p.wrap(what, err)
	}
	defer c.end(ctx)
	if err := f(c); err != nil {
		return p.wrap(what, err)
	}
	return nil
}

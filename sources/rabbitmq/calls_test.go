//go:build linux

package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rebalancer-go/rebalancer/internal/waittest"
	"github.com/rebalancer-go/rebalancer/sources"
)

// TestCallsThatWereCancelled: a caller who does not wait for the answer says nothing about the connection, as long as the answer comes.
func TestCallsThatWereCancelled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		defer far.Close()
		c := &conn{wire: &wire{Conn: near}}
		count := func() int {
			c.mu.Lock()
			defer c.mu.Unlock()
			return c.hung
		}
		impatient := func(answer time.Duration) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			defer cancel()
			if err := c.call(ctx, func() error { time.Sleep(answer); return nil }); !errors.Is(err, context.DeadlineExceeded) {
				t.Fatal(err)
			}
		}
		for range 2 * maxHung {
			impatient(2 * time.Millisecond)
		}
		for range maxHung - 1 {
			impatient(2 * callTimeout)
		}
		time.Sleep(callTimeout)
		synctest.Wait()
		if n := count(); n != maxHung-1 {
			t.Errorf("%d calls count as never answered, want %d", n, maxHung-1)
		}
		time.Sleep(2 * callTimeout)
		synctest.Wait()
		if n := count(); n != 0 {
			t.Errorf("%d calls count after they were answered", n)
		}
		go func() { _, _ = near.Read(make([]byte, 1)) }()
		if _, err := far.Write([]byte("x")); err != nil {
			t.Errorf("the connection was given up: %v", err)
		}
	})
}

// TestChannelsThatNobodyWaitsFor: a channel for which nobody waits any more is closed when the broker has answered, and not before, since an
// answer on a channel that is closed is an error of the whole connection.
func TestChannelsThatNobodyWaitsFor(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"open", "declare", "declare for Open", "delete", "exchange"} {
		method, _, _ := strings.Cut(name, " ")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newStub(t)
			s := b.source()
			c, err := s.consuming.get(within30(t), "g/n")
			must(t, err)
			release := b.holding(method)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			result := make(chan error, 1)
			go func() { result <- questions[name](ctx, s, c) }()
			b.waitForOne(method)
			cancel()
			if err := <-result; !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			if method != "open" {
				must(t, c.call(within30(t), func() error { _, err := c.Channel(); return err })) // a round trip
			}
			if b.count("close") > 0 {
				t.Errorf("a channel was closed while a call is under way: %q", b.heard())
			}
			release()
			b.waitFor("1 close")
			if c.IsClosed() {
				t.Error("the connection is lost")
			}
		})
	}
}

// questions are put to a broker, by the method that waits for its answer.
var questions = map[string]func(context.Context, *Source, *conn) error{
	"open":    func(ctx context.Context, _ *Source, c *conn) error { _, err := inspect(ctx, c, "q"); return err },
	"declare": func(ctx context.Context, _ *Source, c *conn) error { _, err := inspect(ctx, c, "q"); return err },
	"declare for Open": func(ctx context.Context, s *Source, _ *conn) error {
		_, err := s.Open(ctx, claimOf("q"))
		return err
	},
	"delete": func(ctx context.Context, _ *Source, c *conn) error { return deleteToken(ctx, c, own+"x") },
	"exchange": func(ctx context.Context, _ *Source, c *conn) error {
		return c.aside(ctx, func(ch *amqp.Channel) error {
			return ch.ExchangeDeclarePassive("x", amqp.ExchangeDirect, true, false, false, false, nil)
		})
	},
}

// TestCancelledWithMessagesInHand: when the broker cancels a consumer, its channel still holds what is in hand. It is closed before another one
// consumes the queue, or the messages behind would come before those.
func TestCancelledWithMessagesInHand(t *testing.T) {
	t.Parallel()
	b := newStub(t)
	s := b.source()
	r := b.reader(s)
	b.deliver(1, "1")
	b.deliver(2, "2")
	fetch(t, r, 2)
	consumed := b.count("consume")
	release := b.holding("close")
	channel := b.cancel()
	b.waitFor(fmt.Sprint(channel, " close"))
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := r.Fetch(ctx, 1); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("before the channel is closed: Fetch: %v", err)
	}
	release()
	if _, err := r.Fetch(within30(t), 1); !errors.Is(err, errCancelled) {
		t.Errorf("Fetch: %v", err)
	}
	ctx, cancel = context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	again := make(chan error, 1)
	go func() { _, err := r.Fetch(ctx, 1); again <- err }()
	waittest.Until(t, "it consumes again", func() bool { return b.count("consume") > consumed })
	b.deliver(1, "1")
	must(t, <-again)
}

// TestPublishAfterTheEnd: nothing is published after ctx has ended, and a channel that is given up meanwhile is not used any more.
func TestPublishAfterTheEnd(t *testing.T) {
	t.Parallel()
	b := newStub(t)
	s := b.source()
	s.DeadLetter = Queue("dead")
	s.dead.checked.Store(true)
	e := newEntry(&amqp.Delivery{Body: []byte("x")}, claimOf("q"), false)
	for range 50 {
		must(t, s.dead.ready(within30(t), "g/n"))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := s.dead.publish(ctx, "dead", s.dead.letter(claimOf("q"), &e.d, 1, nil)); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		s.dead.drop()
		if err := s.dead.put(ctx, claimOf("q"), e, 1, nil); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if err := s.dead.locked(ctx, "g/n", func(context.Context) error { return errNacked }); errors.Is(err, errNacked) {
			t.Fatal("it is not to begin")
		}
	}
	must(t, s.dead.ready(within30(t), "g/n")) // a round trip
	if b.count("publish") > 0 {
		t.Error("it was published")
	}
}

// TestBurialGoesOn: a dead letter that Fetch has begun to publish is waited for by the next Fetch, not published again.
func TestBurialGoesOn(t *testing.T) {
	t.Parallel()
	b := newStub(t)
	s := b.source()
	s.DeadLetter, s.DeliveryLimit = Queue("dead"), 2
	s.dead.checked.Store(true)
	s.types.put("q", facts{kind: typeQuorum})
	r := b.reader(s)
	b.redeliver(1, 1)
	for range 3 { // the stub confirms nothing yet
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		if _, err := r.Fetch(ctx, 1); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		cancel()
	}
	b.waitForOne("publish")
	b.confirm()
	b.deliver(2, "2")
	if m := fetch(t, r, 1)[0]; string(m.Body) != "2" {
		t.Errorf("got %q", m.Body)
	}
	if n := b.count("publish"); n != 1 {
		t.Errorf("it was published %d times", n)
	}
}

// TestWaitingForAcknowledgements: neither Fetch nor Settle waits for who acknowledges, or changes the prefetch, beyond its time; a marker is not
// passed before what precedes it is acknowledged.
func TestWaitingForAcknowledgements(t *testing.T) {
	t.Parallel()
	b := newStub(t)
	s := b.source()
	r := b.reader(s)
	b.deliver(1, "1")
	b.deliver(2, "2")
	b.mark(3)
	ms := fetch(t, r, 2)
	r.flush.send.Lock()
	release := time.AfterFunc(20*time.Second, r.flush.send.Unlock)
	start := time.Now()
	brief := func() context.Context {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		t.Cleanup(cancel)
		return ctx
	}
	must(t, r.Settle(brief(), []sources.Settlement{{Message: ms[0]}, {Message: ms[1]}}))
	r.flush.someWithin(brief(), r.live, true)
	if _, err := r.Fetch(brief(), 1); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	if d := time.Since(start); d > 10*time.Second || !release.Stop() {
		t.Fatalf("it took %v", d)
	}
	if n := b.count("ack"); n > 0 {
		t.Errorf("%d acknowledgements", n)
	}
	r.flush.send.Unlock()
	b.deliver(4, "4")
	fetch(t, r, 1)
	b.waitForOne("ack")
}

// TestWritesEndInTime: no call waits for longer than a call may, whatever the heartbeat.
func TestWritesEndInTime(t *testing.T) {
	t.Parallel()
	b := newStub(t)
	s := b.source()
	s.Heartbeat = time.Minute
	c, err := s.consuming.get(within30(t), "g/n")
	must(t, err)
	if c.wire.timeout > callTimeout {
		t.Errorf("a write may take %v", c.wire.timeout)
	}
}

// TestLagBeforeTheFirstQueue: the connection that consumes is named after who consumes, also when somebody asked for a lag before; the one that
// asked ends then.
func TestLagBeforeTheFirstQueue(t *testing.T) {
	t.Parallel()
	b := newStub(t)
	s := b.source()
	for range 2 {
		_, err := s.Lag(within30(t), "q")
		must(t, err)
	}
	open(t, s, "q")
	if got := b.names(); !slices.Equal(got, []string{"rebalancer asks", "g/n consumes"}) {
		t.Errorf("connections %q", got)
	}
	_, err := s.Lag(within30(t), "q")
	must(t, err)
	waittest.Until(t, "the connection that asked is closed", func() bool { return b.count("bye") == 1 })
	if got := b.names(); len(got) != 2 {
		t.Errorf("connections %q", got)
	}
}

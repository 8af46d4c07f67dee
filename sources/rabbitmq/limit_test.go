//go:build linux

package rabbitmq

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/internal/waittest"
	"github.com/rebalancer-go/rebalancer/sources"
)

func TestLimitOfAQueue(t *testing.T) {
	t.Parallel()
	version := func(v string) *conn {
		return &conn{Connection: &amqp.Connection{Properties: amqp.Table{"version": v}}}
	}
	for _, c := range []struct {
		set     int
		told    facts
		version string
		want    int
	}{
		{told: facts{kind: typeQuorum}, version: "3.13.7", want: 0},
		{told: facts{kind: typeQuorum}, version: "4.0.5", want: defaultLimit},
		{told: facts{kind: typeQuorum}, version: "10.1", want: defaultLimit},
		{told: facts{kind: ""}, version: "4.2", want: defaultLimit},
		{told: facts{kind: typeClassic}, version: "4.0.5", want: 0},
		{told: facts{kind: typeQuorum, limit: 7}, version: "3.10.8", want: 7},
		{told: facts{kind: typeQuorum, limit: -1}, version: "4.0.5", want: 0},
		{set: 5, told: facts{kind: typeQuorum, limit: 7}, version: "4.0.5", want: 5},
		{set: 5, told: facts{kind: typeClassic}, version: "4.0.5", want: 0},
		{set: -1, told: facts{kind: typeQuorum, limit: 7}, version: "4.0.5", want: 0},
	} {
		s := &Source{settings: settings{Config: Config{DeliveryLimit: c.set, DeadLetter: Queue("dead")}}}
		if got := s.limit(version(c.version), c.told); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
		s.DeadLetter = DeadLetter{}
		if got := s.limit(version(c.version), c.told); got != 0 {
			t.Errorf("%+v: %d, and there is no place for such messages", c, got)
		}
	}
}

// TestLastReturn: a message near the limit goes to the dead-letter place before a handler sees it. While that takes nothing, the message is held: the
// error is told once, and the channel stays open, since to close it would return the message for the last time.
func TestLastReturn(t *testing.T) {
	t.Parallel()
	everywhere(t, kinds[1:2], func(t *testing.T, b *bench, k kind) {
		b.declare("q", k.with(amqp.Table{"x-delivery-limit": 3}))
		b.send("q", 3)
		must(t, b.ch.ExchangeDeclare("graves", "fanout", true, false, false, false, nil))
		s := b.source(func(c *Config) {
			c.DeadLetter, c.Management = DeadLetter{Exchange: "graves"}, []string{b.r.ManagementURL()}
		})
		for attempt := range 2 {
			r := open(t, s, "q")
			if m := fetch(t, r, 1)[0]; string(m.Body) != "1" || m.Attempt != attempt+1 {
				t.Fatalf("got %q, attempt %d", m.Body, m.Attempt)
			}
			must(t, r.Close(within30(t)))
		}
		r := open(t, s, "q")
		if _, err := r.Fetch(within30(t), 1); !errors.Is(err, errReturned) {
			t.Fatalf("Fetch: %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		if ms, err := r.Fetch(ctx, 1); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("Fetch again: %d messages, %v", len(ms), err)
		}
		must(t, b.ch.QueueBind(b.small("dead"), "", "graves", false, nil))
		ms := fetch(t, r, 1)
		if string(ms[0].Body) != "2" {
			t.Fatalf("got %q", ms[0].Body)
		}
		// The place is full now.
		err := r.Settle(within30(t), []sources.Settlement{{Message: ms[0], Outcome: sources.Reject}})
		if !errors.Is(err, errNacked) {
			t.Errorf("a full dead-letter queue: %v", err)
		}
		dead := b.get("dead")
		if len(dead) != 1 || string(dead[0].Body) != "1" || dead[0].Headers[HeaderAttempts] != int64(2) || !strings.Contains(dead[0].Headers[HeaderError].(string), "delivery limit") {
			t.Errorf("dead letters: %+v", dead)
		}
		settle(t, r, sources.Reject, ms...)
		settle(t, r, sources.Done, fetch(t, r, 1)...)
		waittest.Until(t, "nothing is left", func() bool { return b.total("q") == 0 })
	})
}

// small declares a queue that refuses a second message.
func (b *bench) small(name string) string {
	b.t.Helper()
	b.declare(name, kinds[0].with(amqp.Table{"x-max-length": 1, "x-overflow": "reject-publish"}))
	return name
}

// TestOwnersWhoNeverAsk: an owner who fetches nothing costs no message a return, however many there are of them.
func TestOwnersWhoNeverAsk(t *testing.T) {
	t.Parallel()
	everywhere(t, kinds[1:2], func(t *testing.T, b *bench, k kind) {
		b.declare("q", k.with(amqp.Table{"x-delivery-limit": 3, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "brokers"}))
		b.declare("dead", kinds[0])
		b.declare("brokers", kinds[0])
		b.send("q", 50)
		s := b.source(func(c *Config) { c.DeliveryLimit, c.DeadLetter = 3, Queue("dead") })
		for round := range 5 {
			r := open(t, s, "q")
			if ready, consumers := b.ready("q"); ready != 50 || consumers != 0 {
				t.Errorf("round %d: %d messages and %d consumers after the opening", round, ready, consumers)
			}
			must(t, r.Close(within30(t)))
		}
		r := open(t, s, "q")
		for i, m := range fetchDone(t, r, 50) {
			if m.Attempt != 1 || string(m.Body) != numbers(i+1, i+1) {
				t.Fatalf("got %s, attempt %d, want %d", m.Body, m.Attempt, i+1)
			}
		}
		must(t, r.Close(within30(t)))
		if dead, brokers := len(b.get("dead")), len(b.get("brokers")); dead+brokers > 0 {
			t.Errorf("%d dead letters of ours, %d of the broker", dead, brokers)
		}
	})
}

// fetchDone collects n messages, each of which is done before the next.
func fetchDone(t *testing.T, r *reader, n int) []*rebalancer.Message {
	t.Helper()
	var all []*rebalancer.Message
	for range n {
		ms := fetch(t, r, 1)
		settle(t, r, sources.Done, ms...)
		all = append(all, ms...)
	}
	return all
}

// TestConsumerBeforeTheFirstFetch: between the opening and the first Fetch may be a long time, in which others come.
func TestConsumerBeforeTheFirstFetch(t *testing.T) {
	t.Parallel()
	everywhere(t, kinds[1:2], func(t *testing.T, b *bench, k kind) {
		b.declare("q", k)
		b.declare("gone", k)
		b.send("q", 10)
		s := b.source(nil)
		r, gone := open(t, s, "q"), open(t, s, "gone")
		ch, err := b.conn.Channel()
		must(t, err)
		_, err = ch.Consume("q", "", false, false, false, false, nil)
		must(t, err)
		if _, err := r.Fetch(within30(t), 1); err == nil || !strings.Contains(err.Error(), "1 other consumers") {
			t.Fatalf("Fetch beside a consumer: %v", err)
		}
		must(t, ch.Close())
		if m := fetch(t, r, 1)[0]; string(m.Body) != "1" {
			t.Errorf("got %s", m.Body)
		}
		must(t, b.remove("gone"))
		if _, err := gone.Fetch(within30(t), 1); !errors.Is(err, sources.ErrGone) {
			t.Errorf("Fetch from a queue that was deleted after the opening: %v", err)
		}
	})
}

// TestLimitBelowOne: before 4.0 a quorum queue with such a limit loses what is returned, and is refused; from 4.0 on it has no limit.
func TestLimitBelowOne(t *testing.T) {
	t.Parallel()
	everywhere(t, kinds[1:2], func(t *testing.T, b *bench, k kind) {
		b.declare("q", k.with(amqp.Table{"x-delivery-limit": -1}))
		b.send("q", 1)
		s := b.source(func(c *Config) { c.Management = []string{b.r.ManagementURL()} })
		old := b.conn.Properties["version"].(string)[0] == '3'
		r, err := s.Open(within30(t), claimOf("q"))
		if old {
			if err == nil || !strings.Contains(err.Error(), "delivery limit is below 1") || errors.Is(err, sources.ErrGone) {
				t.Errorf("Open: %v", err)
			}
			r = open(t, b.source(nil), "q") // nobody told
		} else {
			must(t, err)
		}
		fetch(t, r, 1)
		must(t, r.Close(within30(t)))
		if n, want := settled(t, func() int { return b.total("q") }), 1; old == (n == want) {
			t.Errorf("%d messages are there after a return", n)
		}
	})
	told := facts{kind: typeQuorum, limit: -1}
	for version, ok := range map[string]bool{"3.13.7": false, "3.10.8": false, "4.0.5": true, "10.1": true, "": true} {
		if err := tolerable(version, told); (err == nil) != ok {
			t.Errorf("%s: %v", version, err)
		}
		for _, f := range []facts{{kind: typeClassic, limit: -1}, {kind: typeQuorum}, {kind: typeQuorum, limit: 3}} {
			if err := tolerable(version, f); err != nil {
				t.Errorf("%s: %+v: %v", version, f, err)
			}
		}
	}
}

//go:build linux

package rabbitmq

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rebalancer-go/rebalancer/internal/programtest"
	"github.com/rebalancer-go/rebalancer/internal/waittest"
	"github.com/rebalancer-go/rebalancer/sources"
)

// TestTypes: AMQP tells the type of a queue in passing, and streams are refused before they deliver anything.
func TestTypes(t *testing.T) {
	t.Parallel()
	everywhere(t, append(kinds[:4:4], kind{"stream", amqp.Table{"x-queue-type": "stream"}}), func(t *testing.T, b *bench, k kind) {
		b.declare("q", k)
		b.send("q", 1)
		for _, managed := range []bool{false, true} {
			s := b.source(func(c *Config) {
				if managed {
					c.Management = []string{b.r.ManagementURL()}
				}
			})
			r, err := s.Open(within30(t), claimOf("q"))
			if k.args["x-queue-type"] == typeStream {
				if err == nil || !strings.Contains(err.Error(), "it is a stream") || errors.Is(err, sources.ErrGone) {
					t.Errorf("Open of a stream: %v", err)
				}
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			if f, _ := s.types.get("q"); f.kind != k.args["x-queue-type"] {
				t.Errorf("it is taken for %q", f.kind)
			}
			must(t, r.Close(within30(t)))
		}
	})
}

// TestForeignConsumer: beside a consumer that stays nothing is read; Open says so. When it goes, Open goes on, and all comes in order.
func TestForeignConsumer(t *testing.T) {
	t.Parallel()
	everywhere(t, kinds, func(t *testing.T, b *bench, k kind) {
		b.declare("q", k)
		b.send("q", 100)
		ch, err := b.conn.Channel()
		must(t, err)
		must(t, ch.Qos(50, 0, false))
		_, err = ch.Consume("q", "", false, false, false, false, nil)
		must(t, err)
		s := b.source(func(c *Config) { c.EagerStart, c.Prefetch = true, 200 })
		start := time.Now()
		if _, err := s.Open(within30(t), claimOf("q")); err == nil || !strings.Contains(err.Error(), "other consumer") {
			t.Fatalf("Open: %v", err)
		}
		if d := time.Since(start); d < s.HeldFor() {
			t.Errorf("Open gave up after %v: an owner that froze may be held for %v", d, s.HeldFor())
		}
		opened := make(chan *reader, 1)
		go func() {
			r, err := s.Open(within30(t), claimOf("q"))
			if err != nil {
				t.Error(err)
				opened <- nil
				return
			}
			opened <- r.(*reader)
		}()
		waittest.Until(t, "Open waits", func() bool { _, n := b.ready("q"); return n == 1 })
		must(t, ch.Close())
		if r := <-opened; r != nil {
			if got := texted(fetch(t, r, 100)); got != numbers(1, 100) {
				t.Errorf("got %s", got)
			}
		}
	})
}

// TestAcknowledgementsOutOfOrder: the broker looks for the very tag up to which it is told, and closes the channel when it was told of that
// one before.
func TestAcknowledgementsOutOfOrder(t *testing.T) {
	t.Parallel()
	everywhere(t, kinds[:2], func(t *testing.T, b *bench, k kind) {
		b.declare("q", k)
		b.send("q", 8)
		s := b.source(func(c *Config) { c.EagerStart, c.Prefetch = true, 6 })
		r := open(t, s, "q")
		ms := fetch(t, r, 6)
		settle(t, r, sources.Done, ms[1], ms[2], ms[3])
		waittest.Until(t, "half of the prefetch is acknowledged above one that is worked", func() bool { return b.total("q") == 5 })
		settle(t, r, sources.Done, ms[0])
		waittest.Until(t, "the lowest", func() bool { return b.total("q") == 4 })
		settle(t, r, sources.Done, ms[5])
		waittest.Until(t, "one that waited a second", func() bool { return b.total("q") == 3 })
		settle(t, r, sources.Done, ms[4])
		settle(t, r, sources.Done, fetch(t, r, 2)...)
		waittest.Until(t, "all", func() bool { return b.total("q") == 0 })
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.why != nil || r.live == nil || r.live.window.len() != 0 || r.live.window.told != 0 || r.live.window.above != 0 || r.live.window.bytes != 0 {
			t.Errorf("the channel was lost (%v), or the window is wrong: %+v", r.why, r.live)
		}
	})
}

// TestDeadLetters: what is given up goes where it was told to, as it was published and with its story, and is not acknowledged
// before it is there.
func TestDeadLetters(t *testing.T) {
	t.Parallel()
	everywhere(t, kinds[:2], func(t *testing.T, b *bench, k kind) {
		b.declare("q", k)
		b.declare("dead", k)
		must(t, b.ch.ExchangeDeclare("graves", "topic", true, false, false, false, nil))
		stamp := time.Now().Truncate(time.Second)
		must(t, b.publish("q", amqp.Publishing{
			Body: []byte("body"), MessageId: "id", ContentType: "text/x", CorrelationId: "c", Type: "t", AppId: "a", ReplyTo: "r", Priority: 3, Timestamp: stamp,
			UserId: "guest", Expiration: "100000", Headers: amqp.Table{"mine": "yes", "n": int32(7), "BCC": []any{"q"}, headerCount: int64(99)},
		}))
		s := b.source(func(c *Config) { c.DeadLetter = DeadLetter{Exchange: "graves"} })
		r := open(t, s, "q")
		m := fetch(t, r, 1)[0]
		if m.Attempt != 1 {
			t.Errorf("attempt %d: a header of the publisher is believed", m.Attempt)
		}
		m.Attempt = 5
		why := errors.New(strings.Repeat("ü", 3000))
		reject := []sources.Settlement{{Message: m, Outcome: sources.Reject, Err: why}}
		if err := r.Settle(within30(t), reject); !errors.Is(err, errReturned) {
			t.Fatalf("nothing is bound there: %v", err)
		}
		if n := settled(t, func() int { return b.total("q") }); n != 1 {
			t.Fatal("a message that found no place was acknowledged")
		}
		must(t, b.ch.QueueBind("dead", "#", "graves", false, nil))
		must(t, r.Settle(within30(t), reject))
		waittest.Until(t, "acknowledged", func() bool { return b.total("q") == 0 })
		var d amqp.Delivery
		waittest.Until(t, "the dead letter", func() bool {
			ds := b.get("dead")
			if len(ds) == 1 {
				d = ds[0]
			}
			return len(ds) == 1
		})
		h := d.Headers
		if string(d.Body) != "body" || d.MessageId != "id" || d.ContentType != "text/x" || d.CorrelationId != "c" || d.Type != "t" || d.AppId != "a" ||
			d.ReplyTo != "r" || d.Priority != 3 || !d.Timestamp.Equal(stamp) || d.Expiration != "" || d.RoutingKey != "q" || d.DeliveryMode != amqp.Persistent {
			t.Errorf("it changed: %+v", d)
		}
		if h["mine"] != "yes" || h["n"] != int32(7) || h["BCC"] != nil || h[headerCount] != nil && h[headerCount] != int64(0) || h[HeaderQueue] != "q" || h[HeaderRoutingKey] != "q" ||
			h[HeaderAttempts] != int64(5) || h[HeaderGroup] != "g" || h[HeaderNode] != "n" || h[HeaderFence] != fmt.Sprint(m.Fence) {
			t.Errorf("headers: %v", h)
		}
		if text, _ := h[HeaderError].(string); len(text) != maxErrorText || !strings.HasPrefix(why.Error(), text) {
			t.Errorf("%d bytes of the error", len(text))
		}
		must(t, b.remove("dead"))
		must(t, b.ch.ExchangeDelete("graves", false, false))
		b.send("q", 1)
		m = fetch(t, r, 1)[0]
		if err := r.Settle(within30(t), []sources.Settlement{{Message: m, Outcome: sources.Reject}}); err == nil || !strings.Contains(err.Error(), "no exchange 'graves'") {
			t.Errorf("an exchange that is gone: %v", err)
		}
		must(t, b.ch.ExchangeDeclare("graves", "fanout", true, false, false, false, nil))
		b.declare("dead", k)
		must(t, b.ch.QueueBind("dead", "", "graves", false, nil))
		must(t, r.Settle(within30(t), []sources.Settlement{{Message: m, Outcome: sources.Reject}}))
	})
}

// TestDeadLetterPlaceIsChecked: where it is missing nothing is opened, and the error is not that of a missing queue.
func TestDeadLetterPlaceIsChecked(t *testing.T) {
	t.Parallel()
	b := newBench(t, servers.RabbitMQ(t, 4))
	b.declare("q", kinds[0])
	for _, to := range []DeadLetter{Queue("nowhere"), {Exchange: "nowhere"}} {
		s := b.source(func(c *Config) { c.DeadLetter = to })
		_, err := s.Open(within30(t), claimOf("q"))
		if err == nil || errors.Is(err, sources.ErrGone) || !strings.Contains(err.Error(), `"nowhere": declare it`) {
			t.Errorf("%+v: %v", to, err)
		}
	}
}

// TestTLS: with the authority's certificate, as the user of the client's certificate, with several hosts; and not without.
func TestTLS(t *testing.T) {
	t.Parallel()
	b := newBench(t, servers.RabbitMQ(t, 4))
	b.declare("q", kinds[0])
	authorities := x509.NewCertPool()
	if !authorities.AppendCertsFromPEM(b.r.CA.PEM) {
		t.Fatal("no certificate")
	}
	b.r.User("carol", "x")
	b.r.Permit("carol", b.vhost, "", "", ".*")
	certPEM, keyPEM := b.r.CA.Issue(t, "carol")
	cert, err := tls.X509KeyPair(certPEM, keyPEM)
	must(t, err)
	withUser := b.r.TLSURL(b.vhost)
	without := strings.Replace(withUser, "guest:guest@", "", 1)
	for name, c := range map[string]struct {
		config Config
		fails  string
	}{
		"authority":   {config: Config{URLs: []string{withUser}, TLS: &tls.Config{RootCAs: authorities}}},
		"login":       {config: Config{URLs: []string{without}, TLS: &tls.Config{RootCAs: authorities, Certificates: []tls.Certificate{cert}}}},
		"two hosts":   {config: Config{URLs: []string{withUser, strings.Replace(withUser, "127.0.0.1", "localhost", 1)}, TLS: &tls.Config{RootCAs: authorities}}},
		"unknown":     {config: Config{URLs: []string{withUser}}, fails: "TLS: "},
		"other name":  {config: Config{URLs: []string{withUser}, TLS: &tls.Config{RootCAs: authorities, ServerName: "example.org"}}, fails: "example.org"},
		"no TLS port": {config: Config{URLs: []string{strings.Replace(withUser, b.r.TLSAddr(), b.r.Addr(), 1)}, TLS: &tls.Config{RootCAs: authorities}}, fails: "TLS: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.config.Name = "secure"
			s, err := New(c.config)
			must(t, err)
			defer s.Close()
			_, err = s.Lag(within30(t), "q")
			if c.fails == "" && err != nil || c.fails != "" && (err == nil || !strings.Contains(err.Error(), c.fails) || strings.Contains(err.Error(), "guest")) {
				t.Errorf("Lag: %v, want %q", err, c.fails)
			}
		})
	}
}

// TestAnotherHost: of several hosts one that answers is enough.
func TestAnotherHost(t *testing.T) {
	t.Parallel()
	b := newBench(t, servers.RabbitMQ(t, 3))
	b.declare("q", kinds[0])
	for range 5 { // it begins with a random one
		s := b.source(func(c *Config) {
			c.URLs = []string{b.r.URLAt("127.0.0.1:1", "guest", "guest", b.vhost), b.r.URL(b.vhost), b.r.URLAt("127.0.0.1:2", "guest", "guest", b.vhost)}
		})
		if _, err := s.Lag(within30(t), "q"); err != nil {
			t.Error(err)
		}
	}
	s := b.source(func(c *Config) { c.URLs = []string{b.r.URLAt("127.0.0.1:1", "guest", "secret", b.vhost)} })
	for range 3 { // each try waits longer
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		if _, err := s.Lag(ctx, "q"); err == nil || strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), "refused") {
			t.Errorf("Lag: %v", err)
		}
		cancel()
	}
	if _, err := s.Open(canceled(), claimOf("q")); !errors.Is(err, context.Canceled) {
		t.Errorf("Open with an ended context: %v", err)
	}
}

func canceled() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// TestAttempts: returns to a quorum queue count as attempts, also across Readers; those to a classic queue are not told.
func TestAttempts(t *testing.T) {
	t.Parallel()
	everywhere(t, kinds[:2], func(t *testing.T, b *bench, k kind) {
		b.declare("q", k)
		must(t, b.publish("q", amqp.Publishing{Body: []byte("1"), Headers: amqp.Table{headerCount: int64(50)}}))
		s := b.source(nil)
		for round := range 3 {
			r := open(t, s, "q")
			want := 1
			if k.quorum() {
				want += round
			}
			m := fetch(t, r, 1)[0]
			if m.Attempt != want {
				t.Errorf("round %d: attempt %d, want %d", round, m.Attempt, want)
			}
			must(t, r.Close(within30(t)))
		}
	})
}

// TestConsumerThatComesLater: a consumer that takes the messages of an open Reader is reported, once.
func TestConsumerThatComesLater(t *testing.T) {
	t.Parallel()
	b := newBench(t, servers.RabbitMQ(t, 4))
	for _, k := range []kind{kinds[0], kinds[3]} {
		b.declare(k.name, k)
		var log programtest.Buffer
		s := b.source(func(c *Config) { c.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
		s.idle = 100 * time.Millisecond
		r := open(t, s, k.name)
		fetched := make(chan error, 1)
		go func() {
			_, err := r.Fetch(within30(t), 1)
			fetched <- err
		}()
		waittest.Until(t, "the Reader consumes", func() bool { _, n := b.ready(k.name); return n == 1 })
		for range 3 { // looks
			sleep(t.Context(), s.idle)
		}
		if text := log.String(); strings.Contains(text, "nothing comes") {
			t.Errorf("%s: reported without reason: %s", k.name, text)
		}
		ch, err := b.conn.Channel()
		must(t, err)
		must(t, ch.Qos(1, 0, false))
		_, err = ch.Consume(k.name, "", false, false, false, false, amqp.Table{"x-priority": 10})
		must(t, err)
		if k.name != kinds[0].name {
			waittest.Until(t, "it is the active one", func() bool { b.send(k.name, 1); n, _ := b.ready(k.name); return n > 0 })
		}
		waittest.Until(t, "a report", func() bool { return strings.Contains(log.String(), "nothing comes") })
		for range 3 {
			sleep(t.Context(), s.idle)
		}
		if n := strings.Count(log.String(), "nothing comes"); n != 1 {
			t.Errorf("%s: reported %d times", k.name, n)
		}
		must(t, r.Close(within30(t)))
		if err := <-fetched; !errors.Is(err, sources.ErrClosed) {
			t.Errorf("%s: Fetch: %v", k.name, err)
		}
	}
}

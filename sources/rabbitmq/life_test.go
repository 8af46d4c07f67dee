//go:build linux

package rabbitmq

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/internal/testserver"
	"github.com/rebalancer-go/rebalancer/internal/waittest"
	"github.com/rebalancer-go/rebalancer/sources"
)

// TestFourHandOvers: nodes that leave in order make no dead letters, whatever they had prefetched.
func TestFourHandOvers(t *testing.T) {
	t.Parallel()
	everywhere(t, kinds[1:2], func(t *testing.T, b *bench, k kind) {
		b.declare("q", k.with(amqp.Table{"x-delivery-limit": 3, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "brokers"}))
		b.declare("dead", kinds[0])
		b.declare("brokers", kinds[0])
		b.send("q", 400)
		next := 1
		for round := range 5 {
			s := b.source(func(c *Config) { c.Prefetch, c.DeliveryLimit, c.DeadLetter = 100, 3, Queue("dead") })
			r := open(t, s, "q")
			for range 30 {
				m := fetch(t, r, 1)[0]
				if string(m.Body) != fmt.Sprint(next) {
					t.Fatalf("round %d: got %s, want %d", round, m.Body, next)
				}
				next++
				settle(t, r, sources.Done, m)
			}
			if round == 0 {
				r.mu.Lock()
				eager := r.live.want
				r.mu.Unlock()
				if eager != 100 {
					t.Errorf("the prefetch is %d after the careful start, want 100", eager)
				}
			}
			must(t, r.Close(within30(t)))
			must(t, s.Close())
		}
		if dead, brokers := len(b.get("dead")), len(b.get("brokers")); dead+brokers > 0 {
			t.Errorf("%d dead letters of ours, %d of the broker", dead, brokers)
		}
	})
}

// TestCutInTheMiddle: the connection is cut with messages in hand. Their settlements are dropped, the Reader says what happened, takes the
// queue up again, and the messages come again, in order.
func TestCutInTheMiddle(t *testing.T) {
	t.Parallel()
	everywhere(t, kinds[:2], func(t *testing.T, b *bench, k kind) {
		b.declare("q", k)
		b.declare("dead", kinds[0])
		b.send("q", 50)
		link := testserver.Proxy(t, b.r.Addr())
		s := b.source(func(c *Config) {
			c.URLs = []string{b.r.URLAt(link.Addr(), "guest", "guest", b.vhost)}
			c.EagerStart, c.Prefetch, c.DeadLetter = true, 100, Queue("dead")
		})
		r := open(t, s, "q")
		ms := fetch(t, r, 20)
		settle(t, r, sources.Done, ms[:5]...)
		waittest.Until(t, "5 acknowledged", func() bool { return b.total("q") == 45 })
		link.Cut()
		_, err := r.Fetch(within30(t), 100) // what had arrived, or the news
		for err == nil {
			_, err = r.Fetch(within30(t), 100)
		}
		if errors.Is(err, sources.ErrGone) || errors.Is(err, sources.ErrClosed) {
			t.Fatalf("Fetch: %v", err)
		}
		settle(t, r, sources.Done, ms[5:10]...)
		reject := []sources.Settlement{{Message: ms[10], Outcome: sources.Reject}}
		if err := r.Settle(within30(t), reject); !errors.Is(err, sources.ErrRedelivered) {
			t.Errorf("a rejection of a message that comes again: %v", err)
		}
		must(t, r.Settle(within30(t), reject)) // settled before: ignored
		settle(t, r, sources.Release, ms[11])
		link.Heal()
		again := fetchThrough(t, r, 45)
		if got := texted(again); got != numbers(6, 50) {
			t.Fatalf("got %s", got)
		}
		if n := len(b.get("dead")); n != 0 {
			t.Error("a message that comes again is a dead letter, too")
		}
		if err := r.Settle(within30(t), []sources.Settlement{{Message: ms[13], Outcome: sources.Reject}}); !errors.Is(err, sources.ErrRedelivered) {
			t.Errorf("a late rejection: %v", err)
		}
		settle(t, r, sources.Done, ms[12]) // late, and unknown by now
		settle(t, r, sources.Done, again...)
		waittest.Until(t, "all acknowledged", func() bool { return b.total("q") == 0 })
	})
}

// fetchThrough is fetch, for as long as Fetch fails.
func fetchThrough(t testing.TB, r sources.Reader, n int) []*rebalancer.Message {
	t.Helper()
	ctx := within30(t)
	var ms []*rebalancer.Message
	for len(ms) < n {
		got, err := r.Fetch(ctx, n-len(ms))
		if ctx.Err() != nil {
			t.Fatalf("%d of %d messages came: %v", len(ms), n, err)
		}
		if err != nil {
			sleep(ctx, 50*time.Millisecond)
		}
		ms = append(ms, got...)
	}
	return ms
}

// TestBlackHole: a network that carries nothing holds up no call for longer than its deadline, and neither does Close.
func TestBlackHole(t *testing.T) {
	t.Parallel()
	b := newBench(t, servers.RabbitMQ(t, 4))
	b.declare("q", kinds[1])
	b.send("q", 10)
	link := testserver.Proxy(t, b.r.Addr())
	s := b.source(func(c *Config) {
		c.URLs = []string{b.r.URLAt(link.Addr(), "guest", "guest", b.vhost)}
		c.EagerStart, c.DialTimeout = true, 300*time.Millisecond
	})
	r := open(t, s, "q")
	ms := fetch(t, r, 10)
	link.Blackhole()
	start := time.Now()
	settle(t, r, sources.Done, ms...)
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	if _, err := s.Lag(ctx, "q"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Lag: %v", err)
	}
	ctx, cancel = context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	_ = r.Close(ctx)
	if d := time.Since(start); d > 3*time.Second {
		t.Errorf("a settlement, a look and a close took %v", d)
	}
	fresh := b.source(func(c *Config) {
		c.URLs = []string{b.r.URLAt(link.Addr(), "guest", "secret", b.vhost)}
		c.DialTimeout = 300 * time.Millisecond
	})
	start = time.Now()
	ctx, cancel = context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	_, err := fresh.Open(ctx, claimOf("q"))
	if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) > 5*time.Second {
		t.Fatalf("Open: %v after %v", err, time.Since(start))
	}
	if strings.Contains(err.Error(), "secret") {
		t.Errorf("the error holds the password: %v", err)
	}
	must(t, s.Close())
	if d := time.Since(start); d > 15*time.Second {
		t.Errorf("closing a source whose broker does not answer took %v", d)
	}
}

// TestDeletedAndDeclaredAgain: a queue that is deleted is gone, and worked again when it is there again; its neighbour goes on.
func TestDeletedAndDeclaredAgain(t *testing.T) {
	t.Parallel()
	everywhere(t, kinds[:2], func(t *testing.T, b *bench, k kind) {
		b.declare("q", k)
		b.declare("other", k)
		s := b.source(func(c *Config) { c.EagerStart = true })
		r, other := open(t, s, "q"), open(t, s, "other")
		gone := make(chan error, 1)
		go func() {
			_, err := r.Fetch(within30(t), 10)
			gone <- err
		}()
		must(t, b.remove("q"))
		if err := <-gone; !errors.Is(err, sources.ErrGone) {
			t.Fatalf("Fetch: %v", err)
		}
		if _, err := r.Fetch(within30(t), 10); !errors.Is(err, sources.ErrGone) {
			t.Fatalf("Fetch again: %v", err)
		}
		b.send("other", 1)
		settle(t, other, sources.Done, fetchThrough(t, other, 1)...) // a busy broker ends the connection with 541 for a queue that goes in that moment
		b.declare("q", k)
		b.send("q", 1)
		settle(t, r, sources.Done, fetchThrough(t, r, 1)...)
		waittest.Until(t, "all acknowledged", func() bool { return b.total("q")+b.total("other") == 0 })
	})
}

// TestRevokedRights: a user who loses his rights, and his connection, is told so, without his password; when he has them again the work goes on.
func TestRevokedRights(t *testing.T) {
	t.Parallel()
	b := newBench(t, servers.RabbitMQ(t, 3))
	b.declare("q", kinds[0])
	b.r.For(t).User("bob", "very secret")
	b.r.Permit("bob", b.vhost, "", "", ".*")
	s := b.source(func(c *Config) {
		c.URLs = []string{b.r.URLAt(b.r.Addr(), "bob", "very secret", b.vhost)}
		c.EagerStart = true
	})
	r := open(t, s, "q")
	b.send("q", 1)
	settle(t, r, sources.Done, fetch(t, r, 1)...)
	b.r.Forbid("bob", b.vhost)
	waittest.Until(t, "its connection to be closed", func() bool { return b.r.CloseConnections("bob") > 0 })
	waittest.Until(t, "an error that says why", func() bool {
		_, err := r.Fetch(within30(t), 1)
		if err == nil || strings.Contains(err.Error(), "very secret") {
			t.Fatalf("Fetch: %v", err)
		}
		return strings.Contains(err.Error(), "permissions")
	})
	b.r.Permit("bob", b.vhost, "", "", ".*")
	b.send("q", 1)
	settle(t, r, sources.Done, fetchThrough(t, r, 1)...)
	wrong := b.source(func(c *Config) { c.URLs = []string{b.r.URLAt(b.r.Addr(), "bob", "another secret", b.vhost)} })
	_, err := wrong.Open(within30(t), claimOf("q"))
	if err == nil || !strings.Contains(err.Error(), "login refused") || strings.Contains(err.Error(), "secret") {
		t.Errorf("wrong password: %v", err)
	}
}

// TestRestartAndAlarm has a server to itself, which runs short of memory while dead letters are published, loses patience with a consumer, and is
// killed.
func TestRestartAndAlarm(t *testing.T) {
	t.Parallel()
	b := newBench(t, testserver.StartRabbitMQ(t, 3))
	for i, k := range kinds[:2] {
		b.declare(fmt.Sprint("q", i), k)
		b.send(fmt.Sprint("q", i), 20)
	}
	b.declare("dead", kinds[0])
	s := b.source(func(c *Config) { c.EagerStart, c.Prefetch, c.DeadLetter = true, 5, Queue("dead") })
	r0, r1 := open(t, s, "q0"), open(t, s, "q1")
	first := fetch(t, r0, 2)
	b.r.MemoryAlarm(true)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	err := r0.Settle(ctx, []sources.Settlement{{Message: first[0], Outcome: sources.Reject}})
	if err == nil {
		t.Fatal("a broker without memory took a dead letter")
	}
	err = r0.Settle(within30(t), []sources.Settlement{{Message: first[0], Outcome: sources.Reject}})
	if err == nil || !strings.Contains(err.Error(), "memory") {
		t.Errorf("Settle: %v; it is known by now why", err)
	}
	settle(t, r0, sources.Done, first[1])
	for range 10 { // more than the prefetch: acknowledgements get through
		settle(t, r0, sources.Done, fetch(t, r0, 1)...)
		settle(t, r1, sources.Done, fetch(t, r1, 1)...)
	}
	b.r.MemoryAlarm(false)
	waittest.Until(t, "the dead letter is taken", func() bool {
		return r0.Settle(within30(t), []sources.Settlement{{Message: first[0], Outcome: sources.Reject}}) == nil
	})
	waittest.Until(t, "it is there", func() bool { return len(b.get("dead")) > 0 })

	b.r.Ctl("eval", "application:set_env(rabbit, consumer_timeout, 500), application:set_env(rabbit, channel_tick_interval, 500).")
	lazy := b.source(func(c *Config) { c.EagerStart = true })
	b.declare("late", kinds[0])
	b.send("late", 1)
	r2 := open(t, lazy, "late")
	late := fetch(t, r2, 1)
	if _, err := r2.Fetch(within30(t), 1); err == nil || !strings.Contains(err.Error(), "timeout") || errors.Is(err, sources.ErrGone) {
		t.Errorf("an acknowledgement that is too late: %v", err)
	}
	settle(t, r2, sources.Done, late...)
	settle(t, r2, sources.Done, fetchThrough(t, r2, 1)...)
	must(t, r2.Close(within30(t)))

	held := fetch(t, r0, 1)
	b.r.Kill()
	b.r.Restart()
	settle(t, r0, sources.Done, held...)
	b.connect()
	for _, r := range []*reader{r0, r1} {
		left, _ := b.ready(r.claim.Resource)
		if left == 0 {
			t.Fatal("nothing is left to be worked after the restart")
		}
		ms := fetchThrough(t, r, 3)
		settle(t, r, sources.Done, ms...)
	}
}

// TestBrokerThatIsAway: a queue is opened as soon as a broker can be reached that could not, as when it restarts; one that refuses is an error
// at once.
func TestBrokerThatIsAway(t *testing.T) {
	t.Parallel()
	b := newBench(t, servers.RabbitMQ(t, 3))
	b.declare("q", kinds[0])
	link := testserver.Proxy(t, b.r.Addr())
	at := func(password string) func(*Config) {
		return func(c *Config) { c.URLs = []string{b.r.URLAt(link.Addr(), "guest", password, b.vhost)} }
	}
	start := time.Now()
	if _, err := b.source(at("wrong")).Open(within30(t), claimOf("q")); !errors.Is(err, amqp.ErrCredentials) || time.Since(start) > patience/2 {
		t.Errorf("a login that is refused: %v after %v", err, time.Since(start))
	}
	link.Cut()
	opened := make(chan error, 1)
	s := b.source(at("guest"))
	go func() {
		r, err := s.Open(within30(t), claimOf("q"))
		if err == nil {
			err = r.Close(within30(t))
		}
		opened <- err
	}()
	waittest.Until(t, "three tries", func() bool {
		s.consuming.mu.Lock()
		defer s.consuming.mu.Unlock()
		return s.consuming.fails >= 3
	})
	select {
	case err := <-opened:
		t.Fatalf("Open: %v", err)
	default:
	}
	link.Heal()
	if err := <-opened; err != nil {
		t.Error(err)
	}
}

// TestManyQueues: 64 queues take one connection, which tells who consumes what, and no more memory than their messages.
func TestManyQueues(t *testing.T) {
	t.Parallel()
	b := newBench(t, servers.RabbitMQ(t, 3))
	s := b.source(func(c *Config) { c.EagerStart, c.Prefetch = true, 10 })
	var readers []*reader
	for i := range 64 {
		name := fmt.Sprint("q", i)
		b.declare(name, kinds[0])
		readers = append(readers, open(t, s, name))
		b.send(name, 2)
	}
	for _, r := range readers {
		settle(t, r, sources.Done, fetch(t, r, 2)...)
	}
	type consumer struct {
		Tag     string                `json:"consumer_tag"`
		Channel json.RawMessage       `json:"channel_details"` // [] until the broker knows them
		Queue   struct{ Name string } `json:"queue"`
	}
	var all []consumer
	waittest.Until(t, "64 consumers to be shown", func() bool {
		b.r.Must(http.MethodGet, "/api/consumers/"+url.PathEscape(b.vhost), nil, &all)
		return len(all) == 64 && !slices.ContainsFunc(all, func(c consumer) bool { return string(c.Channel) == "[]" })
	})
	conns := map[string]bool{}
	for _, c := range all {
		var channel struct{ Name string }
		must(t, json.Unmarshal(c.Channel, &channel))
		name, _, _ := strings.Cut(channel.Name, " (")
		conns[name] = true
		if !strings.HasPrefix(c.Tag, "g/n/") || !strings.HasSuffix(c.Tag, "#0001") {
			t.Fatalf("consumer tag %q", c.Tag)
		}
	}
	if len(conns) != 1 {
		t.Errorf("%d connections", len(conns))
	}
	type connection struct {
		Vhost string
		Props struct {
			Name string `json:"connection_name"`
		} `json:"client_properties"`
	}
	var shown []connection
	waittest.Until(t, "the connection's name", func() bool {
		b.r.Must(http.MethodGet, "/api/connections", nil, &shown)
		for _, c := range shown {
			if c.Vhost == b.vhost && c.Props.Name == "g/n consumes" {
				return true
			}
		}
		return false
	})
}

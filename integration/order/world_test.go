//go:build linux

package order

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/backends/postgres"
	"github.com/rebalancer-go/rebalancer/internal/testserver"
)

const (
	exchange = "orders"
	ttl      = 5 * time.Second // the least that fits a heartbeat of 1 s
)

// world is a broker with partitions, a store, and a group.
type world struct {
	fleet
	broker  *testserver.RabbitMQ
	vhost   string
	storeAt string // host:port
	store   func(addr string) string
	restart func() // the store's server, killed before
	queues  int
}

// program is the command line with its store and source.
func (w *world) program(store, broker string, args ...string) *exec.Cmd {
	c := exec.Command(binary, args...)
	q := url.Values{"heartbeat": {"1"}, "management": {w.broker.ManagementURL()}}
	c.Env = append(os.Environ(), "REBALANCER_STORE="+w.store(store), "REBALANCER_SOURCE="+w.broker.URLAt(broker, "guest", "guest", w.vhost)+"?"+q.Encode())
	return c
}

// do runs the program to its end.
func (w *world) do(args ...string) string {
	w.t.Helper()
	c := w.program(w.storeAt, w.broker.Addr(), args...)
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	timer := time.AfterFunc(3*time.Minute, func() { _ = c.Process.Kill() })
	defer timer.Stop()
	if err := c.Run(); err != nil {
		w.t.Fatalf("%q: %v\n%s", args, err, errs.String())
	}
	return out.String()
}

// variant is a kind of queues and a store.
type variant struct {
	rabbitmq    int
	queues      string
	store       string
	concurrency int
}

func (v variant) String() string {
	return fmt.Sprintf("RabbitMQ %d %s %s concurrency %d", v.rabbitmq, v.queues, v.store, v.concurrency)
}

func newWorld(t *testing.T, v variant, rnd *rand.Rand) *world {
	t.Helper()
	w := &world{fleet: fleet{t: t, rnd: rnd, lines: filepath.Join(t.TempDir(), "lines")}}
	w.command = func(n *node) *exec.Cmd {
		n.broker, n.store = testserver.Proxy(t, w.broker.Addr()), testserver.Proxy(t, w.storeAt)
		return w.program(n.store.Addr(), n.broker.Addr(), "consume", "g", "--node", n.name, "--registered", "--ttl", ttl.String(), "--drain", "3s",
			"--on-success", "delete", "--concurrency", fmt.Sprint(v.concurrency))
	}
	w.broker = servers.RabbitMQ(t, v.rabbitmq)
	w.vhost = w.broker.VHost(t)
	switch v.store {
	case "redis":
		s := testserver.StartRedis(t, testserver.Redis, "--appendonly", "yes", "--appendfsync", "always")
		w.storeAt, w.restart = s.Addr(), s.Restart
		w.store = func(addr string) string { return "redis://" + addr }
	case "postgres":
		s := testserver.StartPostgres(t, 15)
		w.storeAt, w.restart = s.Addr(), s.Restart
		w.store = func(addr string) string { return s.URLAt(addr, "postgres", "") }
		store, err := postgres.Open(w.store(w.storeAt))
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := store.Create(ctx); err != nil {
			t.Fatal(err)
		}
	}
	w.do("rabbitmq", "partitions", "create", exchange, "4", "--type", v.queues)
	w.do("create", "g", "--ttl", ttl.String(), "--registered")
	w.register(0, 4)
	return w
}

func (w *world) queue(n int) string { return fmt.Sprintf("%s.%d", exchange, n) }

// register adds queues to the group's resources.
func (w *world) register(from, to int) {
	w.t.Helper()
	args := []string{"resources", "add", "g"}
	for i := from; i < to; i++ {
		args = append(args, w.queue(i))
	}
	w.do(args...)
	w.queues = to
}

// held is how many of the queues have a consumer.
func (w *world) held() (n int) {
	var all []struct {
		Name      string
		Consumers int
	}
	if err := w.broker.Call(w.t.Context(), http.MethodGet, "/api/queues/"+w.vhost+"?columns=name,consumers", nil, &all); err != nil {
		return 0
	}
	for _, q := range all {
		if q.Consumers > 0 && strings.HasPrefix(q.Name, exchange+".") {
			n++
		}
	}
	return n
}

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
	"sync"
	"syscall"
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
	t       *testing.T
	rnd     *rand.Rand
	broker  *testserver.RabbitMQ
	vhost   string
	storeAt string // host:port
	store   func(addr string) string
	restart func() // the store's server, killed before
	lines   string // what the nodes wrote
	more    []string

	queues int
	nodes  []*node
	made   int
}

// command is the program with its store and source.
func (w *world) command(store, broker string, args ...string) *exec.Cmd {
	c := exec.Command(binary, args...)
	q := url.Values{"heartbeat": {"1"}, "management": {w.broker.ManagementURL()}}
	c.Env = append(os.Environ(), "REBALANCER_STORE="+w.store(store), "REBALANCER_SOURCE="+w.broker.URLAt(broker, "guest", "guest", w.vhost)+"?"+q.Encode())
	return c
}

// do runs the program to its end.
func (w *world) do(args ...string) string {
	w.t.Helper()
	c := w.command(w.storeAt, w.broker.Addr(), args...)
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
	w := &world{t: t, rnd: rnd, lines: filepath.Join(t.TempDir(), "lines")}
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
	w.more = []string{"--concurrency", fmt.Sprint(v.concurrency)}
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

// node is a process, with proxies in front of its servers.
type node struct {
	w             *world
	name          string
	cmd           *exec.Cmd
	errs          safeBuffer
	broker, store *testserver.Link
	ended         chan struct{}
}

func (w *world) join() *node {
	w.t.Helper()
	w.made++
	n := &node{w: w, name: fmt.Sprintf("n%d", w.made), ended: make(chan struct{}),
		broker: testserver.Proxy(w.t, w.broker.Addr()), store: testserver.Proxy(w.t, w.storeAt)}
	args := append([]string{"consume", "g", "--node", n.name, "--registered", "--ttl", ttl.String(), "--drain", "3s", "--on-success", "delete"}, w.more...)
	n.cmd = w.command(n.store.Addr(), n.broker.Addr(), args...)
	n.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	out, err := os.OpenFile(w.lines, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		w.t.Fatal(err)
	}
	defer out.Close()
	n.cmd.Stdout, n.cmd.Stderr = out, &n.errs
	if err := n.cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	go func() {
		_ = n.cmd.Wait()
		close(n.ended)
	}()
	w.t.Cleanup(func() {
		n.kill()
		if w.t.Failed() {
			w.t.Logf("%s:\n%s", n.name, n.errs.tail(4000))
		}
	})
	w.nodes = append(w.nodes, n)
	return n
}

func (n *node) signal(s syscall.Signal) { _ = n.cmd.Process.Signal(s) } // one that has ended needs none

func (n *node) kill() {
	n.signal(syscall.SIGKILL)
	<-n.ended
}

// leave ends a node in good order.
func (n *node) leave() {
	n.w.t.Helper()
	n.signal(syscall.SIGTERM)
	select {
	case <-n.ended:
	case <-time.After(40 * time.Second):
		n.w.t.Errorf("%s did not leave", n.name)
		n.kill()
	}
	if code := n.cmd.ProcessState.ExitCode(); code != 0 {
		n.w.t.Errorf("%s left with code %d", n.name, code)
	}
	n.w.drop(n)
}

func (w *world) drop(n *node) {
	for i, m := range w.nodes {
		if m == n {
			w.nodes = append(w.nodes[:i:i], w.nodes[i+1:]...)
			return
		}
	}
}

type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) tail(n int) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.b.Bytes()
	return string(b[max(0, len(b)-n):])
}

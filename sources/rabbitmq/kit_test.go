//go:build linux

package rabbitmq

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"go.uber.org/goleak"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/internal/testserver"
	"github.com/rebalancer-go/rebalancer/sources"
)

var servers testserver.Keeper

func TestMain(m *testing.M) {
	if what := os.Getenv(childEnv); what != "" {
		child(what)
		return
	}
	code := m.Run()
	consoles.end()
	servers.End()
	if code == 0 {
		if err := goleak.Find(testserver.Leftovers()...); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// versions and kinds are what the tests run on.
var versions = []int{3, 4}

// kind is a way to declare a queue.
type kind struct {
	name string
	args amqp.Table
}

var kinds = []kind{
	{"classic", amqp.Table{"x-queue-type": "classic"}},
	{"quorum", amqp.Table{"x-queue-type": "quorum"}},
	{"classic single active", amqp.Table{"x-queue-type": "classic", "x-single-active-consumer": true}},
	{"quorum single active", amqp.Table{"x-queue-type": "quorum", "x-single-active-consumer": true}},
}

func (k kind) quorum() bool { return k.args["x-queue-type"] == "quorum" }

// with adds arguments.
func (k kind) with(args amqp.Table) kind {
	all := amqp.Table{}
	for name, v := range k.args {
		all[name] = v
	}
	for name, v := range args {
		all[name] = v
	}
	k.args = all
	return k
}

// everywhere runs a test on each version and kind of queue.
func everywhere(t *testing.T, ks []kind, f func(t *testing.T, b *bench, k kind)) {
	for _, v := range versions {
		for _, k := range ks {
			t.Run(fmt.Sprintf("RabbitMQ %d %s", v, k.name), func(t *testing.T) {
				t.Parallel()
				f(t, newBench(t, servers.RabbitMQ(t, v)), k)
			})
		}
	}
}

// bench is a virtual host of a server, with a client of its own that is not ours.
type bench struct {
	t     testing.TB
	r     *testserver.RabbitMQ
	vhost string
	conn  *amqp.Connection
	mu    sync.Mutex // of ch
	ch    *amqp.Channel
	sent  int
}

func newBench(t testing.TB, r *testserver.RabbitMQ) *bench {
	t.Helper()
	b := &bench{t: t, r: r, vhost: r.VHost(t)}
	b.connect()
	t.Cleanup(func() { _ = b.conn.Close() })
	return b
}

func (b *bench) connect() {
	b.t.Helper()
	var err error
	if b.conn, err = amqp.DialConfig(b.r.URL(b.vhost), amqp.Config{Heartbeat: 10 * time.Second}); err != nil {
		b.t.Fatal(err)
	}
	if b.ch, err = b.conn.Channel(); err != nil {
		b.t.Fatal(err)
	}
	if err = b.ch.Confirm(false); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) declare(name string, k kind) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, err := b.ch.QueueDeclare(name, true, false, false, false, k.args); err != nil {
		b.t.Fatal(err)
	}
}

// publish puts a message into a queue, and returns when the broker has it.
func (b *bench) publish(queue string, p amqp.Publishing) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	p.DeliveryMode = amqp.Persistent
	c, err := b.ch.PublishWithDeferredConfirm("", queue, true, false, p)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if ok, err := c.WaitContext(ctx); err != nil || !ok {
		return fmt.Errorf("publish to %s: %v %w", queue, ok, err)
	}
	return nil
}

// send publishes messages with the bodies "1", "2", …, counted on from call to call.
func (b *bench) send(queue string, n int) {
	b.t.Helper()
	var last *amqp.DeferredConfirmation
	b.mu.Lock()
	defer b.mu.Unlock()
	for range n {
		b.sent++
		text := fmt.Sprint(b.sent)
		var err error
		if last, err = b.ch.PublishWithDeferredConfirm("", queue, true, false,
			amqp.Publishing{Body: []byte(text), MessageId: "id-" + text, DeliveryMode: amqp.Persistent}); err != nil {
			b.t.Fatal(err)
		}
	}
	if last != nil && !last.Wait() {
		b.t.Fatal("not confirmed")
	}
}

// ready is how many messages wait in a queue, and how many consumers it has.
func (b *bench) ready(queue string) (messages, consumers int) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	q, err := b.ch.QueueDeclarePassive(queue, true, false, false, false, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	return q.Messages, q.Consumers
}

// get takes all messages that wait in a queue.
func (b *bench) get(queue string) []amqp.Delivery {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	var ds []amqp.Delivery
	for {
		d, ok, err := b.ch.Get(queue, true)
		if err != nil {
			b.t.Fatal(err)
		}
		if !ok {
			return ds
		}
		ds = append(ds, d)
	}
}

// source makes a source of the virtual host.
func (b *bench) source(change func(*Config)) *Source {
	b.t.Helper()
	c := Config{URLs: []string{b.r.URL(b.vhost)}, Heartbeat: time.Second}
	if change != nil {
		change(&c)
	}
	s, err := New(c)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = s.Close() })
	return s
}

var fences struct {
	sync.Mutex
	last int64
}

func claimOf(queue string) *rebalancer.Claim {
	fences.Lock()
	defer fences.Unlock()
	fences.last++
	return &rebalancer.Claim{Group: "g", Node: "n", Resource: queue, Fence: fences.last, TTL: time.Minute}
}

func within30(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func open(t testing.TB, s *Source, queue string) *reader {
	t.Helper()
	r, err := s.Open(within30(t), claimOf(queue))
	if err != nil {
		t.Fatal(err)
	}
	return r.(*reader)
}

// fetch collects n messages.
func fetch(t testing.TB, r sources.Reader, n int) []*rebalancer.Message {
	t.Helper()
	var ms []*rebalancer.Message
	ctx := within30(t)
	for len(ms) < n {
		got, err := r.Fetch(ctx, n-len(ms))
		if err != nil {
			t.Fatalf("Fetch after %d of %d messages: %v", len(ms), n, err)
		}
		ms = append(ms, got...)
	}
	return ms
}

func settle(t testing.TB, r sources.Reader, o sources.Outcome, ms ...*rebalancer.Message) {
	t.Helper()
	ss := make([]sources.Settlement, len(ms))
	for i, m := range ms {
		ss[i] = sources.Settlement{Message: m, Outcome: o, Err: io.ErrUnexpectedEOF}
	}
	if err := r.Settle(within30(t), ss); err != nil {
		t.Fatal(err)
	}
}

func texted(ms []*rebalancer.Message) string {
	var all []string
	for _, m := range ms {
		all = append(all, string(m.Body))
	}
	return strings.Join(all, " ")
}

// numbers is "a a+1 … b".
func numbers(a, b int) string {
	var all []string
	for ; a <= b; a++ {
		all = append(all, fmt.Sprint(a))
	}
	return strings.Join(all, " ")
}

// total is how many messages a queue holds, in hand or not, as the queue itself counts.
func (b *bench) total(queue string) int {
	b.t.Helper()
	n, err := consoles.of(b.t, b.r).total(b.vhost, queue)
	if err != nil {
		b.t.Fatal(err)
	}
	return n
}

// console is an Erlang node beside the broker, which knows at once what the management API shows seconds later.
type console struct {
	mu  sync.Mutex
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

type consoleSet struct {
	mu  sync.Mutex
	all map[string]*console
}

var consoles consoleSet

func (s *consoleSet) of(t testing.TB, r *testserver.RabbitMQ) *console {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.all[r.Dir]; c != nil {
		return c
	}
	environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", r.Pid()))
	if err != nil {
		t.Fatal(err)
	}
	cookie, err := os.ReadFile(filepath.Join(r.Dir, ".erlang.cookie"))
	if err != nil {
		t.Fatal(err)
	}
	node := ""
	var env []string
	for _, v := range bytes.Split(environ, []byte{0}) {
		if n, ok := strings.CutPrefix(string(v), "RABBITMQ_NODENAME="); ok {
			node = n
		}
		if strings.HasPrefix(string(v), "ERL_EPMD") {
			env = append(env, string(v))
		}
	}
	const loop = `N = list_to_atom(os:getenv("NODE")),
F = fun F() -> case io:get_line("") of
  eof -> halt();
  L -> [V, Q] = string:tokens(string:trim(L), "\t"),
    R = (catch begin
      {ok, A} = rpc:call(N, rabbit_amqqueue, lookup, [{resource, list_to_binary(V), queue, list_to_binary(Q)}]),
      case rpc:call(N, amqqueue, get_type, [A]) of
        rabbit_quorum_queue -> {ok, {_, T}, _} = rpc:call(N, ra, leader_query, [rpc:call(N, amqqueue, get_pid, [A]), fun rabbit_fifo:query_messages_total/1]), T;
        _ -> [{messages, T}] = rpc:call(N, rabbit_amqqueue, info, [A, [messages]]), T
      end end),
    io:format("~0p~n", [R]), F()
end end, F().`
	c := &console{cmd: exec.Command("erl", "-sname", fmt.Sprintf("probe%d@localhost", os.Getpid()), "-setcookie", string(cookie),
		"-start_epmd", "false", "-hidden", "-noshell", "-kernel", "inet_dist_use_interface", "{127,0,0,1}", "-eval", loop)}
	c.cmd.Env = append(os.Environ(), append(env, "NODE="+node, "HOME="+r.Dir)...)
	c.cmd.Stderr = os.Stderr
	out, err := c.cmd.StdoutPipe()
	if err == nil {
		c.in, err = c.cmd.StdinPipe()
	}
	if err == nil {
		err = c.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	c.out = bufio.NewReader(out)
	if s.all == nil {
		s.all = map[string]*console{}
	}
	s.all[r.Dir] = c
	return c
}

func (c *console) total(vhost, queue string) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, err := fmt.Fprintf(c.in, "%s\t%s\n", vhost, queue); err != nil {
		return 0, err
	}
	line, err := c.out.ReadString('\n')
	if err != nil {
		return 0, err
	}
	var n int
	if _, err := fmt.Sscanf(line, "%d", &n); err != nil {
		return 0, fmt.Errorf("the console answered %s", line)
	}
	return n, nil
}

func (s *consoleSet) end() {
	for _, c := range s.all {
		_ = c.in.Close()
		_ = c.cmd.Wait()
	}
}

// remove deletes a queue.
func (b *bench) remove(queue string) error {
	return b.r.Call(context.Background(), http.MethodDelete, "/api/queues/"+b.vhost+"/"+url.PathEscape(queue), nil, nil)
}

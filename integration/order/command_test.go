//go:build linux

package order

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// TestCommandLine: partitions are made and shown, their queues discovered and worked by a command, and what it gives up goes to a queue.
func TestCommandLine(t *testing.T) {
	t.Parallel()
	w := &world{fleet: fleet{t: t, lines: filepath.Join(t.TempDir(), "lines")}, broker: servers.RabbitMQ(t, 4), store: func(addr string) string { return "sqlite://" + addr }}
	w.vhost, w.storeAt = w.broker.VHost(t), filepath.Join(t.TempDir(), "group.db")
	w.do("rabbitmq", "partitions", "create", exchange, "2", "--type", "quorum")
	w.do("rabbitmq", "partitions", "grow", exchange, "3")
	conn, err := amqp.Dial(w.broker.URL(w.vhost))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ch, err := conn.Channel()
	if err == nil {
		_, err = ch.QueueDeclare("orders.dead", true, false, false, false, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	l, err := dial(w.broker.URL(w.vhost))
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	const n = 12
	for i := range n {
		if err := l.send(fmt.Sprint("key", i), i); err != nil {
			t.Fatal(err)
		}
	}
	w.do("consume", "g", "--discover", "orders.*", "--ttl", "5s", "--on-failure", "move:orders.dead", "--exit-idle", "4s",
		"--", "sh", "-c", `read -r body || true; echo "$RB_KEY $body" >>"$0"; [ "$body" != 7 ] || exit 65`, w.lines)
	b, err := os.ReadFile(w.lines)
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if want := fmt.Sprintf("key%d %d\n", i, i); strings.Count(string(b), want) != 1 {
			t.Errorf("%q was not worked once:\n%s", want, b)
		}
	}
	d, ok, err := ch.Get("orders.dead", true)
	if err != nil || !ok || string(d.Body) != "7" || d.Headers["x-rebalancer-error"] == nil {
		t.Errorf("dead letter: %v %v %s %v", err, ok, d.Body, d.Headers)
	}
	var state struct {
		Exchange, Begun string
		Queues          []struct {
			Name  string
			Bound bool
			Ready int
		}
	}
	if !within(20*time.Second, func() bool {
		if err := json.Unmarshal([]byte(w.do("rabbitmq", "partitions", "show", exchange, "-o", "json")), &state); err != nil {
			t.Fatal(err)
		}
		return len(state.Queues) == 3
	}) || state.Exchange != exchange || state.Begun != "" || state.Queues[2].Name != "orders.2" || !state.Queues[2].Bound || state.Queues[2].Ready != 0 {
		t.Errorf("show: %+v", state)
	}
	if text := w.do("rabbitmq", "partitions", "show", exchange); !strings.Contains(text, "orders.2") {
		t.Errorf("show: %s", text)
	}
}

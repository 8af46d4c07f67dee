//go:build linux

package queues

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rebalancer-go/rebalancer/internal/testserver"
)

const (
	prefetch = 200
	perRound = 20_000
)

var rivals = []struct {
	name string
	loop Loop
	part int // only every so many of the messages: it is slow
}{
	{"ours", Ours, 1}, {"ours-as-shipped", OursAsShipped, 1}, {"raw", Raw, 1}, {"watermill", Watermill, 1}, {"watermill-as-shipped", WatermillAsShipped, 10},
}

// BenchmarkRabbitMQ: each iteration is a round of every loop, in turns that begin with another one each time. -benchtime=5x gives the figures of
// the README. 256 B, persistent, published before.
func BenchmarkRabbitMQ(b *testing.B) {
	server := testserver.StartRabbitMQ(b, 4)
	for _, kind := range []string{"classic", "quorum"} {
		for _, queues := range []int{1, 8} {
			b.Run(fmt.Sprintf("%s/%d-queues", kind, queues), func(b *testing.B) { compare(b, server.For(b), kind, queues) })
		}
	}
}

func compare(b *testing.B, server *testserver.RabbitMQ, kind string, queues int) {
	vhost := server.VHost(b)
	w := Work{URL: server.URL(vhost), Quorum: kind == "quorum", Prefetch: prefetch}
	for i := range queues {
		q := fmt.Sprintf("q%d", i)
		w.Queues = append(w.Queues, q)
		server.Must(http.MethodPut, "/api/queues/"+vhost+"/"+q, map[string]any{"durable": true, "arguments": map[string]any{"x-queue-type": kind}}, nil)
	}
	results := make([][]Result, len(rivals))
	turn := 0
	for b.Loop() {
		for i := range rivals {
			i = (i + turn) % len(rivals)
			n := perRound / rivals[i].part / queues * queues
			fill(b, w, n)
			r, err := Round(b.Context(), rivals[i].loop, w, n, server.Pid())
			if err != nil {
				b.Fatalf("%s: %v", rivals[i].name, err)
			}
			empty(b, w, rivals[i].name)
			results[i] = append(results[i], r)
		}
		turn++
	}
	report(b, results)
}

// report gives for each loop the messages per second and CPU per message, and of ours the ratios to the others, round by round.
func report(b *testing.B, results [][]Result) {
	b.ReportMetric(0, "ns/op")
	for i, rs := range results {
		name := rivals[i].name
		b.ReportMetric(Median(rs, func(r Result) float64 { return r.PerSecond }), name+"-msg/s")
		b.ReportMetric(Median(rs, func(r Result) float64 { return float64(r.Client.Nanoseconds()) / 1e3 }), name+"-client-µs/msg")
		b.ReportMetric(Median(rs, func(r Result) float64 { return float64(r.Broker.Nanoseconds()) / 1e3 }), name+"-broker-µs/msg")
		for ours := range 2 {
			if i < 2 || ours == 1 && !strings.HasSuffix(name, "-as-shipped") {
				continue
			}
			ratios := make([]Result, len(rs))
			for k := range rs {
				ratios[k].PerSecond = results[ours][k].PerSecond / rs[k].PerSecond
			}
			b.ReportMetric(Median(ratios, func(r Result) float64 { return r.PerSecond }), rivals[ours].name+"/"+name)
		}
	}
}

// channel is one on a connection of its own, and what ends both.
func channel(b *testing.B, w Work) (*amqp.Channel, func() error) {
	b.Helper()
	conn, err := amqp.Dial(w.URL)
	if err != nil {
		b.Fatal(err)
	}
	ch, err := conn.Channel()
	if err != nil {
		b.Fatal(err)
	}
	return ch, conn.Close
}

// fill publishes n messages, the same number to each queue, and waits for the confirms.
func fill(b *testing.B, w Work, n int) {
	ch, end := channel(b, w)
	defer end()
	if err := ch.Confirm(false); err != nil {
		b.Fatal(err)
	}
	body := bytes.Repeat([]byte("x"), 256)
	var last *amqp.DeferredConfirmation
	var err error
	for i := range n {
		last, err = ch.PublishWithDeferredConfirmWithContext(context.Background(), "", w.Queues[i%len(w.Queues)], false, false,
			amqp.Publishing{DeliveryMode: amqp.Persistent, MessageId: fmt.Sprint(i), Headers: amqp.Table{"_watermill_message_uuid": fmt.Sprint(i)}, Body: body})
		if err != nil {
			b.Fatal(err)
		}
		if i%1000 == 999 || i == n-1 {
			if !last.Wait() {
				b.Fatal("the broker refused a message")
			}
		}
	}
}

// empty checks that everything was acknowledged. watermill-amqp gives back what it had not acknowledged yet when it is told to end: that is removed.
func empty(b *testing.B, w Work, loop string) {
	ch, end := channel(b, w)
	defer end()
	for _, q := range w.Queues {
		left, err := ch.QueuePurge(q, false)
		if err != nil || left > 0 && !strings.HasPrefix(loop, "watermill") {
			b.Fatalf("%s left %d messages in %s (%v)", loop, left, q, err)
		}
	}
}

// BenchmarkManyQueues: 64 queues on one node. What the program has in use after a second portion of messages, beside that after the first, tells whether
// anything grows with them.
func BenchmarkManyQueues(b *testing.B) {
	const queues, portion = 64, 64 * 500
	server := testserver.StartRabbitMQ(b, 4)
	vhost := server.VHost(b)
	w := Work{URL: server.URL(vhost)}
	for i := range queues {
		q := fmt.Sprintf("q%d", i)
		w.Queues = append(w.Queues, q)
		server.Must(http.MethodPut, "/api/queues/"+vhost+"/"+q, map[string]any{"durable": true}, nil)
	}
	for b.Loop() {
		var handled atomic.Int64
		w.Handle = func() { handled.Add(1) }
		ctx, cancel := context.WithCancel(b.Context())
		ended := make(chan error, 1)
		go func() { ended <- OursAsShipped(ctx, w) }()
		var inUse [3]float64
		for i := range inUse {
			fill(b, w, portion)
			for handled.Load() < int64(i+1)*portion {
				time.Sleep(time.Millisecond)
			}
			inUse[i] = heap()
		}
		cancel()
		if err := <-ended; err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(inUse[0]/queues, "KiB/queue-after-1")
		b.ReportMetric(inUse[2]/queues, "KiB/queue-after-3")
	}
	b.ReportMetric(0, "ns/op")
}

// heap is what is in use, in KiB.
func heap() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc) / 1024
}

//go:build linux

package page

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	amqp "github.com/rabbitmq/amqp091-go"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/admin"
	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/backends/postgres"
	"github.com/rebalancer-go/rebalancer/group"
	"github.com/rebalancer-go/rebalancer/internal/testserver"
	"github.com/rebalancer-go/rebalancer/sources/rabbitmq"
	"github.com/rebalancer-go/rebalancer/statuspage"
	"github.com/rebalancer-go/rebalancer/telemetry"
)

const (
	rollingNodes  = 8
	rollingQueues = 200
)

// Eight nodes share 200 queues of RabbitMQ over PostgreSQL, and are restarted one after the other while messages flow. With static names nothing moves,
// without them each queue moves at most twice; no message is handled twice, and none is lost. History, metrics and the page tell of as many moves as there were.
func TestRollingRestart(t *testing.T) {
	t.Parallel()
	broker, db := testserver.StartRabbitMQ(t, 4), testserver.StartPostgres(t, 17, "-c", "fsync=off", "-c", "max_connections=300")
	for name, static := range map[string]bool{"static names": true, "other names": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRolling(t, broker, db, static)
			stop := r.publish()
			r.restartAll()
			r.await("there were messages enough", func() bool { _, n := r.counts(); return n >= 500 })
			stop()
			r.await("all messages are handled", func() bool { handled, published := r.counts(); return handled == published })
			r.moves()
			r.onThePage()
			r.once()
		})
	}
}

// rolling is a group that is restarted, and what became of it.
type rolling struct {
	t      *testing.T
	static bool
	url    string // of the database
	schema string
	amqp   string
	queues []string
	store  backends.Store
	reader *metric.ManualReader
	meters *metric.MeterProvider
	nodes  [rollingNodes]restarted
	began  struct { // what history and metrics told before the restarts
		generation int64
		moves      int
	}

	mu        sync.Mutex
	owners    map[string][]string // of each queue, in order
	handled   map[string]int      // by message
	published int
}

// restarted is one process's part.
type restarted struct {
	*group.Group
	stop func()
}

func newRolling(t *testing.T, broker *testserver.RabbitMQ, db *testserver.Postgres, static bool) *rolling {
	r := &rolling{t: t, static: static, url: db.URL("postgres", "") + "&pool_max_conns=4", owners: map[string][]string{}, handled: map[string]int{}}
	vhost := broker.VHost(t)
	r.schema, r.amqp = "rolling"+fmt.Sprint(static), broker.URL(vhost)
	r.reader = metric.NewManualReader()
	r.meters = metric.NewMeterProvider(metric.WithReader(r.reader))
	for i := range rollingQueues {
		q := fmt.Sprintf("orders.%03d", i)
		r.queues = append(r.queues, q)
		broker.Must(http.MethodPut, "/api/queues/"+vhost+"/"+q, map[string]any{"durable": true}, nil)
	}
	r.store = r.openStore()
	t.Cleanup(func() { _ = r.store.Close() })
	if _, err := admin.Create(t.Context(), r.store, "orders", admin.Settings{TTL: group.DefaultTTL}); err != nil { // or the first start waits for a ttl
		t.Fatal(err)
	}
	for i := range r.nodes {
		r.start(i, 0)
	}
	r.balanced()
	return r
}

func (r *rolling) openStore() backends.Store {
	r.t.Helper()
	s, err := postgres.Open(r.url, postgres.Schema(r.schema), postgres.CreateSchema())
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}

// start starts a node, with a store and a source of its own, as a process has them.
func (r *rolling) start(i, life int) {
	r.t.Helper()
	name := fmt.Sprintf("n%d", i)
	if !r.static {
		name = fmt.Sprintf("n%d-%d", i, life)
	}
	store := r.openStore()
	source, err := rabbitmq.New(rabbitmq.Config{URLs: []string{r.amqp}})
	if err != nil {
		r.t.Fatal(err)
	}
	g, err := group.New(telemetry.Instrument(group.Config{
		Name: "orders", Node: name, Static: r.static, Store: store, Source: source, Resources: group.Static(r.queues...),
		Logger: slog.New(slog.DiscardHandler), OnClaim: r.claimed,
	}, telemetry.Config{Meters: r.meters}))
	if err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- g.Consume(ctx, r.handle) }()
	stop := sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			r.t.Errorf("node %s: %v", name, err)
		}
		if err := store.Close(); err != nil {
			r.t.Errorf("store of node %s: %v", name, err)
		}
	})
	r.t.Cleanup(stop)
	r.nodes[i] = restarted{g, stop}
}

func (r *rolling) claimed(_ context.Context, c *rebalancer.Claim) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if l := r.owners[c.Resource]; len(l) == 0 || l[len(l)-1] != c.Node {
		r.owners[c.Resource] = append(l, c.Node)
	}
	return nil
}

func (r *rolling) handle(_ context.Context, m *rebalancer.Message) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.handled[m.ID]++
	return nil
}

// balanced waits until each node works its share.
func (r *rolling) balanced() {
	r.t.Helper()
	r.await("each node works its share", func() bool {
		for _, n := range r.nodes {
			if s := n.Status(); working(s) != rollingQueues/rollingNodes || working(s) != len(s.Resources) || s.Awaited > 0 {
				return false
			}
		}
		return true
	})
}

// working is how many queues are worked by the nodes but one.
func (r *rolling) working(but int) (n int) {
	for i := range r.nodes {
		if i != but {
			n += working(r.nodes[i].Status())
		}
	}
	return n
}

func working(s group.Status) (n int) {
	for _, res := range s.Resources {
		if res.Phase == "working" {
			n++
		}
	}
	return n
}

func (r *rolling) await(what string, ok func() bool) {
	r.t.Helper()
	for end := time.Now().Add(2 * time.Minute); !ok(); <-time.After(20 * time.Millisecond) {
		if time.Now().After(end) {
			for i, n := range r.nodes {
				s := n.Status()
				r.t.Logf("node %d: %d worked of %d, %d awaited", i, working(s), len(s.Resources), s.Awaited)
			}
			r.t.Fatalf("gave up waiting until %s", what)
		}
	}
}

// restartAll stops and starts each node; what was before does not count.
func (r *rolling) restartAll() {
	r.await("each queue was claimed", func() bool { // which is noted after it is said to be worked
		r.mu.Lock()
		defer r.mu.Unlock()
		return len(r.owners) == rollingQueues
	})
	r.mu.Lock()
	for q, l := range r.owners {
		r.owners[q] = l[len(l)-1:]
	}
	r.mu.Unlock()
	r.began.generation, _ = r.last()
	r.began.moves = r.measured()
	for i := range r.nodes {
		r.nodes[i].stop()
		if !r.static {
			r.await("the others work what it had", func() bool { return r.working(i) == rollingQueues })
		}
		r.start(i, 1)
		r.balanced()
	}
}

// publish sends messages to all queues in turn, until it is told to stop.
func (r *rolling) publish() (stop func()) {
	r.t.Helper()
	conn, err := amqp.Dial(r.amqp)
	if err != nil {
		r.t.Fatal(err)
	}
	ch, err := conn.Channel()
	if err == nil {
		err = ch.Confirm(false)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(r.t.Context())
	var sending sync.WaitGroup
	sending.Go(func() {
		pace := time.NewTicker(5 * time.Millisecond)
		defer pace.Stop()
		for n := 0; ; n++ {
			select {
			case <-pace.C:
			case <-ctx.Done():
				return
			}
			c, err := ch.PublishWithDeferredConfirm("", r.queues[n%len(r.queues)], true, false, amqp.Publishing{MessageId: fmt.Sprint(n), Body: []byte("order")})
			if err != nil || !c.Wait() {
				r.t.Errorf("message %d: %v", n, err)
				return
			}
			r.mu.Lock()
			r.published++
			r.mu.Unlock()
		}
	})
	return func() {
		cancel()
		sending.Wait()
		_ = conn.Close()
	}
}

// counts are of messages.
func (r *rolling) counts() (handled, published int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.handled), r.published
}

// once: when all nodes have ended, no message was handled twice.
func (r *rolling) once() {
	r.t.Helper()
	for _, n := range r.nodes {
		n.stop()
	}
	for id, n := range r.handled {
		if n > 1 {
			r.t.Errorf("message %s was handled %d times", id, n)
		}
	}
}

// moves compares how often queues changed their node with what is promised, with the history, and with the metrics.
func (r *rolling) moves() {
	r.t.Helper()
	r.mu.Lock()
	moved := 0
	for q, l := range r.owners {
		moved += len(l) - 1
		if n := len(l) - 1; n > 2 || r.static && n > 0 {
			r.t.Errorf("%s moved %d times: %v", q, n, l)
		}
	}
	published := r.published
	r.mu.Unlock()
	told := 0
	for _, rec := range r.history() {
		if rec.Generation > r.began.generation && rec.From != "" && rec.To != "" {
			told++
		}
	}
	measured := r.measured() - r.began.moves
	r.t.Logf("%d messages; queues moved %d times; the history tells of %d moves, the metrics of %d", published, moved, told, measured)
	if measured != told || moved > told { // a plan that the next one overtook before its hand-over is told of too
		r.t.Error("they do not agree")
	}
}

func (r *rolling) history() []admin.Record {
	r.t.Helper()
	records, err := admin.History(r.t.Context(), r.store, "orders")
	if err != nil {
		r.t.Fatal(err)
	}
	return records
}

// last is the last generation of which there is a record, and how many resources that moved.
func (r *rolling) last() (generation int64, moves int) {
	r.t.Helper()
	for _, rec := range r.history() {
		if rec.Generation > generation {
			generation, moves = rec.Generation, 0
		}
		if rec.Generation == generation && rec.Resource != "" {
			moves++
		}
	}
	return generation, moves
}

// measured is how many moves the metrics tell of.
func (r *rolling) measured() (moves int) {
	r.t.Helper()
	var all metricdata.ResourceMetrics
	if err := r.reader.Collect(r.t.Context(), &all); err != nil {
		r.t.Fatal(err)
	}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			if sum, ok := m.Data.(metricdata.Sum[int64]); ok && m.Name == "rebalancer.rebalance.moves" {
				for _, p := range sum.DataPoints {
					moves += int(p.Value)
				}
			}
		}
	}
	return moves
}

// onThePage looks at the status page: all is held, by the nodes that are there now, and its last rebalance is that of the history.
func (r *rolling) onThePage() {
	r.t.Helper()
	ctx := browser(r.t)
	do(ctx, r.t, as(1280, 900, "light"), chromedp.Navigate(serve(r.t, statuspage.Config{Store: r.store})))
	until(ctx, r.t, fmt.Sprintf(`document.getElementById('sentence').textContent === 'All %d resources are held by %d nodes'`, rollingQueues, rollingNodes))
	var want []string
	for i := range r.nodes {
		name := fmt.Sprintf("n%d", i)
		if !r.static {
			name += "-1"
		}
		want = append(want, name)
	}
	until(ctx, r.t, fmt.Sprintf(`document.querySelectorAll('#nodes .name').length === %d`, rollingNodes))
	shown := value[[]string](ctx, r.t, `[...document.querySelectorAll('#nodes .name')].map((e) => e.textContent.trim())`)
	if slices.Sort(shown); !slices.Equal(shown, want) {
		r.t.Errorf("the page shows the nodes %q", shown)
	}
	last, count := r.last()
	// A line of it is "a, b and 3 more from x to y".
	until(ctx, r.t, fmt.Sprintf(`document.querySelector('#history li .quiet')?.textContent.includes('generation %d ')`, last))
	got := value[int](ctx, r.t, `[...document.querySelectorAll('#history li:first-child p')].map((p) => p.textContent.match(/^(.+?)(?: and (\d+) more)? from .+ to .+$/))
		.filter((m) => m).reduce((n, m) => n + m[1].split(', ').length + Number(m[2] || 0), 0)`)
	if got != count {
		r.t.Errorf("the page shows %d moves of generation %d, the history has %d", got, last, count)
	}
	picture(ctx, r.t, "rolling-"+fmt.Sprint(r.static))
}

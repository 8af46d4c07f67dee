// Command metrics shows the metrics of a group: three nodes in one process share eight queues, one of the nodes leaves and comes back every half minute, and
// Prometheus can read at :9464/metrics what happens. The probes of Kubernetes are answered at /livez and /readyz.
//
//	go -C examples/metrics run .
//	curl -s localhost:9464/metrics | grep rebalancer
//
// dashboard.json is a dashboard for Grafana: import it, and choose the Prometheus that scrapes this process. It is a module of its own, so that nobody
// else pays for the exporter.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/rebalancer-go/rebalancer"
	stores "github.com/rebalancer-go/rebalancer/backends/memory"
	"github.com/rebalancer-go/rebalancer/group"
	"github.com/rebalancer-go/rebalancer/health"
	"github.com/rebalancer-go/rebalancer/sources/memory"
	"github.com/rebalancer-go/rebalancer/telemetry"
)

func main() {
	addr := flag.String("addr", ":9464", "where to serve the metrics")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *addr); err != nil {
		log.Fatal(err)
	}
}

// meters makes a provider of meters whose metrics Prometheus reads from registry.
func meters(registry *prometheus.Registry) (*metric.MeterProvider, error) {
	e, err := exporter.New(exporter.WithRegisterer(registry), exporter.WithoutScopeInfo(), exporter.WithoutTargetInfo())
	if err != nil {
		return nil, err
	}
	return metric.NewMeterProvider(metric.WithReader(e)), nil
}

func run(ctx context.Context, addr string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	registry := prometheus.NewRegistry()
	provider, err := meters(registry)
	if err != nil {
		return err
	}
	defer func() { _ = provider.Shutdown(context.Background()) }()
	w := &world{store: stores.New(), source: memory.New(), telemetry: telemetry.Config{Meters: provider, System: "memory", Resources: 20}}
	var nodes []health.Node
	var wg sync.WaitGroup
	for i, name := range []string{"a", "b", "c"} {
		g, err := group.New(w.config(name))
		if err != nil {
			return err
		}
		nodes = append(nodes, g)
		wg.Go(func() { w.live(ctx, g, i == 2) })
	}
	wg.Go(func() { w.send(ctx) })
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.Handle("/", health.Handler(nodes...))
	server := &http.Server{Addr: addr, Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	fmt.Printf("metrics at %s/metrics, health at %s/livez and %s/readyz\n", addr, addr, addr)
	err = server.ListenAndServe()
	cancel()
	wg.Wait()
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// world is what the nodes share.
type world struct {
	store     *stores.Store
	source    *memory.Source
	telemetry telemetry.Config
}

var queues = [...]string{"orders.at", "orders.ch", "orders.de", "orders.es", "orders.fr", "orders.it", "orders.nl", "orders.pl"}

func (w *world) config(node string) group.Config {
	return telemetry.Instrument(group.Config{
		Name: "orders", Node: node, Store: w.store, Source: w.source, Resources: group.Static(queues[:]...),
		Retry: group.Retry{Attempts: 3}, Logger: slog.Default().With("node", node),
	}, w.telemetry)
}

// live keeps a node in the group; one that is restless leaves every now and then.
func (w *world) live(ctx context.Context, g *group.Group, restless bool) {
	for ctx.Err() == nil {
		life, cancel := ctx, context.CancelFunc(func() {})
		if restless {
			life, cancel = context.WithTimeout(ctx, 30*time.Second)
		}
		if err := g.Consume(life, handle); err != nil {
			log.Print(err)
		}
		cancel()
	}
}

// handle takes some milliseconds, and fails now and then.
func handle(ctx context.Context, _ *rebalancer.Message) error {
	select {
	case <-time.After(rand.N(20 * time.Millisecond)):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if rand.N(50) == 0 {
		return errors.New("out of luck")
	}
	return nil
}

// send fills the queues.
func (w *world) send(ctx context.Context) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		m := rebalancer.Message{Body: fmt.Append(nil, n), Published: time.Now()}
		if err := w.source.SendMessages(queues[n%len(queues)], m); err != nil {
			log.Print(err)
			return
		}
	}
}

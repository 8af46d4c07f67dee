// Command orders is a service as it runs in production: it works orders from RabbitMQ queues into a PostgreSQL database, which coordinates the service's processes
// as well. Start as many as you like: each queue is worked by one of them at a time, in order, and when one stops or dies the others take over.
//
//	AMQP_URL=amqp://user:password@host/vhost POSTGRES_URL=postgres://user@host/db go run ./examples/orders
//
// It needs queues orders.0 to orders.3, and makes its tables and those of the group. LISTEN (default :8080) answers the probes /livez and /readyz. A signal lets it
// finish what it has begun, give its queues back and end. What becomes of an order is in ledger.go.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/rebalancer-go/rebalancer/backends/postgres"
	"github.com/rebalancer-go/rebalancer/group"
	"github.com/rebalancer-go/rebalancer/health"
	"github.com/rebalancer-go/rebalancer/sources/rabbitmq"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	listen := os.Getenv("LISTEN")
	if listen == "" {
		listen = ":8080"
	}
	if err := run(ctx, os.Getenv("AMQP_URL"), os.Getenv("POSTGRES_URL"), listen); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, amqpURL, postgresURL, listen string) error {
	db, err := pgxpool.New(ctx, postgresURL)
	if err != nil {
		return errors.New("POSTGRES_URL is no URL of a PostgreSQL database: postgres://user@host/db") // the parser's error may show the password
	}
	defer db.Close()
	if _, err := db.Exec(ctx, tables); err != nil {
		return fmt.Errorf("create the tables: %w", err)
	}
	store, err := postgres.New(db, postgres.CreateSchema()) // over the service's own pool
	if err != nil {
		return err
	}
	defer store.Close()
	source, err := rabbitmq.New(rabbitmq.Config{URLs: []string{amqpURL}, DeadLetter: rabbitmq.Queue("orders.dead"), Logger: slog.Default()})
	if err != nil {
		return err
	}
	ledger := &Ledger{db}
	g, err := group.New(group.Config{
		Name:      "orders",
		Store:     store,
		Source:    source,
		Resources: group.Static("orders.0", "orders.1", "orders.2", "orders.3"),
		Drain:     10 * time.Second,                     // what a handler may still take when its queue moves, or the process stops
		Retry:     group.Retry{Attempts: 5},             // then the order goes to orders.dead
		OnEvent:   func(e group.Event) { log.Print(e) }, // elections, claims, troubles
	})
	if err != nil {
		return err
	}
	probes, err := serve(ctx, listen, health.Handler(g))
	if err != nil {
		return err
	}
	defer probes.Close()
	return g.Consume(ctx, ledger.Handle)
}

// serve answers the probes until the server is closed.
func serve(ctx context.Context, listen string, h http.Handler) (*http.Server, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", listen)
	if err != nil {
		return nil, fmt.Errorf("LISTEN: %w", err)
	}
	s := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = s.Serve(l) }() // ends with Close
	log.Printf("probes at http://%s/livez and /readyz", l.Addr())
	return s, nil
}

//go:build linux

package main

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/admin"
	"github.com/rebalancer-go/rebalancer/backends/postgres"
	"github.com/rebalancer-go/rebalancer/group"
	"github.com/rebalancer-go/rebalancer/internal/programtest"
	"github.com/rebalancer-go/rebalancer/internal/testserver"
	"github.com/rebalancer-go/rebalancer/internal/waittest"
)

const asProgram = "ORDERS_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// service is one process.
type service struct {
	*exec.Cmd
	said  *programtest.Buffer
	probe string
}

func start(t *testing.T, amqpURL, postgresURL string) *service {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	addr := fmt.Sprintf("127.0.0.1:%d", testserver.Port(t))
	s := &service{exec.Command(self), &programtest.Buffer{}, "http://" + addr + "/readyz"}
	s.Env = append(os.Environ(), asProgram+"=1", "AMQP_URL="+amqpURL, "POSTGRES_URL="+postgresURL, "LISTEN="+addr)
	s.Stdout, s.Stderr = s.said, s.said
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = s.Process.Kill() // if it still runs
		if t.Failed() {
			t.Log(s.said.String())
		}
	})
	return s
}

func (s *service) ready() bool {
	r, err := http.Get(s.probe)
	if err != nil {
		return false
	}
	_ = r.Body.Close()
	return r.StatusCode == http.StatusOK
}

// Two processes share the queues; one is stopped in the middle, and the other goes on. Each order is booked once, those of a queue in order, one that is none goes to
// the dead ones, and an owner that was replaced books nothing.
func TestRuns(t *testing.T) {
	t.Parallel()
	broker, server := testserver.StartRabbitMQ(t, 4), testserver.StartPostgres(t, 17, "-c", "fsync=off")
	vhost, url := broker.VHost(t), server.URL("postgres", "")
	db, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	store, err := postgres.New(db, postgres.CreateSchema())
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if _, err := admin.Create(t.Context(), store, "orders", admin.Settings{TTL: group.DefaultTTL}); err != nil { // or the first start waits for a ttl
		t.Fatal(err)
	}
	for _, q := range []string{"0", "1", "2", "3", "dead"} {
		broker.Must(http.MethodPut, "/api/queues/"+vhost+"/orders."+q, map[string]any{"durable": true, "arguments": map[string]any{"x-queue-type": "quorum"}}, nil)
	}
	services := []*service{start(t, broker.URL(vhost), url), start(t, broker.URL(vhost), url)}
	waittest.Until(t, "both are ready and work two queues each", func() bool {
		d, err := admin.Describe(t.Context(), store, "orders")
		held := map[string]int{}
		for _, r := range d.Resources {
			held[r.Owner]++
		}
		return err == nil && len(d.Nodes) == 2 && held[d.Nodes[0].Name] == 2 && held[d.Nodes[1].Name] == 2 && services[0].ready() && services[1].ready()
	})
	const orders = 40
	for i := range orders {
		if i == orders/2 {
			if err := services[0].Process.Signal(syscall.SIGTERM); err != nil {
				t.Error(err)
			}
		}
		publish(broker, vhost, i%4, fmt.Sprintf("order-%03d", i), fmt.Sprintf("customer-%d %d", i%4, i))
	}
	publish(broker, vhost, 0, "nonsense", "nonsense")
	publish(broker, vhost, 1, "", "customer-1 1")           // has no id
	publish(broker, vhost, 2, "order-001", "other-queue 1") // an id that another queue has, too
	if err := services[0].Wait(); err != nil {
		t.Errorf("the one that was stopped ended with %v", err)
	}
	waittest.Until(t, "all is booked", func() bool { return len(booked(t, db, "%")) == orders+1 })
	for i := range 4 {
		if all := booked(t, db, fmt.Sprintf("customer-%d", i)); !slices.IsSorted(all) || len(all) != orders/4 {
			t.Errorf("customer %d: %q", i, all)
		}
	}
	waittest.Until(t, "what is no order, and one without an id, are among the dead", func() bool {
		var q struct{ Messages int }
		broker.Must(http.MethodGet, "/api/queues/"+vhost+"/orders.dead", nil, &q)
		return q.Messages == 2
	})
	late := &rebalancer.Message{Resource: "orders.1", ID: "late", Body: []byte("customer-1 7"), Fence: 1}
	if err := (&Ledger{db}).Handle(t.Context(), late); !errors.Is(err, rebalancer.ErrLost) {
		t.Errorf("an owner that was replaced: %v", err)
	}
	if all := booked(t, db, "%"); len(all) != orders+1 {
		t.Errorf("%q", all)
	}
	if err := services[1].Process.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	if err := services[1].Wait(); err != nil {
		t.Errorf("the other ended with %v", err)
	}
}

func publish(broker *testserver.RabbitMQ, vhost string, queue int, id, body string) {
	broker.Must(http.MethodPost, "/api/exchanges/"+vhost+"/amq.default/publish", map[string]any{
		"properties": map[string]any{"message_id": id}, "routing_key": fmt.Sprintf("orders.%d", queue), "payload": body, "payload_encoding": "string",
	}, nil)
}

// booked are the orders of customers, as they were booked.
func booked(t *testing.T, db *pgxpool.Pool, customers string) []string {
	t.Helper()
	rows, err := db.Query(t.Context(), `SELECT id FROM orders WHERE customer LIKE $1 ORDER BY place`, customers)
	if err != nil {
		if strings.Contains(err.Error(), "42P01") { // nobody has made the tables yet
			return nil
		}
		t.Fatal(err)
	}
	defer rows.Close()
	var all []string
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			t.Fatal(err)
		}
		all = append(all, id)
	}
	return all
}

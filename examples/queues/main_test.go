//go:build linux

package main

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/rebalancer-go/rebalancer/admin"
	"github.com/rebalancer-go/rebalancer/backends/redis"
	"github.com/rebalancer-go/rebalancer/group"
	"github.com/rebalancer-go/rebalancer/internal/programtest"
	"github.com/rebalancer-go/rebalancer/internal/testserver"
	"github.com/rebalancer-go/rebalancer/internal/waittest"
)

// The README shows this program, as it is.
func TestReadme(t *testing.T) {
	t.Parallel()
	programtest.Shown(t, "../../README.md", "main.go")
}

const asProgram = "QUEUES_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// It does what it says: two of them share the queues, and a signal ends them well.
func TestRuns(t *testing.T) {
	t.Parallel()
	broker, keys := testserver.StartRabbitMQ(t, 4), testserver.StartRedis(t, testserver.Redis)
	vhost := broker.VHost(t)
	redisURL := "redis://" + keys.Addr() + "/0"
	store, err := redis.Open(redisURL)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if _, err := admin.Create(t.Context(), store, "orders", admin.Settings{TTL: group.DefaultTTL}); err != nil { // or the first start waits for a ttl
		t.Fatal(err)
	}
	for i := range 4 {
		broker.Must(http.MethodPut, fmt.Sprintf("/api/queues/%s/orders.%d", vhost, i), map[string]any{"durable": true, "arguments": map[string]any{"x-queue-type": "quorum"}}, nil)
	}
	var programs [2]*exec.Cmd
	var said [2]programtest.Buffer
	for i := range programs {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		programs[i] = exec.Command(self)
		programs[i].Env = append(os.Environ(), asProgram+"=1", "REDIS_URL="+redisURL, "AMQP_URL="+broker.URL(vhost))
		programs[i].Stdout, programs[i].Stderr = &said[i], &said[i]
		if err := programs[i].Start(); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = programs[i].Process.Kill() }()
	}
	waittest.Until(t, "both work two queues", func() bool {
		d, err := admin.Describe(t.Context(), store, "orders")
		if err != nil {
			t.Fatal(err)
		}
		held := map[string]int{}
		for _, r := range d.Resources {
			held[r.Owner]++
		}
		return len(d.Nodes) == 2 && len(held) == 2 && held[d.Nodes[0].Name] == 2
	})
	for i := range 4 {
		broker.Must(http.MethodPost, "/api/exchanges/"+vhost+"/amq.default/publish",
			map[string]any{"properties": map[string]any{}, "routing_key": fmt.Sprintf("orders.%d", i), "payload": "hello", "payload_encoding": "string"}, nil)
	}
	waittest.Until(t, "both have worked two messages", func() bool { return handled(&said[0]) == 2 && handled(&said[1]) == 2 })
	for i, p := range programs {
		if err := p.Process.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		if err := p.Wait(); err != nil {
			t.Errorf("program %d ended with %v", i, err)
		}
	}
	if t.Failed() {
		t.Log(said[0].String(), said[1].String())
	}
}

func handled(said *programtest.Buffer) int { return strings.Count(said.String(), ": hello, fence ") }

//go:build linux

package testserver

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestRabbitMQ(t *testing.T) {
	t.Parallel()
	for _, version := range []int{3, 4} {
		t.Run(fmt.Sprint(version), func(t *testing.T) {
			t.Parallel()
			r := StartRabbitMQ(t, version)
			var overview struct {
				Version string `json:"rabbitmq_version"`
			}
			r.Must(http.MethodGet, "/api/overview", nil, &overview)
			if !strings.HasPrefix(overview.Version, fmt.Sprint(version)+".") {
				t.Fatalf("version %s, want %d", overview.Version, version)
			}
			v := r.VHost(t)
			r.Must(http.MethodPut, "/api/queues/"+v+"/q", map[string]any{"durable": true}, nil)
			r.Must(http.MethodPut, "/api/exchanges/"+v+"/x", map[string]any{"type": "x-consistent-hash", "durable": true}, nil)
			r.Must(http.MethodPut, "/api/queues/"+v+"/s", map[string]any{"durable": true, "arguments": map[string]any{"x-queue-type": "stream"}}, nil)
			c, err := tls.Dial("tcp", r.TLSAddr(), r.CA.Client(t, "someone"))
			if err != nil {
				t.Fatal(err)
			}
			_ = c.Close()
			r.MemoryAlarm(true)
			if err := r.Call(t.Context(), http.MethodGet, "/api/health/checks/local-alarms", nil, nil); err == nil {
				t.Fatal("no alarm")
			}
			r.MemoryAlarm(false)

			r.Freeze()
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			if err := r.Call(ctx, http.MethodGet, "/api/overview", nil, nil); err == nil {
				t.Fatal("it answers while frozen")
			}
			r.Thaw()
			r.Must(http.MethodGet, "/api/overview", nil, nil)

			if version > 3 { // a start takes long: for one of the two
				r.Kill()
				if dials(t.Context(), r.port) == nil {
					t.Fatal("it serves after Kill")
				}
				r.Restart()
				r.Must(http.MethodGet, "/api/queues/"+v+"/q", nil, nil)
			}
			r.Stop()
		})
	}
}

package main

import (
	"context"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/internal/waittest"
)

// TestHealth: a node answers probes while it works, and no longer; an address that is taken is an error at once.
func TestHealth(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	w.want(codeFailed, "", "--health: ", w.consume("--health", address, "--", "true")...)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan int, 1)
	go func() { ended <- w.run(ctx, w.consume("--health", address, "--", "true")...).code }()
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	answers := func(path string, code int) func() bool {
		return func() bool {
			r, err := client.Get("http://" + address + path)
			if err != nil {
				return false
			}
			return r.Body.Close() == nil && r.StatusCode == code
		}
	}
	waittest.Until(t, "it is ready", answers("/readyz", http.StatusOK))
	if !answers("/livez", http.StatusOK)() || !answers("/", http.StatusNotFound)() {
		t.Error("it is not live, or answers everywhere")
	}
	cancel()
	if code := <-ended; code != codeDone {
		t.Errorf("code %d", code)
	}
	if _, err := client.Get("http://" + address + "/livez"); err == nil {
		t.Error("it still answers")
	}
}

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/rebalancer-go/rebalancer/health"
)

// serveHealth answers probes at an address, "" for none, until it is told to stop.
func serveHealth(ctx context.Context, address string, node health.Node) (stop func(), err error) {
	if address == "" {
		return func() {}, nil
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("--health: %w", err)
	}
	server := &http.Server{Handler: health.Handler(node), ReadHeaderTimeout: 5 * time.Second, WriteTimeout: 5 * time.Second, IdleTimeout: time.Minute}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			_ = server.Close()
		}
	}()
	return func() {
		_ = server.Close()
		<-ended
	}, nil
}

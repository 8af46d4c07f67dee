//go:build linux

package testserver

import (
	"context"
	"errors"
	"fmt"
	"net"
)

// dials tells whether something listens.
func dials(ctx context.Context, port int) error {
	c, err := dial(ctx, port)
	if err == nil {
		err = c.Close()
	}
	return err
}

// greets tells whether something serves whose protocol begins with a word of the server: one that listens may not accept yet, or end before it does.
func greets(ctx context.Context, port int) error {
	c, err := dial(ctx, port)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { c.Close() })
	defer stop()
	_, err = c.Read(make([]byte, 64))
	return errors.Join(err, c.Close())
}

func dial(ctx context.Context, port int) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port))
}

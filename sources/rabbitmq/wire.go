package rabbitmq

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// wire is the network connection below AMQP. A write to a broker that takes nothing fails after a while, where the client
// library would hold its locks and wait.
type wire struct {
	net.Conn
	timeout time.Duration
	timely  atomic.Bool // false: a read ran into its deadline
}

func (w *wire) Write(b []byte) (int, error) {
	if err := w.SetWriteDeadline(time.Now().Add(w.timeout)); err != nil {
		return 0, err
	}
	return w.Conn.Write(b)
}

func (w *wire) Read(b []byte) (int, error) {
	n, err := w.Conn.Read(b)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		w.timely.Store(false)
	}
	return n, err
}

// connect makes a connection to one host, within DialTimeout.
func (s *settings) connect(ctx context.Context, h host, name string) (*conn, error) {
	ctx, cancel := context.WithTimeout(ctx, s.DialTimeout)
	defer cancel()
	tcp, err := new(net.Dialer).DialContext(ctx, "tcp", h.addr)
	if err != nil {
		return nil, err
	}
	w := &wire{Conn: tcp, timeout: callTimeout}
	w.timely.Store(true)
	stop := context.AfterFunc(ctx, func() { _ = tcp.Close() }) // ends what does not look at ctx
	c, err := s.handshake(ctx, h, w, name)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		_ = tcp.Close()
		if ctx.Err() != nil { // what the client library makes of a connection that we closed, such as a refusal, tells nothing
			return nil, fmt.Errorf("no answer within %v: %w", s.DialTimeout, ctx.Err())
		}
		return nil, err
	}
	return c, nil
}

func (s *settings) handshake(ctx context.Context, h host, w *wire, name string) (*conn, error) {
	if h.tls {
		config := &tls.Config{}
		if s.TLS != nil {
			config = s.TLS.Clone()
		}
		if config.ServerName == "" {
			config.ServerName = h.name
		}
		secure := tls.Client(w.Conn, config)
		if err := secure.HandshakeContext(ctx); err != nil {
			return nil, fmt.Errorf("TLS: %w", err)
		}
		w.Conn = secure
	}
	deadline, _ := ctx.Deadline()
	if err := w.SetReadDeadline(deadline); err != nil {
		return nil, err
	}
	ac, err := amqp.Open(w, amqp.Config{
		SASL: h.logins(), Vhost: h.vhost, Heartbeat: s.Heartbeat, Locale: "en_US",
		Properties: amqp.Table{"product": "rebalancer", "platform": "golang", "connection_name": name},
	})
	if err != nil {
		return nil, w.explain(h, err)
	}
	return &conn{
		Connection: ac, wire: w, since: time.Now(), addr: h.addr,
		lost: ac.NotifyClose(make(chan *amqp.Error, 1)), blocked: ac.NotifyBlocked(make(chan amqp.Blocking, 64)),
	}, nil
}

// explain says what a failed handshake means: the client library takes any end of the connection for a refusal.
func (w *wire) explain(h host, err error) error {
	switch {
	case !w.timely.Load():
		return fmt.Errorf("the broker did not answer: %w", os.ErrDeadlineExceeded)
	case errors.Is(err, amqp.ErrCredentials):
		return fmt.Errorf("login refused: check user and password, or the client certificate, and whether the user may connect from here: %w", err)
	case errors.Is(err, amqp.ErrVhost):
		return fmt.Errorf("no access to virtual host %q: check that it exists and that the user has permissions in it: %w", h.vhost, err)
	case errors.Is(err, amqp.ErrSASL):
		return fmt.Errorf("the broker offers none of the ways to log in that are wanted (see auth_mechanism): %w", err)
	}
	return err
}

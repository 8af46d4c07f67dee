package rabbitmq

import (
	"context"
	"errors"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rebalancer-go/rebalancer"
)

// TestWriteToABrokerThatTakesNothing: the client library would wait, with its locks held.
func TestWriteToABrokerThatTakesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		defer far.Close()
		w := &wire{Conn: near, timeout: time.Minute}
		defer w.Close()
		start := time.Now()
		if _, err := w.Write([]byte("x")); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(start) != time.Minute {
			t.Errorf("Write: %v after %v", err, time.Since(start))
		}
	})
}

// TestCallsThatAreNeverAnswered: each has its deadline, and a connection with many of them is given up.
func TestCallsThatAreNeverAnswered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		defer far.Close()
		c := &conn{wire: &wire{Conn: near}}
		for n := range maxHung {
			start := time.Now()
			err := c.call(t.Context(), func() error {
				_, err := near.Read(make([]byte, 1)) // until the connection ends
				return err
			})
			if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != callTimeout {
				t.Fatalf("call %d: %v after %v", n, err, time.Since(start))
			}
		}
		synctest.Wait()
		if _, err := far.Write([]byte("x")); err == nil {
			t.Error("the connection goes on")
		}
	})
}

// TestLetter: what would make the broker do something with a dead letter is left out.
func TestLetter(t *testing.T) {
	t.Parallel()
	d := &deadLetters{s: &settings{}}
	m := &amqp.Delivery{Headers: amqp.Table{"CC": "a", "BCC": "b", headerCount: int64(3), "kept": "c"}, UserId: "u", Expiration: "1", RoutingKey: "k"}
	p := d.letter(&rebalancer.Claim{Resource: "q"}, m, 1, nil)
	for _, name := range []string{"CC", "BCC", headerCount} {
		if p.Headers[name] != nil {
			t.Errorf("header %s is kept", name)
		}
	}
	if p.Headers["kept"] != "c" || p.UserId != "" || p.Expiration != "" || p.Headers[HeaderError] != "none given" || m.Headers["CC"] != "a" {
		t.Errorf("%+v of %+v", p, m)
	}
	if err := p.Headers.Validate(); err != nil {
		t.Error(err)
	}
}

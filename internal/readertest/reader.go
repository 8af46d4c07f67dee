// Package readertest has the steps of tests of sources.Readers.
package readertest

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/sources"
)

// patience is how long a step may take on a busy machine.
const patience = time.Minute

// Fetch collects n messages.
func Fetch(tb testing.TB, r sources.Reader, n int) []*rebalancer.Message {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var ms []*rebalancer.Message
	for len(ms) < n {
		got, err := r.Fetch(ctx, n-len(ms))
		if err != nil {
			tb.Fatalf("Fetch after %d of %d: %v", len(ms), n, err)
		}
		ms = append(ms, got...)
	}
	return ms
}

// Nothing checks that there is nothing to fetch for a moment.
func Nothing(tb testing.TB, r sources.Reader) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	if ms, err := r.Fetch(ctx, 10); !errors.Is(err, context.DeadlineExceeded) {
		tb.Fatalf("%d messages delivered, error %v; want none", len(ms), err)
	}
}

// TrySettle settles messages with one outcome, and a reason.
func TrySettle(r sources.Reader, o sources.Outcome, ms ...*rebalancer.Message) error {
	var ss []sources.Settlement
	for _, m := range ms {
		ss = append(ss, sources.Settlement{Message: m, Outcome: o, Err: errors.New("no good")})
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return r.Settle(ctx, ss)
}

// Settle is TrySettle that must succeed.
func Settle(tb testing.TB, r sources.Reader, o sources.Outcome, ms ...*rebalancer.Message) {
	tb.Helper()
	if err := TrySettle(r, o, ms...); err != nil {
		tb.Fatal(err)
	}
}

// Read reads the body of a message.
func Read(ctx context.Context, m *rebalancer.Message) (string, error) {
	rc, err := m.Open(ctx)
	if err != nil {
		return "", err
	}
	defer rc.Close()
	b, err := io.ReadAll(rc)
	return string(b), err
}

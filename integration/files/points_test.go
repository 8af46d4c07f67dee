//go:build linux

package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/sources"
)

// crashAt is a variable of the environment: a point and how often it is passed before the process dies there ("half:3").
const crashAt = "REBALANCER_TEST_CRASH_AT"

// points are the steps between the listing of a file and its settlement at which a process can die.
func points() []string {
	return []string{"opening", "listing", "listed", "body", "half", "read", "handled", "settling", "settled"}
}

// crash is the death of a process, as by kill -9.
type crash struct {
	point string
	left  atomic.Int64
}

func newCrash() (*crash, error) {
	c := &crash{}
	v := os.Getenv(crashAt)
	if v == "" {
		return c, nil
	}
	var n int64
	point, times, _ := strings.Cut(v, ":")
	if _, err := fmt.Sscan(times, &n); err != nil {
		return nil, fmt.Errorf("%s is %q: %w", crashAt, v, err)
	}
	c.point = point
	c.left.Store(n)
	return c, nil
}

// at dies if it is time to.
func (c *crash) at(point string) {
	if point == c.point && c.left.Add(-1) == 0 {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
}

// watched is a source that passes the points, and writes down what is settled.
type watched struct {
	sources.Source
	n *nodeState
}

// Open passes "opening".
func (w watched) Open(ctx context.Context, c *rebalancer.Claim) (sources.Reader, error) {
	w.n.crash.at("opening")
	r, err := w.Source.Open(ctx, c)
	if err != nil {
		return nil, err
	}
	return &watchedReader{r, w.n}, nil
}

type watchedReader struct {
	sources.Reader
	n *nodeState
}

// Fetch passes "listing" and "listed".
func (r *watchedReader) Fetch(ctx context.Context, max int) ([]*rebalancer.Message, error) {
	r.n.crash.at("listing")
	ms, err := r.Reader.Fetch(ctx, max)
	if len(ms) > 0 {
		r.n.crash.at("listed")
	}
	for _, m := range ms {
		open := m.Stream
		m.Stream = func(ctx context.Context) (io.ReadCloser, error) {
			r.n.crash.at("body")
			rc, err := open(ctx)
			if err != nil {
				return nil, err
			}
			return &watchedBody{ReadCloser: rc, n: r.n, half: m.Size / 2}, nil
		}
	}
	return ms, err
}

// Settle passes "settling" and "settled".
func (r *watchedReader) Settle(ctx context.Context, s []sources.Settlement) error {
	r.n.crash.at("settling")
	err := r.Reader.Settle(ctx, s)
	var some *sources.SettleError
	if err != nil && !errors.As(err, &some) {
		return err
	}
	for i := range s {
		if s[i].Outcome == sources.Done && (some == nil || some.Failed[i] == nil) {
			r.n.settled(s[i].Message)
		}
	}
	r.n.crash.at("settled")
	return err
}

// watchedBody passes "half" and "read".
type watchedBody struct {
	io.ReadCloser
	n    *nodeState
	read int64
	half int64
}

// Read reads on.
func (b *watchedBody) Read(p []byte) (int, error) {
	if b.read < b.half && int64(len(p)) > b.half-b.read {
		p = p[:b.half-b.read]
	}
	n, err := b.ReadCloser.Read(p)
	if b.read += int64(n); b.read == b.half {
		b.n.crash.at("half")
	}
	if err == io.EOF {
		b.n.crash.at("read")
	}
	return n, err
}

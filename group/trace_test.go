package group

import (
	"bytes"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rebalancer-go/rebalancer/coord/trace"
)

// failing takes so many writes, all if left is negative, and refuses the others.
type failing struct {
	mu sync.Mutex
	bytes.Buffer
	left, calls int
}

func (f *failing) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.calls++; f.left == 0 {
		return 0, errors.New("full")
	}
	f.left--
	return f.Buffer.Write(p)
}

// TestTrace: two nodes write one trace, and what they do is what the protocol allows; work begins and ends in it.
func TestTrace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		out := &failing{left: -1}
		a, b := w.config("a", "x", "y"), w.config("b", "x", "y")
		a.Trace, b.Trace = out, out
		first := w.start(a, nil)
		first.holds("x", "y")
		second := w.start(b, nil)
		second.holdsCount(1)
		if err := errors.Join(first.end(), second.end()); err != nil {
			t.Fatal(err)
		}
		lines, err := trace.Decode(&out.Buffer)
		if err != nil {
			t.Fatal(err)
		}
		h, err := trace.Explain(lines)
		if err == nil {
			err = trace.Check(h)
		}
		if err != nil {
			t.Errorf("after %d lines: %v", len(lines), err)
		}
	})
}

// TestTraceThatCannotBeWritten: the trace ends, and the node goes on.
func TestTraceThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		out := &failing{left: 3}
		cfg := w.config("a", "x")
		cfg.Trace = out
		n := w.start(cfg, nil)
		n.holds("x")
		time.Sleep(time.Minute)
		if err := n.end(); err != nil {
			t.Fatal(err)
		}
		if out.calls != 4 {
			t.Errorf("%d writes: want the three that were taken, and the one that was refused", out.calls)
		}
	})
}

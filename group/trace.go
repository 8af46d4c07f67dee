package group

import (
	"io"
	"log/slog"

	"github.com/rebalancer-go/rebalancer/coord"
	"github.com/rebalancer-go/rebalancer/coord/trace"
)

// tracer writes the steps of a node's machine to Config.Trace. It belongs to the node's loop.
type tracer struct {
	out   io.Writer
	log   *slog.Logger
	clock *clock
	steps trace.Recorder
	next  []byte // the line of the latest step, not yet written
	over  bool
}

// observe makes the line of a step; the machine's lock is held, so that nothing is written yet.
func (t *tracer) observe(s coord.Trace) {
	if t.over {
		return
	}
	at := t.clock.wallStart + int64(s.Now) - clockStart
	l, ok := t.steps.Step(at, s)
	if !ok {
		return
	}
	b, err := l.Encode()
	if err != nil {
		t.fail(err)
	}
	t.next = b
}

// write passes the line on, before anything that the step asked for is begun: what others write of its effects comes after it.
func (t *tracer) write() {
	if t == nil || t.next == nil || t.over {
		return
	}
	if _, err := t.out.Write(t.next); err != nil {
		t.fail(err)
	}
	t.next = nil
}

func (t *tracer) fail(err error) {
	t.over = true
	t.log.Error("the trace cannot be written, and ends", "err", err)
}

// traced lets the machine's steps be observed by those who want to, if there are any.
func (n *node) traced(cfg coord.Config) coord.Config {
	if n.cfg.Trace == nil {
		return cfg
	}
	n.tracer = &tracer{out: n.cfg.Trace, log: n.cfg.Logger.With("group", n.cfg.Name, "node", n.cfg.Node), clock: n.clock}
	other := cfg.Observe
	cfg.Observe = func(s coord.Trace) {
		n.tracer.observe(s)
		if other != nil {
			other(s)
		}
	}
	return cfg
}

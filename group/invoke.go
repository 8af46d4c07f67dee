package group

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"github.com/rebalancer-go/rebalancer"
)

// panicError is a panic of the user's code, as an error. Its stack is in the log only.
type panicError struct {
	value any
	stack []byte
}

// Error is the value that was passed to panic.
func (p *panicError) Error() string { return fmt.Sprintf("panic: %v", p.value) }

// Unwrap returns it when it is an error.
func (p *panicError) Unwrap() error {
	err, _ := p.value.(error)
	return err
}

// enter and leave stand around each call of the user's code.
func (w *worker) enter() {
	w.inFlight.Add(1)
	w.env.watch.changed()
}

func (w *worker) leave() {
	w.inFlight.Add(-1)
	w.env.watch.changed()
}

// guarded calls the user's code; a panic is an error.
func (w *worker) guarded(f func() error) (err error) {
	w.enter()
	defer func() {
		w.leave()
		if r := recover(); r != nil {
			err = &panicError{r, debug.Stack()}
		}
	}()
	return f()
}

// call runs the handler on one message. It makes nothing for a message with a Body and no timeout.
func (w *worker) call(m *rebalancer.Message) (err error) {
	ctx := w.ctx
	if w.env.cfg.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, w.env.cfg.Timeout)
		defer cancel()
	}
	if m.Stream != nil {
		var opened streams
		plain := m.Stream
		m.Stream = opened.wrap(plain)
		defer func() {
			m.Stream = plain
			opened.close()
		}()
	}
	w.enter()
	defer func() {
		w.leave()
		if r := recover(); r != nil {
			err = &panicError{r, debug.Stack()}
		}
	}()
	return w.env.task.handle(ctx, m)
}

// callBatch runs the handler on a batch.
func (w *worker) callBatch(ms []*rebalancer.Message) error {
	ctx := w.ctx
	if w.env.cfg.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, w.env.cfg.Timeout)
		defer cancel()
	}
	var opened streams
	plain := make([]func(context.Context) (io.ReadCloser, error), len(ms))
	for i, m := range ms {
		if plain[i] = m.Stream; plain[i] != nil {
			m.Stream = opened.wrap(plain[i])
		}
	}
	defer func() {
		for i, m := range ms {
			m.Stream = plain[i]
		}
		opened.close()
	}()
	return w.guarded(func() error { return w.env.task.batch(ctx, ms) })
}

// streams are the payloads that a handler opened: what it leaves open is closed when it returns.
type streams struct {
	mu     sync.Mutex
	open   map[*stream]struct{}
	closed bool
}

type stream struct {
	io.ReadCloser
	set  *streams
	done atomic.Bool
}

var errHandlerReturned = errors.New("message opened after its handler returned")

func (s *streams) wrap(plain func(context.Context) (io.ReadCloser, error)) func(context.Context) (io.ReadCloser, error) {
	return func(ctx context.Context) (io.ReadCloser, error) {
		r, err := plain(ctx)
		if err != nil {
			return nil, err
		}
		st := &stream{ReadCloser: r, set: s}
		s.mu.Lock()
		closed := s.closed
		if !closed {
			if s.open == nil {
				s.open = map[*stream]struct{}{}
			}
			s.open[st] = struct{}{}
		}
		s.mu.Unlock()
		if closed {
			_ = r.Close()
			return nil, errHandlerReturned
		}
		return st, nil
	}
}

// Close closes the payload once.
func (st *stream) Close() error {
	if st.done.Swap(true) {
		return nil
	}
	st.set.mu.Lock()
	delete(st.set.open, st)
	st.set.mu.Unlock()
	return st.ReadCloser.Close()
}

func (s *streams) close() {
	s.mu.Lock()
	s.closed = true
	left := make([]*stream, 0, len(s.open))
	for st := range s.open {
		left = append(left, st)
	}
	s.mu.Unlock()
	for _, st := range left {
		_ = st.Close() // what was not read to its end may have nothing good to say
	}
}

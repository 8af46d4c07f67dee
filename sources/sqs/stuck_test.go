package sqs

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/sources"
)

// stuck is payloads at a server that accepts and never answers, until it is repaired. deaf has it ignore contexts too.
type stuck struct {
	*bucket
	repaired chan struct{}
	deaf     bool
	waiting  atomic.Int64
}

func (p *stuck) Open(ctx context.Context, name, key string) (io.ReadCloser, error) {
	p.waiting.Add(1)
	defer p.waiting.Add(-1)
	done := ctx.Done()
	if p.deaf {
		done = nil
	}
	select {
	case <-p.repaired:
		return p.bucket.Open(ctx, name, key)
	case <-done:
		return nil, ctx.Err()
	}
}

// onStuck is onPayloads with payloads that never open.
func onStuck(t *testing.T, run func(t *testing.T, s *stage, p *stuck)) {
	t.Helper()
	onPayloads(t, true, nil, func(t *testing.T, s *stage, b *bucket) {
		p := &stuck{bucket: b, repaired: make(chan struct{})}
		s.source.cfg.Payloads = p
		run(t, s, p)
	})
}

// TestPayloadNeverOpens: that is reported, costs no attempt, and ends when the server is repaired.
func TestPayloadNeverOpens(t *testing.T) {
	onStuck(t, func(t *testing.T, s *stage, p *stuck) {
		r := s.open()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if ms, err := r.Fetch(ctx, 1); len(ms) > 0 || err == nil || errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("Fetch: %d messages, %v; want that a payload was not opened", len(ms), err)
		}
		close(p.repaired)
		m := s.one(r)
		time.Sleep(5 * time.Minute) // a stream that was opened has no time limit
		if got := read(t, m); got != "large" || m.Attempt != 1 {
			t.Fatalf("payload %q, attempt %d", got, m.Attempt)
		}
		s.settle(r, sources.Done, m)
		s.close(r)
	})
}

// TestPayloadNeverOpensUntilClose: Close ends the opening and waits for it; for one that ignores its context no longer than its own allows.
func TestPayloadNeverOpensUntilClose(t *testing.T) {
	for what, deaf := range map[string]bool{"hears": false, "deaf": true} {
		t.Run(what, func(t *testing.T) {
			onStuck(t, func(t *testing.T, s *stage, p *stuck) {
				p.deaf = deaf
				r := s.open()
				s.none(r, 5*time.Second)
				start := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				defer cancel()
				err := r.Close(ctx)
				switch d := time.Since(start); {
				case deaf && (err == nil || d != 5*time.Second):
					t.Errorf("Close: %v after %v, want that a payload is still being opened", err, d)
				case !deaf && (err != nil || d > 0 || p.waiting.Load() > 0):
					t.Errorf("Close: %v after %v, %d are being opened", err, d, p.waiting.Load())
				}
				if _, inFlight := s.Counts(s.queue); inFlight > 0 {
					t.Error("the message was not given back")
				}
				close(p.repaired)
				time.Sleep(time.Second)
			})
		})
	}
}

// silentStream is a stream whose reads wait until it is closed.
type silentStream struct {
	io.ReadCloser
	closed chan struct{}
}

func (s *silentStream) Read([]byte) (int, error) {
	<-s.closed
	return 0, errors.New("read from a closed stream")
}

func (s *silentStream) Close() error {
	close(s.closed)
	return s.ReadCloser.Close()
}

// quiet is payloads whose streams are silent; the contexts of their opening are not looked at.
type quiet struct{ *bucket }

func (p *quiet) Open(ctx context.Context, name, key string) (io.ReadCloser, error) {
	rc, err := p.bucket.Open(ctx, name, key)
	if err != nil {
		return nil, err
	}
	return &silentStream{rc, make(chan struct{})}, nil
}

// TestPayloadReadEnds: the end of the handler's context ends a read of a payload that was opened before there was a handler, and its reason is the error.
func TestPayloadReadEnds(t *testing.T) {
	onPayloads(t, true, nil, func(t *testing.T, s *stage, b *bucket) {
		s.source.cfg.Payloads = &quiet{b}
		r := s.open()
		m := s.one(r)
		ctx, cancel := context.WithCancelCause(t.Context())
		rc, err := m.Open(ctx)
		if err != nil {
			t.Fatal(err)
		}
		revoked := errors.New("revoked")
		time.AfterFunc(time.Minute, func() { cancel(revoked) })
		start := time.Now()
		if _, err := rc.Read(make([]byte, 1)); !errors.Is(err, revoked) || time.Since(start) != time.Minute {
			t.Errorf("Read: %v after %v, want the reason why the context ended, at once", err, time.Since(start))
		}
		if err := rc.Close(); err != nil {
			t.Error(err)
		}
		if b.opened != 1 {
			t.Errorf("opened %d times", b.opened)
		}
		s.close(r)
	})
}

// TestPayloadReadAfterClose: once the handler has closed its stream the end of its context closes nothing more, and closing twice is one closing.
func TestPayloadReadAfterClose(t *testing.T) {
	onPayloads(t, true, nil, func(t *testing.T, s *stage, _ *bucket) {
		r := s.open()
		ctx, cancel := context.WithCancel(t.Context())
		rc, err := s.one(r).Open(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(rc.Close(), rc.Close()); err != nil {
			t.Error(err)
		}
		cancel()
		s.close(r)
	})
}

// TestStreamsOfLost: a stream that nobody asked for is closed, whatever becomes of its message.
func TestStreamsOfLost(t *testing.T) {
	for what, end := range map[string]sources.Outcome{"done": sources.Done, "rejected": sources.Reject, "released": sources.Release, "retried": sources.Retry, "nothing": 0} {
		for lost, lose := range map[string]func(r *reader){"noticed": func(r *reader) { r.expire(); r.notice() }, "not noticed": (*reader).expire} {
			t.Run(strings.Join([]string{what, lost}, ", "), func(t *testing.T) {
				onPayloads(t, true, func(c *Config) { c.DeadLetter = "dead" }, func(t *testing.T, s *stage, b *bucket) {
					r := s.open()
					m := s.one(r)
					if b.open != 1 {
						t.Fatalf("%d streams are open", b.open)
					}
					lose(r)
					if what != "nothing" {
						s.settle(r, end, m)
					}
					s.close(r)
				})
			})
		}
	}
}

// TestServerNeverAnswers: what waits for an extension or makes a call ends, however long the visibility is.
func TestServerNeverAnswers(t *testing.T) {
	for what, end := range map[string]func(ctx context.Context, s *stage, r *reader) error{
		"done": func(ctx context.Context, _ *stage, r *reader) error {
			return r.Settle(ctx, settlements(sources.Done, outOf(r)))
		},
		"retry": func(ctx context.Context, _ *stage, r *reader) error {
			return r.Settle(ctx, settlements(sources.Retry, outOf(r)))
		},
		"reject": func(ctx context.Context, _ *stage, r *reader) error {
			return r.Settle(ctx, settlements(sources.Reject, outOf(r)))
		},
		"close": func(ctx context.Context, _ *stage, r *reader) error { return r.Close(ctx) },
	} {
		t.Run(what, func(t *testing.T) {
			onStage(t, "", func(c *Config) { c.Visibility, c.Linger, c.DeadLetter = time.Hour, -1, "dead" }, func(t *testing.T, s *stage) {
				send(s, s.queue, "", "1")
				r := s.open()
				s.fetch(r, 1, "1")
				s.SetLatency(100 * time.Hour)
				time.Sleep(20*time.Minute + time.Second) // an extension runs
				start := time.Now()
				if err := end(t.Context(), s, r); err == nil || time.Since(start) > 2*callTimeout {
					t.Errorf("%v after %v, want an error within %v", err, time.Since(start), 2*callTimeout)
				}
				s.SetLatency(0)
			})
		})
	}
}

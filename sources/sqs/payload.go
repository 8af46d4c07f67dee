package sqs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// What the extended client library writes, in its newer and in its older spelling.
const (
	sizeAttribute    = "ExtendedPayloadSize"
	sizeAttributeOld = "SQSLargePayloadSize"
	mostPayloadWait  = 30 * time.Second
	mostFailing      = 32               // payloads that cannot be opened, beside which others are received
	payloadTimeout   = 30 * time.Second // for one try to open a payload
)

// payload is the body of a message that is kept elsewhere.
type payload struct {
	from        Payloads
	bucket, key string
	size        int64

	mu     sync.Mutex
	opened io.ReadCloser // when it was received, for the first that asks
	err    error         // there is no such object
}

// payloadOf reads the pointer in a message, nil when it is an ordinary one.
func (r *reader) payloadOf(e *entry) *payload {
	if r.s.cfg.Payloads == nil {
		return nil
	}
	size, ok := e.raw.MessageAttributes[sizeAttribute]
	if !ok {
		if size, ok = e.raw.MessageAttributes[sizeAttributeOld]; !ok {
			return nil
		}
	}
	var pair []json.RawMessage // the name of a class, and its fields
	var at struct{ S3BucketName, S3Key string }
	if json.Unmarshal([]byte(aws.ToString(e.raw.Body)), &pair) != nil || len(pair) != 2 ||
		json.Unmarshal(pair[1], &at) != nil || at.S3BucketName == "" || at.S3Key == "" {
		return nil
	}
	n, err := strconv.ParseInt(aws.ToString(size.StringValue), 10, 64)
	if err != nil {
		n = -1
	}
	return &payload{from: r.s.cfg.Payloads, bucket: at.S3BucketName, key: at.S3Key, size: n}
}

// openPayload opens the payload of a message before it is handed out, for as long as it takes: a key that is disabled, a right that is
// missing are troubles of the resource, and no handler's failure. An object that is not there is its message's own trouble.
func (r *reader) openPayload(e *entry) {
	p := e.payload
	n := 0
	for ; ; n++ {
		rc, err := r.openOnce(p)
		missing := errors.Is(err, fs.ErrNotExist)
		if err == nil || missing {
			p.mu.Lock()
			p.opened, p.err = rc, err
			p.mu.Unlock()
			break
		}
		r.mu.Lock()
		held := !r.closed && r.byID[e.id] == e
		if held {
			if n == 0 {
				r.failing++
				signal(r.wake)
			}
			r.report(aboutPayload+e.id, &payloadError{e.id, err})
		}
		r.mu.Unlock()
		t := time.NewTimer(rand.N(min(time.Second<<min(n, 10), mostPayloadWait)) + 100*time.Millisecond)
		select {
		case <-t.C:
		case <-r.stop:
			held = false
		}
		t.Stop()
		if !held {
			break
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.opening--
	if n > 0 {
		r.failing--
	}
	e.opening = false
	if r.closed || r.byID[e.id] != e {
		p.close()
		return
	}
	r.queue(e.lane)
}

// openOnce tries to open a payload, for payloadTimeout at most and no longer than until Close. What it gives may be read for longer.
func (r *reader) openOnce(p *payload) (io.ReadCloser, error) {
	limit, done := context.WithTimeout(r.life, payloadTimeout)
	defer done()
	ctx, cancel := context.WithCancel(r.s.ctx)
	stop := context.AfterFunc(limit, cancel)
	rc, err := p.from.Open(ctx, p.bucket, p.key)
	if err != nil {
		cancel()
		if !stop() && limit.Err() != nil {
			return nil, fmt.Errorf("not opened within %v", payloadTimeout)
		}
		return nil, err
	}
	body := &cancelled{ReadCloser: rc, cancel: cancel}
	if !stop() { // its context has ended, although it was opened
		_ = body.Close() // nothing was read from it
		return nil, fmt.Errorf("not opened within %v", payloadTimeout)
	}
	return body, nil
}

// cancelled is a stream whose context ends when it is closed. It may be closed several times, and while it is read.
type cancelled struct {
	io.ReadCloser
	cancel context.CancelFunc
	once   sync.Once
	err    error
}

func (c *cancelled) Close() error {
	c.once.Do(func() {
		c.cancel()
		c.err = c.ReadCloser.Close()
	})
	return c.err
}

// payloadError says that a payload cannot be opened for now.
type payloadError struct {
	id  string
	err error
}

func (e *payloadError) Error() string { return "payload of message \"" + e.id + "\": " + e.err.Error() }
func (e *payloadError) Unwrap() error { return e.err }

// open is Message.Stream.
func (p *payload) open(ctx context.Context) (io.ReadCloser, error) {
	p.mu.Lock()
	rc, err := p.opened, p.err
	p.opened = nil
	p.mu.Unlock()
	switch {
	case err != nil:
		return nil, err
	case rc == nil:
		return p.from.Open(ctx, p.bucket, p.key)
	}
	return &first{p: p, ctx: ctx, rc: rc, stop: context.AfterFunc(ctx, func() { _ = rc.Close() })}, nil // Read tells
}

// first is the stream that was opened early. It may have been cut off while it waited for its reader, so that its first read may open it again.
// It was opened before there was a context of a handler, whose end closes it.
type first struct {
	p     *payload
	ctx   context.Context
	rc    io.ReadCloser
	stop  func() bool
	begun bool
}

func (f *first) Read(b []byte) (int, error) {
	n, err := f.rc.Read(b)
	if err != nil && err != io.EOF && f.ctx.Err() != nil {
		return n, context.Cause(f.ctx)
	}
	if err != nil && err != io.EOF && n == 0 && !f.begun {
		_ = f.rc.Close() // it failed
		f.begun = true
		rc, again := f.p.from.Open(f.ctx, f.p.bucket, f.p.key)
		if again != nil {
			f.rc = io.NopCloser(errReader{again})
			return 0, again
		}
		f.rc = rc
		return f.rc.Read(b)
	}
	f.begun = true
	return n, err
}

func (f *first) Close() error {
	f.stop()
	return f.rc.Close()
}

type errReader struct{ err error }

func (r errReader) Read([]byte) (int, error) { return 0, r.err }

// close closes what nobody asked for. A nil payload has nothing.
func (p *payload) close() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.opened != nil {
		_ = p.opened.Close() // nothing was read from it
		p.opened = nil
	}
}

// deletePayloads deletes what messages left behind that were deleted. One that fails stays, which is reported and nothing else: its
// message is gone.
func (r *reader) deletePayloads(ps []*payload) {
	if len(ps) == 0 || r.s.cfg.KeepPayloads {
		return
	}
	ctx, cancel := context.WithTimeout(r.s.ctx, callTimeout)
	defer cancel()
	slots := make(chan struct{}, parallelCalls)
	var wg sync.WaitGroup
	for _, p := range ps {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			if err := p.from.Delete(ctx, p.bucket, p.key); err != nil {
				r.s.cfg.Logger.Warn("sqs: the payload of a message that was deleted stays", "queue", r.q.name, "bucket", p.bucket, "key", p.key, "error", err)
			}
		})
	}
	wg.Wait()
}

package s3

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/internal/files"
)

// readIdle is how long a read waits for the next bytes, and a request for its answer, before the connection is given up.
const readIdle = 30 * time.Second

// body reads one object, pinned to its ETag and, once that is known, its version. When the connection drops it goes on from where it was in another
// one. It is for one goroutine; only Close may come beside a Read.
type body struct {
	source *Source
	ctx    context.Context
	want   files.Info
	what   call
	at     int64  // how much was read
	tries  int    // that failed since bytes came
	err    error  // that ended it
	ver    string // "": not versioned, or not known yet

	mu     sync.Mutex // of what Close touches
	src    io.ReadCloser
	watch  *time.Timer
	cancel context.CancelFunc
	closed bool
}

// Open starts to read an object that is the one wanted.
func (p *place) Open(ctx context.Context, name string, want files.Info) (files.Content, error) {
	b := &body{
		source: p.source, ctx: ctx, want: want,
		what: call{right: "s3:GetObject", bucket: p.source.Bucket, key: p.key(name), condition: true},
	}
	if err := b.get(); err != nil {
		return nil, b.what.fail(err)
	}
	return b, nil
}

// get asks for the rest of the object.
func (b *body) get() error {
	ctx, cancel := context.WithCancel(b.ctx)
	watch := time.AfterFunc(b.source.readIdle, cancel)
	in := &s3.GetObjectInput{Bucket: &b.what.bucket, Key: &b.what.key, IfMatch: quoted(b.want)}
	if b.at > 0 {
		from := fmt.Sprintf("bytes=%d-", b.at)
		in.Range = &from
	}
	if b.ver != "" {
		in.VersionId = &b.ver
	}
	out, err := b.source.Client.GetObject(ctx, in)
	err = b.silent(watch, err)
	if err == nil {
		if err = b.check(out); err != nil {
			_ = out.Body.Close()
		}
	}
	if err != nil {
		cancel()
		return err
	}
	if out.VersionId != nil && *out.VersionId != "null" {
		b.ver = *out.VersionId
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.src, b.watch, b.cancel = out.Body, watch, cancel
	if b.closed {
		b.drop()
	}
	return nil
}

// check looks whether the answer is what was asked for: not every store heeds the condition, and two halves of two objects look like a whole.
func (b *body) check(out *s3.GetObjectOutput) error {
	if tag := strings.Trim(aws.ToString(out.ETag), `"`); tag != "" && tag != b.want.Tag {
		return fmt.Errorf("the store sent an object with ETag %q: %w", tag, rebalancer.ErrChanged)
	}
	if b.at == 0 {
		return nil
	}
	if out.ContentRange == nil {
		return errors.New("the store sent the object from its start although its rest was asked for")
	}
	if want, got := fmt.Sprintf("bytes %d-%d/%d", b.at, b.want.Size-1, b.want.Size), aws.ToString(out.ContentRange); got != want {
		return fmt.Errorf("the store sent %q of the object, asked for was %q", got, want)
	}
	return nil
}

// drop ends the request that is under way; mu is held.
func (b *body) drop() {
	if b.src != nil {
		b.watch.Stop()
		b.cancel()
		_ = b.src.Close() // what it says is of no use: the object was read to its end, or is read again
		b.src = nil
	}
}

// Read reads on, in another connection when it must. The object ends without an error only after its last byte.
func (b *body) Read(p []byte) (int, error) {
	for b.err == nil {
		n, err := b.some(p)
		b.at += int64(n)
		if n > 0 {
			b.tries = 0
		}
		switch {
		case err == nil && n > 0, err == nil && len(p) == 0:
			return n, nil
		case err == nil:
			continue
		case b.at >= b.want.Size: // its end, or a checksum that does not fit: there is nothing to resume
			b.err = err
		case !b.resume(err):
		}
		if n > 0 {
			return n, nil
		}
	}
	return 0, b.err
}

// some reads what the request under way has, or says what ended it. A read that waits for too long is ended.
func (b *body) some(p []byte) (int, error) {
	b.mu.Lock()
	src, watch, closed := b.src, b.watch, b.closed
	b.mu.Unlock()
	if closed {
		return 0, errClosed
	}
	if src == nil {
		return 0, io.ErrUnexpectedEOF
	}
	watch.Reset(b.source.readIdle)
	n, err := src.Read(p)
	return n, b.silent(watch, err)
}

// silent stops the watch, and says so where it was what ended a call: a context that we ended must not look like the handler's.
func (b *body) silent(watch *time.Timer, err error) error {
	if running := watch.Stop(); err != nil && err != io.EOF && !running && b.ctx.Err() == nil {
		return fmt.Errorf("no answer within %v", b.source.readIdle)
	}
	return err
}

var errClosed = errors.New("read of an object that is closed")

// resume asks for the rest of the object after an error; when it does not get it, it notes why.
func (b *body) resume(cause error) bool {
	if errors.Is(cause, errClosed) {
		b.err = cause
		return false
	}
	if cause == io.EOF {
		cause = io.ErrUnexpectedEOF
	}
	b.mu.Lock()
	b.drop()
	b.mu.Unlock()
	for ; ; b.tries++ {
		if b.ctx.Err() != nil {
			b.err = b.ctx.Err()
			return false
		}
		if b.tries >= resumes || !passing(cause) {
			b.err = b.what.fail(fmt.Errorf("read after %d of %d bytes: %w", b.at, b.want.Size, cause))
			if errors.Is(b.err, fs.ErrNotExist) {
				b.err = fmt.Errorf("it vanished during the read: %w: %w", rebalancer.ErrChanged, b.err)
			}
			return false
		}
		if b.tries > 0 && !pause(b.ctx, b.tries) {
			continue
		}
		if cause = b.get(); cause == nil {
			b.tries++
			return true
		}
	}
}

// Stat is what is read: it was pinned, so it cannot have changed.
func (b *body) Stat() (files.Info, error) { return b.want, nil }

// Close ends the reading.
func (b *body) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	b.drop()
	return nil
}

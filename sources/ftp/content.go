package ftp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"sync"
	"time"

	"github.com/rebalancer-go/rebalancer/internal/files"
)

const (
	// resumes bounds how often in a row a read goes on over another connection without a byte coming.
	resumes = 4
	// resumePause is the time before the second of them; it doubles.
	resumePause = 200 * time.Millisecond
)

// content is a file that is being read. When its connection breaks, another one goes on where it was, if the file is still
// the same.
type content struct {
	place  *place
	name   string
	want   files.Info
	ctx    context.Context
	cancel context.CancelFunc

	// Of the one goroutine that reads, and of Close when none does.
	lease  *lease
	stream io.ReadCloser // nil between two connections, and at the end
	offset int64
	failed int // connections that brought nothing, in a row
	end    error

	mu     sync.Mutex
	busy   bool
	closed bool
}

// Open opens a file that is the one wanted. The connection is the reader's alone until its end or Close.
func (p *place) Open(ctx context.Context, name string, want files.Info) (files.Content, error) {
	c := &content{place: p, name: name, want: want}
	c.ctx, c.cancel = context.WithCancel(ctx)
	err := c.connect()
	if passes(err) && ctx.Err() == nil { // it was idle, and has died meanwhile
		err = c.connect()
	}
	if err != nil {
		c.cancel()
		return nil, err
	}
	return c, nil
}

// passes reports whether another connection may do what one did not.
func passes(err error) bool {
	var busy *busyError
	return broken(err) && !errors.As(err, &busy)
}

// connect begins to read at the offset.
func (c *content) connect() error {
	l, err := c.place.source.pool.take(c.ctx, true)
	if err != nil {
		return err
	}
	file := path.Join(c.place.dir(l), c.name)
	var stream io.ReadCloser
	if err = is(c.ctx, l, file, c.want); err == nil {
		stream, err = l.open(c.ctx, file, c.offset)
	}
	if err != nil {
		c.place.source.pool.give(l, err)
		return err
	}
	c.lease, c.stream = l, stream
	return nil
}

// Read reads on.
func (c *content) Read(p []byte) (int, error) {
	if !c.begin() {
		return 0, fs.ErrClosed
	}
	n, err := c.read(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.busy = false
	if c.closed {
		c.drop(fs.ErrClosed)
		return 0, fs.ErrClosed
	}
	return n, err
}

func (c *content) begin() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.busy = !c.closed
	return c.busy
}

func (c *content) read(p []byte) (int, error) {
	if len(p) == 0 || c.end != nil {
		return 0, c.end
	}
	for {
		if c.stream == nil {
			if err := c.connect(); err != nil {
				if !passes(err) || !c.retry() {
					c.end = fmt.Errorf("read on at byte %d: %w", c.offset, err)
					return 0, c.end
				}
				continue
			}
		}
		n, err := c.stream.Read(p)
		if n > 0 {
			c.offset += int64(n)
			c.failed = 0
			c.place.source.pool.seats.stir()
		}
		if c.offset == c.want.Size && err == nil {
			err = c.atEnd()
		}
		switch {
		case err == nil:
		case err == io.EOF:
			c.finish()
		case broken(err) && c.offset >= c.want.Size: // all has come, and the engine holds it against what was listed
			c.drop(err)
			c.end = io.EOF
		case broken(err) && c.retry():
			c.drop(err)
		default:
			c.drop(err)
			c.end = err
		}
		if n > 0 || c.end != nil && err != nil {
			if n > 0 {
				return n, nil
			}
			return 0, c.end
		}
	}
}

// atEnd reads the end when all has come, so that the connection is free before a handler closes the file, and whether it does
// or not.
func (c *content) atEnd() error {
	var more [1]byte
	n, err := io.ReadFull(c.stream, more[:])
	if n > 0 {
		return errChanged(c.name)
	}
	return err
}

// finish is for the end of a stream: of the file, or of the connection before that.
func (c *content) finish() {
	err := c.stream.Close()
	c.stream = nil
	c.place.source.pool.give(c.lease, err)
	c.lease = nil
	switch {
	case c.offset >= c.want.Size: // the engine holds it against what was listed
		c.end = io.EOF
	case err == nil:
		c.end = errChanged(c.name) // the server says that this was all
	case c.retry():
	default:
		c.end = fmt.Errorf("read on at byte %d: %w", c.offset, err)
	}
}

// retry reports whether to go on over another connection, at once or after a pause.
func (c *content) retry() bool {
	c.failed++
	if c.failed > resumes {
		return false
	}
	if c.failed > 1 {
		select {
		case <-time.After(resumePause << (c.failed - 2)):
		case <-c.ctx.Done():
		}
	}
	return c.ctx.Err() == nil
}

// drop gives up the connection.
func (c *content) drop(err error) {
	if c.lease == nil {
		return
	}
	_ = c.stream.Close()
	if !broken(err) || errors.Is(err, fs.ErrClosed) {
		err = errGivenUp
	}
	c.place.source.pool.give(c.lease, err)
	c.lease, c.stream = nil, nil
}

// Stat observes what has the name: FTP has no way to observe what is open.
func (c *content) Stat() (files.Info, error) { return c.place.Stat(c.ctx, c.name) }

// Close ends a read that is under way. It does not wait for the server.
func (c *content) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cancel()
	if !c.closed && !c.busy {
		c.drop(fs.ErrClosed)
	}
	c.closed = true
	return nil
}

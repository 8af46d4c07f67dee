package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"

	"github.com/rebalancer-go/rebalancer"
)

// content is what a handler reads. The end of the file is passed on only if what was read is as long as the file was
// when it was delivered and the file did not change meanwhile: a half-written file must not look like a whole one.
type content struct {
	ctx  context.Context
	src  Content
	want Info
	name string
	sum  *checksum // nil: none is asked for
	read int64

	once sync.Once
	err  error // of closing
}

// open opens a file of a message in hand for a handler.
func (r *Reader) open(ctx context.Context, f *file, p part, beside *part) (io.ReadCloser, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var sum *checksum
	if beside != nil {
		var err error
		if sum, err = r.readChecksum(ctx, p.name, beside); err != nil {
			return nil, fmt.Errorf("open %q of %q: %w", p.name, r.resource, err)
		}
	}
	src, err := r.place.Open(ctx, p.at(), p.info)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w: %w", rebalancer.ErrChanged, err)
	}
	if err != nil {
		return nil, fmt.Errorf("open %q of %q: %w", p.name, r.resource, err)
	}
	c := &content{ctx: ctx, src: src, want: p.info, name: p.name, sum: sum}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !f.handed { // meanwhile: nobody would close it
		_ = c.Close()
		return nil, fmt.Errorf("open %q of %q: it is not in hand any more: %w", p.name, r.resource, fs.ErrClosed)
	}
	f.opens = append(f.opens, c)
	return c, nil
}

// Read reads on.
func (c *content) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := c.src.Read(p)
	c.read += int64(n)
	if c.read > c.want.Size {
		return 0, c.changed("it is longer than the %d bytes it had", c.want.Size)
	}
	if c.sum != nil {
		_, _ = c.sum.hash.Write(p[:n])
	}
	if err == io.EOF {
		err = c.atEnd()
	}
	return n, c.vanished(err)
}

// vanished makes a change of what is not there any more: it is another file by now that comes, or none.
func (c *content) vanished(err error) error {
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return fmt.Errorf("%q vanished during the read: %w: %w", c.name, rebalancer.ErrChanged, err)
}

func (c *content) atEnd() error {
	if c.read < c.want.Size {
		return c.changed("it ends after %d of %d bytes", c.read, c.want.Size)
	}
	now, err := c.src.Stat()
	if err != nil {
		return fmt.Errorf("check of %q at its end: %w", c.name, err)
	}
	if !now.Same(c.want) {
		return c.changed("it was written to during the read")
	}
	if c.sum != nil {
		if err := c.sum.check(c.name); err != nil {
			return err
		}
	}
	return io.EOF
}

func (c *content) changed(format string, args ...any) error {
	return fmt.Errorf("%q: %s: %w", c.name, fmt.Sprintf(format, args...), rebalancer.ErrChanged)
}

// Close closes the file, once.
func (c *content) Close() error {
	c.once.Do(func() { c.err = c.src.Close() })
	return c.err
}

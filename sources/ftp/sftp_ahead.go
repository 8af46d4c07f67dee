package ftp

import (
	"context"
	"io"
	"io/fs"
	"net"

	"github.com/pkg/sftp"

	"github.com/rebalancer-go/rebalancer/internal/files"
)

const (
	// chunk is what every server gives with one request.
	chunk = 32 << 10
	// maxAhead is how many requests of a file are under way at most: 2 MiB of memory, and 40 MB/s at a round trip of 50 ms.
	maxAhead = 64
	// probe is what is asked for behind the end, where nothing should be.
	probe = 512
)

// ahead reads a file by requests that are under way together. They grow in number while the file is read, and ask for
// nothing behind the size that the file had when it was opened, but for one that finds its end.
type ahead struct {
	r    *sftpRemote
	ctx  context.Context
	f    *sftp.File
	path string
	size int64

	next   int64    // what is asked for next
	probed bool     // the end was asked for
	window int      // how many requests may be under way
	queue  []*piece // not waited for yet, in the order of the file
	first  *piece   // what is read now
	unread []byte   // of first
	free   []*piece // to be used again
	err    error    // what Read returns from now on
}

// piece is one request.
type piece struct {
	buf  []byte
	past bool // behind the size that the file had
	n    int
	err  error
	done chan struct{} // room for one
}

// open opens a file that is no link. The server follows one, so what is open is compared with what has the name: as it was
// looked at last, where that was the call before. Reads are under way meanwhile.
func (r *sftpRemote) open(ctx context.Context, path string, offset int64) (io.ReadCloser, error) {
	what := "open"
	named := r.looked
	if named.path != path {
		e, err := r.stat(ctx, path)
		if err != nil {
			return nil, err
		}
		named = looked{path, e}
	}
	r.looked = looked{}
	if named.kind != regular || named.info == nil {
		return nil, &answer{what: label(what, path), text: "not asked: it is no file", err: fs.ErrNotExist}
	}
	a := &ahead{r: r, ctx: ctx, path: path, size: named.info.Size, next: offset, window: 2}
	err := r.do(ctx, what, path, func() (err error) {
		if a.f, err = r.sftp.Open(path); err != nil {
			return err
		}
		a.ask()
		fi, err := a.f.Stat()
		if err == nil && !same(fi, named.info) {
			err = &answer{what: label(what, path), text: "it is a link, or was replaced while it was opened", err: fs.ErrNotExist}
		}
		return err
	})
	if err != nil && a.f != nil {
		_ = a.Close() // it says nothing more
	}
	if err != nil {
		return nil, err
	}
	return a, nil
}

func same(open fs.FileInfo, named *files.Info) bool {
	_, is := seen(open)
	return is != nil && is.Same(*named)
}

// Read reads on.
func (a *ahead) Read(p []byte) (int, error) {
	for len(a.unread) == 0 {
		if a.err != nil {
			return 0, a.err
		}
		if len(p) == 0 {
			return 0, nil
		}
		a.advance()
	}
	n := copy(p, a.unread)
	a.unread = a.unread[n:]
	return n, nil
}

// advance asks for more, and waits for the first of what was asked for.
func (a *ahead) advance() {
	if a.first != nil && cap(a.first.buf) >= chunk {
		a.free = append(a.free, a.first)
	}
	a.ask()
	first := a.queue[0] // ask has seen to it that there is one
	a.queue = a.queue[1:]
	a.await(first)
	a.first, a.unread = first, first.buf[:first.n]
	switch {
	case first.err == io.EOF:
		a.err = io.EOF
	case first.err != nil:
		a.err = a.r.failed("read", a.path, first.err)
	case first.past: // the file has grown
		a.next, a.probed = a.next+int64(first.n), false
	}
	a.window = min(2*a.window, maxAhead)
}

// await waits until a request is answered. Most are when they are waited for.
func (a *ahead) await(p *piece) {
	select {
	case <-p.done:
		return
	default:
	}
	end := a.r.during(a.ctx)
	<-p.done
	if p.err != io.EOF {
		p.err = end(p.err)
		return
	}
	_ = end(nil)
}

// ask fills the window.
func (a *ahead) ask() {
	for len(a.queue) < a.window && !a.probed {
		length := int64(probe)
		if a.next < a.size {
			length = min(chunk, a.size-a.next)
		} else {
			a.probed = true
		}
		p := a.piece(int(length))
		p.past = a.probed
		off := a.next
		read := func() {
			p.n, p.err = a.f.ReadAt(p.buf, off)
			p.done <- struct{}{}
		}
		if !a.r.start(read) {
			p.n, p.err = 0, net.ErrClosed
			p.done <- struct{}{}
		}
		if !a.probed {
			a.next += length
		}
		a.queue = append(a.queue, p)
	}
}

func (a *ahead) piece(length int) *piece {
	if n := len(a.free) - 1; n >= 0 {
		p := a.free[n]
		a.free = a.free[:n]
		p.buf = p.buf[:length]
		return p
	}
	return &piece{buf: make([]byte, length, max(length, min(chunk, int(a.size)))), done: make(chan struct{}, 1)}
}

// Close closes the file. It gives an error when the file was not read to its end, and does not wait for the server then: where that
// owes answers, the connection is of no use any more.
func (a *ahead) Close() error {
	for _, p := range a.queue {
		if a.err != io.EOF && len(p.done) == 0 {
			a.r.abort(net.ErrClosed)
			a.err = a.r.failed("close", a.path, net.ErrClosed)
		}
		a.await(p) // it ends with the connection
	}
	a.queue = nil
	a.r.start(func() { a.f.Close() }) // nothing depends on the answer, and the server does what it is asked in order
	switch {
	case a.err == nil:
		a.err = fs.ErrClosed
		return &answer{what: label("close", a.path), text: "it was not read to its end"}
	case a.err != io.EOF:
		return a.err
	}
	return nil
}

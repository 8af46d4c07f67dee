package ftp

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/textproto"
	"path"
	"strings"
	"sync"

	lib "github.com/jlaffaye/ftp"
)

// Codes of replies, by RFC 959.
const (
	replyClosing    = 421
	replyAborted    = 426
	replyLocalError = 451
	replyNoSpace    = 452
	replyFailed     = 550
	replyQuota      = 552
)

// ftpConn is a remote over FTP.
type ftpConn struct {
	server ftpServer
	tls    *tls.Config // with the sessions of this connection; nil: none
	lib    *lib.ServerConn
	tap    controlTap
	dir    string
	mlst   bool // the server has MLST and MLSD
	dots   bool // LIST -a shows "." on this server
	plain  bool // LIST -a is of no use on this server

	ctx   context.Context    // of the call that runs
	lines func([]byte) error // what the next data connection is read by

	mu      sync.Mutex
	busy    bool // a call runs, or a file is on its way
	closing bool
	killed  bool
	parted  bool // nothing was under way when it was closed
	control *timedConn
	data    *timedConn // the last one
}

func (c *ftpConn) home() string { return c.dir }

// call runs commands, and closes the connections when ctx ends before they have. Its error is an answer, or the connection
// is of no use any more.
func (c *ftpConn) call(ctx context.Context, what string, f func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if !c.begin() {
		return fmt.Errorf("%s: %w", what, net.ErrClosed)
	}
	defer c.end()
	c.ctx = ctx
	stop := context.AfterFunc(ctx, c.kill)
	err := guarded(f)
	if !stop() {
		return fmt.Errorf("%s: %w", what, ctx.Err())
	}
	return judge(what, err)
}

// guarded makes an error of a panic: the client library takes some replies apart without a look whether they are what they should be.
func guarded(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the server's reply cannot be understood: %v", r)
		}
	}()
	return f()
}

func (c *ftpConn) begin() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.busy = !c.killed && !c.closing
	return c.busy
}

func (c *ftpConn) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.busy = false
}

// judge makes an answer of what the server replied.
func judge(what string, err error) error {
	var reply *textproto.Error
	var given *answer
	switch {
	case err == nil:
		return nil
	case errors.As(err, &given):
		return err
	case !errors.As(err, &reply) || reply.Code == replyClosing || strings.HasPrefix(reply.Msg, "OOPS:"):
		return fmt.Errorf("%s: %w", what, err)
	}
	return &answer{what: what, text: fmt.Sprintf("%d %s", reply.Code, reply.Msg), err: meaning(reply)}
}

// meaning is what a reply says beyond its code, which is 550 for most failures: the text of the system's error at the end
// of the line. What comes before it holds names, and can be anything.
func meaning(reply *textproto.Error) error {
	text := reply.Msg
	switch {
	case reply.Code == replyNoSpace || reply.Code == replyQuota || strings.HasSuffix(text, "No space left on device") || strings.HasSuffix(text, "Disk quota exceeded"):
		return errFull
	case strings.HasSuffix(text, ": No such file or directory"), strings.HasSuffix(text, ": Not a directory"):
		return fs.ErrNotExist
	case strings.HasSuffix(text, ": Permission denied"), strings.HasSuffix(text, ": Read-only file system"), strings.HasSuffix(text, ": Operation not permitted"):
		return fs.ErrPermission
	case strings.HasSuffix(text, ": File exists"):
		return fs.ErrExist
	}
	return nil
}

// errFull is what an answer means when the server has no more room.
var errFull = errors.New("no space left on the server, or the quota is used up")

// refused is the answer to a path that cannot be sent.
func refused(what string, paths ...string) error {
	for _, p := range paths {
		if !carries(p) {
			return &answer{what: what, text: "(not asked)", err: fmt.Errorf("FTP cannot carry the path: %w", fs.ErrInvalid)}
		}
	}
	return nil
}

func (c *ftpConn) stat(ctx context.Context, p string) (e entry, err error) {
	what := fmt.Sprintf("look at %q", p)
	if err := refused(what, p); err != nil {
		return e, err
	}
	err = c.call(ctx, what, func() error {
		var err error
		e, err = c.look(p)
		return c.absent(p, err)
	})
	return e, err
}

// absent finds out whether a file is not there, where the server did not say why it cannot be looked at: it is not there
// when its directory can be entered.
func (c *ftpConn) absent(p string, err error) error {
	var reply *textproto.Error
	if !errors.As(err, &reply) || reply.Code != replyFailed || meaning(reply) != nil {
		return err
	}
	why := fs.ErrPermission
	if err := c.lib.ChangeDir(path.Dir(p)); err == nil {
		why = fs.ErrNotExist
	} else if code(err) == 0 {
		return err
	} else if c.gone(path.Dir(p)) {
		why = fs.ErrNotExist
	}
	return &answer{what: fmt.Sprintf("look at %q", p), text: fmt.Sprintf("%d %s", reply.Code, reply.Msg), err: why}
}

// exists reports whether a path is taken. A server that will not tell is an error: what is there would be overwritten.
func (c *ftpConn) exists(p string) (bool, error) {
	_, err := c.look(p)
	if err == nil {
		return true, nil
	}
	err = judge(fmt.Sprintf("look whether %q is there", p), c.absent(p, err))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return false, err
}

func (c *ftpConn) remove(ctx context.Context, p string) error {
	what := fmt.Sprintf("delete %q", p)
	if err := refused(what, p); err != nil {
		return err
	}
	return c.call(ctx, what, func() error { return c.explain(what, p, c.lib.Delete(p)) })
}

// explain says what was wrong with a file when the server refused to do something with it and did not say.
func (c *ftpConn) explain(what, p string, err error) error {
	var reply *textproto.Error
	if !errors.As(err, &reply) || reply.Code == replyClosing {
		return err
	}
	why := meaning(reply)
	if why == nil || errors.Is(why, fs.ErrNotExist) || errors.Is(why, fs.ErrExist) { // it may be of another path than this
		why = nil
		_, look := c.look(p)
		if look = c.absent(p, look); errors.Is(judge(what, look), fs.ErrNotExist) {
			why = fs.ErrNotExist
		} else if look != nil && broken(judge(what, look)) {
			return look
		}
	}
	return &answer{what: what, text: fmt.Sprintf("%d %s", reply.Code, reply.Msg), err: why}
}

func (c *ftpConn) rename(ctx context.Context, from, to string) error {
	what := fmt.Sprintf("rename %q to %q", from, to)
	if err := refused(what, from, to); err != nil {
		return err
	}
	return c.call(ctx, what, func() error {
		if taken, err := c.exists(to); err != nil {
			return err
		} else if taken {
			return &answer{what: what, text: "there is one", err: fs.ErrExist}
		}
		return c.explain(what, from, c.lib.Rename(from, to))
	})
}

func (c *ftpConn) put(ctx context.Context, p string, data []byte) error {
	what := fmt.Sprintf("write %q", p)
	if err := refused(what, p); err != nil {
		return err
	}
	return c.call(ctx, what, func() error {
		if taken, err := c.exists(p); err != nil {
			return err
		} else if taken {
			return &answer{what: what, text: "there is one", err: fs.ErrExist}
		}
		err := c.lib.Stor(p, bytes.NewReader(data))
		switch code(err) {
		case replyAborted, replyLocalError, replyNoSpace, replyQuota: // it was begun: what is there is ours, and a part
			_ = c.lib.Delete(p)
		}
		return err
	})
}

func (c *ftpConn) mkdir(ctx context.Context, p string) error {
	what := fmt.Sprintf("make the directory %q", p)
	if err := refused(what, p); err != nil {
		return err
	}
	return c.call(ctx, what, func() error {
		made := c.lib.MakeDir(p)
		if made != nil && broken(judge(what, made)) {
			return made
		}
		entered := c.lib.ChangeDir(p) // some servers change the name
		if made == nil && code(entered) == replyFailed {
			return &answer{what: what, text: entered.Error(), err: errors.New("the server made it, under another name")}
		}
		if entered != nil && made != nil {
			return made
		}
		return entered
	})
}

func (c *ftpConn) alive(ctx context.Context) error {
	return c.call(ctx, "NOOP", c.lib.NoOp)
}

// close says goodbye if nothing is under way, nor owed, and does not wait for the answer.
func (c *ftpConn) close() error {
	c.mu.Lock()
	idle := !c.killed && !c.busy && !c.closing && c.control.failed() == nil
	c.closing = true
	c.parted = c.parted || idle
	c.mu.Unlock()
	if idle {
		_ = c.lib.Quit() // the connection is of no use either way
	}
	c.kill()
	return nil
}

func (c *ftpConn) open(ctx context.Context, p string, offset int64) (io.ReadCloser, error) {
	what := fmt.Sprintf("read %q", p)
	if err := refused(what, p); err != nil {
		return nil, err
	}
	s := &ftpStream{c: c, ctx: ctx, what: what}
	err := c.call(ctx, what, func() (err error) {
		s.body, err = c.lib.RetrFrom(p, uint64(offset))
		if err != nil {
			err = c.explain(what, p, err)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	s.stop = context.AfterFunc(ctx, c.kill)
	if !c.begin() {
		s.stop()
		return nil, fmt.Errorf("%s: %w", what, net.ErrClosed)
	}
	return s, nil
}

// ftpStream is a file on its way.
type ftpStream struct {
	c     *ftpConn
	ctx   context.Context
	what  string
	body  *lib.Response
	stop  func() bool
	ended bool
}

// Read reads on. Its end is the end of the data connection, which may have broken off: Close knows.
func (s *ftpStream) Read(p []byte) (int, error) {
	n, err := s.body.Read(p)
	s.ended = err == io.EOF
	if err != nil && err != io.EOF {
		if s.ctx.Err() != nil {
			err = s.ctx.Err()
		}
		err = fmt.Errorf("%s: %w", s.what, err)
	}
	return n, err
}

// Close waits for what the server says about the transfer, if it has come to its end.
func (s *ftpStream) Close() error {
	defer s.c.end()
	defer s.stop()
	if !s.ended {
		s.c.kill()
		return fmt.Errorf("%s: closed before its end: %w", s.what, net.ErrClosed)
	}
	err := s.body.Close()
	if code(err) == 250 { // as good as 226
		err = nil
	}
	return judge(s.what, err)
}

package ftp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"

	"github.com/rebalancer-go/rebalancer/internal/files"
)

// sftpRemote is a remote over SFTP, version 3 of the protocol. The library knows no deadlines and hardly any contexts: what
// takes too long is ended by closing the connection under it.
type sftpRemote struct {
	tcp     net.Conn
	ssh     *ssh.Client
	sftp    *sftp.Client
	tap     *tap
	addr    string
	homeDir string
	timeout time.Duration
	refuses bool // its rename does not overwrite, for sure
	looked  looked

	mu    sync.Mutex
	why   error // why we closed the connection
	ended bool  // nothing is started any more
	work  sync.WaitGroup
}

// looked is what the last call has looked at, if it was stat: what opens it need not look again.
type looked struct {
	path string
	entry
}

// Codes of statuses.
const (
	statusOK               = 0
	statusEOF              = 1
	statusNoSuchFile       = 2
	statusPermissionDenied = 3
	statusNoConnection     = 6
	statusConnectionLost   = 7
)

func (r *sftpRemote) home() string { return r.homeDir }

// during bounds what runs until end, which says why it failed.
func (r *sftpRemote) during(ctx context.Context) (end func(error) error) {
	timer := time.AfterFunc(r.timeout, func() {
		r.abort(fmt.Errorf("no answer within %v: %w", r.timeout, os.ErrDeadlineExceeded))
	})
	stop := context.AfterFunc(ctx, func() { r.abort(ctx.Err()) })
	return func(err error) error {
		timer.Stop()
		stop()
		if err == nil {
			return nil
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.why != nil {
			return r.why
		}
		return err
	}
}

// abort closes the connection, which ends whatever runs on it.
func (r *sftpRemote) abort(why error) {
	r.mu.Lock()
	if r.why == nil {
		r.why = why
	}
	r.mu.Unlock()
	if !errors.Is(why, net.ErrClosed) {
		withdraw(r.tcp)
	}
	r.tcp.Close()
}

// start runs f beside its caller, until close has returned at most; false: the connection is closed.
func (r *sftpRemote) start(f func()) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return false
	}
	r.work.Go(f)
	return true
}

// close ends the connection, and what runs on it: nothing of it is left afterwards.
func (r *sftpRemote) close() error {
	r.mu.Lock()
	r.ended = true
	r.mu.Unlock()
	r.abort(net.ErrClosed)
	r.sftp.Close() // both only find what is closed
	r.ssh.Close()
	r.work.Wait()
	_ = r.ssh.Wait()
	return nil
}

// do runs calls of the library about one path, as one step.
func (r *sftpRemote) do(ctx context.Context, what, path string, call func() error) error {
	if err := r.possible(ctx, what, path); err != nil {
		return err
	}
	end := r.during(ctx)
	return r.failed(what, path, end(call()))
}

// possible refuses what need not be tried.
func (r *sftpRemote) possible(ctx context.Context, what, path string) error {
	r.looked = looked{}
	if strings.ContainsRune(path, 0) { // what lies behind it would be lost
		return &answer{what: label(what, path), text: "not asked: the path contains a zero byte", err: fs.ErrInvalid}
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%s: %w", label(what, path), err)
	}
	return nil
}

func label(what, path string) string { return fmt.Sprintf("%s %q", what, path) }

// failed makes an answer of what the server replied, and tells the rest apart.
func (r *sftpRemote) failed(what, path string, err error) error {
	if err == nil {
		return nil
	}
	var a *answer
	var status *sftp.StatusError
	switch {
	case errors.As(err, &a):
		return err
	case errors.Is(err, fs.ErrNotExist):
		return &answer{what: label(what, path), text: "no such file", err: fs.ErrNotExist}
	case errors.Is(err, fs.ErrPermission):
		return &answer{what: label(what, path), text: "permission denied", err: fs.ErrPermission}
	case errors.As(err, &status) && status.Code != statusNoConnection && status.Code != statusConnectionLost:
		return &answer{what: label(what, path), text: status.Error()}
	}
	return fmt.Errorf("%s on %s: %w", label(what, path), r.addr, err)
}

func (r *sftpRemote) malformed(what, path string) error {
	r.abort(errMalformed)
	return fmt.Errorf("%s on %s: %w", label(what, path), r.addr, errMalformed)
}

// own sends a request that the library has not; a status that is not OK is an error.
func (r *sftpRemote) own(ctx context.Context, what, path string, kind byte, fs ...string) (packet, error) {
	if err := r.possible(ctx, what, path); err != nil {
		return packet{}, err
	}
	end := r.during(ctx)
	reply, err := r.tap.request(kind, fs...)
	if err = end(err); err != nil {
		return packet{}, fmt.Errorf("%s on %s: %w", label(what, path), r.addr, err)
	}
	if reply.kind == typeStatus {
		return reply, status(label(what, path), reply)
	}
	return reply, nil
}

// status is the error of a status that is not OK; the end of something is io.EOF.
func status(what string, p packet) error {
	f := fields{b: p.data}
	code, text := f.number(), f.text()
	switch code {
	case statusOK:
		return nil
	case statusNoConnection, statusConnectionLost:
		return fmt.Errorf("%s: the server said %q", what, text)
	}
	means := map[uint32]error{statusEOF: io.EOF, statusNoSuchFile: fs.ErrNotExist, statusPermissionDenied: fs.ErrPermission}
	return &answer{what: what, text: text, err: means[code]}
}

func (r *sftpRemote) stat(ctx context.Context, path string) (entry, error) {
	e := entry{name: path[strings.LastIndexByte(path, '/')+1:]}
	err := r.do(ctx, "look at", path, func() error {
		fi, err := r.sftp.Lstat(path)
		if err == nil {
			e.kind, e.info = seen(fi)
		}
		return err
	})
	if err == nil {
		r.looked = looked{path, e}
	}
	return e, err
}

// seen is what an observation says.
func seen(fi fs.FileInfo) (kind, *files.Info) {
	st, ok := fi.Sys().(*sftp.FileStat)
	if !ok {
		return other, nil
	}
	return kindOf(st, hasPermissions, ""), sftpInfo(st)
}

func (r *sftpRemote) remove(ctx context.Context, path string) error {
	_, err := r.own(ctx, "remove", path, typeRemove, path)
	return err
}

// rename uses the operation that refuses a target. Servers that are not OpenSSH may overwrite all the same, so they are
// asked before.
func (r *sftpRemote) rename(ctx context.Context, from, to string) error {
	what := fmt.Sprintf("move %q to", from)
	exists := &answer{what: label(what, to), text: "the target exists", err: fs.ErrExist}
	there := func(path string) bool { _, err := r.sftp.Lstat(path); return err == nil }
	if err := r.possible(ctx, what, from); err != nil {
		return err
	}
	return r.do(ctx, what, to, func() error {
		if !r.refuses && there(to) {
			return exists
		}
		err := r.sftp.Rename(from, to)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, fs.ErrNotExist) && there(from):
			return &answer{what: label(what, to), text: "the directory of the target does not exist"}
		case broken(r.failed(what, to, err)) || errors.Is(err, fs.ErrNotExist):
			return err
		case there(to):
			return exists
		}
		return err
	})
}

func (r *sftpRemote) put(ctx context.Context, path string, data []byte) error {
	what := "write"
	return r.do(ctx, what, path, func() error {
		f, err := r.sftp.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL)
		if err != nil {
			if _, there := r.sftp.Lstat(path); there == nil && !broken(r.failed(what, path, err)) {
				return &answer{what: label(what, path), text: "it exists", err: fs.ErrExist}
			}
			return err
		}
		n, err := f.Write(data)
		if err == nil && n < len(data) {
			err = io.ErrShortWrite
		}
		if err = errors.Join(err, f.Close()); err != nil {
			_, _ = r.tap.request(typeRemove, path) // the library would remove a directory too
		}
		return err
	})
}

// mkdir makes a directory. A link in its place is refused: it may lead anywhere.
func (r *sftpRemote) mkdir(ctx context.Context, path string) error {
	what := "make directory"
	return r.do(ctx, what, path, func() error {
		err := r.sftp.Mkdir(path)
		if err == nil || broken(r.failed(what, path, err)) {
			return err
		}
		fi, serr := r.sftp.Lstat(path)
		switch {
		case serr != nil:
			return err
		case !fi.IsDir():
			return &answer{what: label(what, path), text: "there is something else of that name"}
		}
		return nil
	})
}

// alive sends what ssh sends for ServerAliveInterval. Any reply will do.
func (r *sftpRemote) alive(ctx context.Context) error {
	return r.do(ctx, "ask for a sign of life from", r.addr, func() error {
		_, _, err := r.ssh.SendRequest("keepalive@openssh.com", true, nil)
		return err
	})
}

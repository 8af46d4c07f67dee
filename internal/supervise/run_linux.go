package supervise

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// answerTime is how long a supervisor may take beyond what it was asked to wait before it is killed itself.
	answerTime = 2 * time.Second
	// tailSize is how much of standard error is kept.
	tailSize = 2 << 10
	// tailTime bounds the wait for the end of standard error, which somebody else may hold open.
	tailTime = time.Second
)

// files of one run: the ends of the pipes.
type files struct {
	stdin, body, errIn, errOut int // errIn is what the command writes to
}

// pipes are made without Go's help: a command must not find its end of them non-blocking.
func pipes() (f files, err error) {
	var in, out [2]int
	if err := unix.Pipe2(in[:], unix.O_CLOEXEC); err != nil {
		return f, err
	}
	if err := unix.Pipe2(out[:], unix.O_CLOEXEC); err != nil {
		unix.Close(in[0])
		unix.Close(in[1])
		return f, err
	}
	return files{stdin: in[0], body: in[1], errOut: out[0], errIn: out[1]}, nil
}

// run is one command under this supervisor.
func (s *slot) run(ctx context.Context, j Job, trusted func() Moment) (Result, error) {
	p, err := pipes()
	if err != nil {
		return Result{}, fmt.Errorf("%w: make pipes: %w", ErrSupervisor, err)
	}
	until := trusted()
	err = s.w.send(frame{
		Op: opRun, Path: j.Path, Args: bytesOf(j.Args), Env: append(bytesOf(j.Env), []byte(s.mark)), Until: until,
	}, p.stdin, p.body, p.errIn)
	unix.Close(p.stdin)
	unix.Close(p.errIn)
	for _, fd := range []int{p.body, p.errOut} {
		_ = unix.SetNonblock(fd, true) // for Go's poller; our ends alone
	}
	body, errOut := os.NewFile(uintptr(p.body), "body"), os.NewFile(uintptr(p.errOut), "stderr")
	defer body.Close()
	defer errOut.Close()
	if errors.Is(err, unix.E2BIG) {
		return Result{}, fmt.Errorf("%w: %w", ErrStart, err)
	}
	if now := trusted(); err == nil && now != until { // it changed before the command was there
		err = s.w.send(frame{Op: opTrust, Until: now})
	}
	if err != nil {
		s.kill() // half a frame may have been sent
	}
	return s.attend(ctx, j, body, errOut)
}

// attend feeds the command and waits for its end, whatever happens.
func (s *slot) attend(ctx context.Context, j Job, body, errOut *os.File) (Result, error) {
	bodyCtx, endBody := context.WithCancel(ctx)
	defer endBody()
	fed := make(chan error, 1)
	go func() { fed <- s.feed(bodyCtx, j, body) }()
	tail := make(chan string, 1)
	go func() { tail <- drain(errOut, s.cfg.Stderr) }()

	done, fedErr := ctx.Done(), error(nil)
	var overdue <-chan time.Time
	for {
		select {
		case f, ok := <-s.in:
			endBody()
			body.Close()
			if fed != nil {
				<-fed // what it says now is our own doing
			}
			_ = errOut.SetReadDeadline(time.Now().Add(tailTime))
			return s.conclude(f, ok, fedErr, <-tail)
		case fedErr = <-fed:
			fed = nil
			if ctx.Err() != nil {
				fedErr = nil // the body ended with ctx
			}
			if fedErr != nil {
				overdue = s.stop(0)
			}
		case <-done:
			done = nil
			var patience time.Duration
			if j.Patience != nil {
				patience = j.Patience(context.Cause(ctx))
			}
			overdue = s.stop(patience)
		case <-overdue:
			overdue = nil
			s.kill()
		}
	}
}

func (s *slot) stop(patience time.Duration) <-chan time.Time {
	if err := s.w.send(frame{Op: opStop, After: int64(patience)}); err != nil {
		s.kill()
	}
	return time.After(patience + answerTime)
}

// feed writes the body to the command, and tells the supervisor when it was complete.
func (s *slot) feed(ctx context.Context, j Job, w *os.File) error {
	if j.Body != nil {
		r, err := j.Body(ctx)
		if err != nil {
			return err
		}
		closing := sync.OnceFunc(func() { r.Close() })
		stop := context.AfterFunc(ctx, closing) // a reader need not look at its context
		src := &source{r: r}
		_, err = io.Copy(struct{ io.Writer }{w}, src)
		stop()
		closing()
		if src.err != nil {
			return src.err
		}
		if err != nil { // a command need not read its input
			w.Close()
			return nil
		}
	}
	w.Close()
	if err := s.w.send(frame{Op: opBody}); err != nil {
		s.kill()
	}
	return nil
}

// source keeps the error of a reader apart from that of the writer.
type source struct {
	r   io.Reader
	err error
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if err != nil && err != io.EOF {
		s.err = err
	}
	return n, err
}

// conclude turns the supervisor's answer into the result; ok is false when it died without one.
func (s *slot) conclude(f frame, ok bool, fedErr error, tail string) (Result, error) {
	res := Result{Why: f.Why, Tail: tail}
	switch {
	case !ok:
		s.broken = true
		return Result{Why: Stopped, Exit: -1, Tail: tail}, fmt.Errorf("%w: it died while the command ran; both were killed", ErrSupervisor)
	case f.Err != "":
		return res, fmt.Errorf("%w: %w", ErrStart, syscall.Errno(f.Errno))
	case fedErr != nil:
		return res, fmt.Errorf("%w: %w", ErrBody, fedErr)
	}
	status := unix.WaitStatus(f.Wait)
	res.Exit = status.ExitStatus()
	if status.Signaled() {
		res.Signal = status.Signal()
	}
	return res, nil
}

// drain copies standard error on and returns the end of it.
func drain(r io.Reader, to io.Writer) string {
	var keep []byte
	buf := make([]byte, 4<<10)
	for {
		n, err := r.Read(buf)
		if n > 0 {
			_, _ = to.Write(buf[:n]) // nothing can be done about a lost log
			keep = append(keep, buf[:n]...)
			if len(keep) > tailSize {
				keep = append(keep[:0], keep[len(keep)-tailSize:]...)
			}
		}
		if err != nil {
			return strings.TrimSpace(strings.ToValidUTF8(string(keep), "\uFFFD"))
		}
	}
}

func bytesOf(ss []string) [][]byte {
	bs := make([][]byte, len(ss))
	for i, s := range ss {
		bs[i] = []byte(s)
	}
	return bs
}

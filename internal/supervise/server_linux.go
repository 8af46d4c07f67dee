package supervise

import (
	"fmt"
	"net"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Main is the life of a supervisor, the process that a [Pool] starts. It returns the exit code.
func Main() int {
	// The kernel sends the parent-death signal of a command when the thread that started it ends: it must not.
	runtime.LockOSThread()
	if err := serve(); err != nil {
		fmt.Fprintln(os.Stderr, "rebalancer: supervisor:", err)
		return 1
	}
	return 0
}

func serve() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become subreaper: %w", err)
	}
	// Caught, not ignored: a command would inherit that. The parent says when to stop.
	signal.Notify(make(chan os.Signal, 1), unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT, unix.SIGPIPE, unix.SIGUSR1, unix.SIGUSR2)
	conn, err := inherited()
	if err != nil {
		return err
	}
	s := &server{
		w: &wire{conn: conn}, in: make(chan order), reaped: make(chan child), quit: make(chan struct{}),
		record: os.Getenv(RecordVariable),
	}
	defer close(s.quit)
	go s.receive()
	s.loop()
	return nil
}

// inherited is the socket to the parent, on standard input: any other number might be that of a file which a command is to
// inherit from whoever started the parent. It stays open there too; a command gets another standard input.
func inherited() (*net.UnixConn, error) {
	const byHand = "this mode is not started by hand: standard input is no socket"
	fd, err := unix.FcntlInt(0, unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", byHand, err)
	}
	f := os.NewFile(uintptr(fd), "parent")
	defer f.Close()
	c, err := net.FileConn(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", byHand, err)
	}
	u, ok := c.(*net.UnixConn)
	if !ok {
		return nil, fmt.Errorf("%s but a %T", byHand, c)
	}
	return u, nil
}

// server runs one command after the other. Its loop owns it; two goroutines feed the loop.
type server struct {
	w      *wire
	in     chan order // closed when the parent is gone
	reaped chan child // from the reaper of the job
	quit   chan struct{}
	gone   bool // the parent
	job    *job
	record string // file to note the ends of commands in, for tests

	mu       sync.Mutex // orders reaping and killing, so that no signal goes to a number that was given to somebody else
	unreaped int        // process id of the command until it is reaped; it leads the group
}

type order struct {
	f   frame
	fds []int
}

// child is one that was reaped; none: no child is left.
type child struct {
	pid    int
	status unix.WaitStatus
	none   bool
}

// job is the command at work.
type job struct {
	pid      int
	status   unix.WaitStatus
	exited   bool // with status
	started  Moment
	until    Moment
	why      Why
	bodyEnd  *os.File      // keeps standard input open
	stopping bool          // SIGTERM was sent; SIGKILL follows at killAt
	killAt   time.Time     //
	killing  bool          // SIGKILL to all until no child is left
	sweepAt  time.Time     // the next one
	pace     time.Duration // until the one after that
}

func (s *server) receive() {
	defer close(s.in)
	for {
		f, fds, err := s.w.receive()
		if err != nil {
			return // hung up, or broken: both mean that nobody answers for the command any more
		}
		select {
		case s.in <- order{f, fds}:
		case <-s.quit:
			return
		}
	}
}

func (s *server) loop() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	in := s.in
	for s.job != nil || !s.gone {
		timer.Reset(s.look())
		select {
		case o, ok := <-in:
			if !ok {
				s.gone, in = true, nil
				s.kill(Orphaned)
				continue
			}
			s.obey(o)
		case c := <-s.reaped:
			s.bury(c)
		case <-timer.C:
		}
	}
}

func (s *server) obey(o order) {
	switch o.f.Op {
	case opRun:
		s.start(o)
	case opTrust:
		if s.job != nil {
			s.job.until = o.f.Until
		}
	case opBody:
		if s.job != nil {
			s.closeBody()
		}
	case opStop:
		s.stop(time.Duration(o.f.After))
	}
}

// start runs the command in a group of its own.
func (s *server) start(o order) {
	if s.job != nil || len(o.fds) != runFiles {
		for _, fd := range o.fds {
			unix.Close(fd)
		}
		s.answer(frame{Op: opDone, Err: "the parent broke the protocol", Errno: uintptr(unix.EPROTO)})
		return
	}
	stdin, bodyEnd, stderr := o.fds[0], os.NewFile(uintptr(o.fds[1]), "body"), o.fds[2]
	now, err := Now()
	if err != nil || now >= o.f.Until {
		unix.Close(stdin)
		unix.Close(stderr)
		bodyEnd.Close()
		s.answer(frame{Op: opDone, Why: Distrusted, Wait: uint32(unix.SIGKILL)})
		return
	}
	pid, err := syscall.ForkExec(o.f.Path, texts(o.f.Args), &syscall.ProcAttr{
		Env:   texts(o.f.Env),
		Files: []uintptr{uintptr(stdin), 1, uintptr(stderr)},
		Sys:   &syscall.SysProcAttr{Setpgid: true, Pdeathsig: unix.SIGKILL},
	})
	unix.Close(stdin)
	unix.Close(stderr)
	if err != nil {
		bodyEnd.Close()
		errno, _ := err.(syscall.Errno)
		s.answer(frame{Op: opDone, Err: err.Error(), Errno: uintptr(errno)})
		return
	}
	s.job = &job{pid: pid, until: o.f.Until, why: Exited, bodyEnd: bodyEnd, started: now}
	s.mu.Lock()
	s.unreaped = pid
	s.mu.Unlock()
	go s.reap()
}

func (s *server) answer(f frame) {
	// When the parent cannot be told, it is gone, and receive says so.
	_ = s.w.send(f)
}

func (s *server) closeBody() {
	if s.job.bodyEnd != nil {
		s.job.bodyEnd.Close()
		s.job.bodyEnd = nil
	}
}

func texts(bs [][]byte) []string {
	ss := make([]string, len(bs))
	for i, b := range bs {
		ss[i] = string(b)
	}
	return ss
}

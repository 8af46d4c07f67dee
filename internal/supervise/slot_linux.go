package supervise

import (
	"crypto/rand"
	"fmt"
	"net"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// markVariable carries a random mark in the environment of a supervisor's commands, by which they are found after it died.
const markVariable = "RB_SUPERVISOR"

// cleanLooks is how often in a row nothing must be found before nothing is there: a process shows no environment
// for an instant while it becomes another program, and a look is not a snapshot.
const cleanLooks = 4

// slot is one supervisor, as its parent sees it.
type slot struct {
	cfg    Config
	cmd    *exec.Cmd
	w      *wire
	mark   string        // "NAME=value"
	in     chan frame    // answers; closed when the supervisor is gone
	ended  chan struct{} // closed when it is reaped, and all that it started is dead
	broken bool          // not to be used again; owned by the goroutine of run
}

func startSlot(cfg Config) (*slot, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("make sockets: %w", err)
	}
	theirs := os.NewFile(uintptr(fds[1]), "supervisor")
	defer theirs.Close()
	ours := os.NewFile(uintptr(fds[0]), "supervisor")
	c, err := net.FileConn(ours)
	ours.Close()
	if err != nil {
		return nil, err
	}
	conn, ok := c.(*net.UnixConn)
	if !ok {
		return nil, fmt.Errorf("socket pair is a %T", c)
	}
	s := &slot{
		cfg: cfg, w: &wire{conn: conn}, mark: markVariable + "=" + rand.Text(),
		in: make(chan frame, 1), ended: make(chan struct{}),
		cmd: &exec.Cmd{
			Path: cfg.Exe, Args: append([]string{"rebalancer"}, cfg.Args...),
			Stdin: theirs, Stdout: cfg.Stdout, Stderr: os.Stderr,
			// A session of its own: what the terminal sends must not reach it before the drain is over.
			SysProcAttr: &syscall.SysProcAttr{Setsid: true},
		},
	}
	if err := s.cmd.Start(); err != nil {
		conn.Close()
		return nil, err
	}
	go s.receive()
	return s, nil
}

// receive hands on the supervisor's answers, and cleans up behind it when it is gone.
func (s *slot) receive() {
	for {
		f, _, err := s.w.receive()
		if err != nil {
			break
		}
		s.in <- f // one at most is under way: a run has one answer
	}
	s.w.conn.Close() // whatever happened: without its parent it kills and ends
	impatient := time.AfterFunc(answerTime, s.kill)
	s.await()
	impatient.Stop()
	close(s.in)
	close(s.ended)
}

// await returns when the supervisor is dead and nothing that it started works any more. It is reaped last, so that
// its number, which is that of the session, is nobody else's before that.
func (s *slot) await() {
	for unix.Waitid(unix.P_PID, s.cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
		continue
	}
	pause, clean := time.Millisecond, 0
	for {
		if killLeft(s.cmd.Process.Pid, s.mark) > 0 {
			clean = 0
		} else if clean++; clean == cleanLooks {
			break
		}
		time.Sleep(pause)
		pause = min(2*pause, 200*time.Millisecond)
	}
	_ = s.cmd.Wait() // how it ended says nothing that is not known
}

// hangUp makes the supervisor kill what it runs, and end.
func (s *slot) hangUp() { s.w.conn.Close() }

// kill ends a supervisor that does not answer. The kernel kills its command.
func (s *slot) kill() { _ = s.cmd.Process.Kill() }

package supervise

import (
	"context"
	"errors"
	"io"
	"syscall"
	"time"
)

// Job is one run of a command.
type Job struct {
	Path string   // of the executable; required
	Args []string // the first is the command's name; required
	Env  []string // the whole environment, "NAME=value"
	// Body opens what the command reads on standard input; nil for nothing.
	Body func(context.Context) (io.ReadCloser, error)
	// Patience is the time between SIGTERM and SIGKILL when ctx ends with that cause. nil or 0: SIGKILL at once.
	Patience func(cause error) time.Duration
}

// Why says what ended a run.
type Why string

const (
	// Exited: the command ended by itself.
	Exited Why = "exited"
	// Stopped: ctx ended, or the body could not be read.
	Stopped Why = "stopped"
	// Distrusted: the moment of trust passed.
	Distrusted Why = "trust ended"
	// Orphaned: the supervisor lost its parent. Only seen in records.
	Orphaned Why = "parent gone"
)

// Result is how a run ended.
type Result struct {
	Why    Why
	Exit   int            // exit status; -1 when a signal ended the command
	Signal syscall.Signal // that ended it; 0 when it exited
	Tail   string         // the last lines that it wrote to standard error
}

var (
	// ErrSupervisor is wrapped by errors of Run when the supervisor could not be started or died; in the latter case
	// what it had started has been killed.
	ErrSupervisor = errors.New("supervisor of the command failed")
	// ErrStart is wrapped by errors of Run when the command could not be started, together with the system's error.
	ErrStart = errors.New("command could not be started")
	// ErrBody is wrapped by errors of Run when the body could not be read; the command was killed before it saw the end of it.
	ErrBody = errors.New("message body could not be read")
	// ErrClosed is returned by Run of a closed Pool.
	ErrClosed = errors.New("pool of supervisors is closed")
	// ErrUnsupported is wrapped where the operating system has no means to keep the guarantee.
	ErrUnsupported = errors.New("running commands needs Linux: other systems cannot promise that no command outlives its right to work")
)

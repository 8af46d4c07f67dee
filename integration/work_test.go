package integration

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// workMode makes the test binary the command that handles a message. It takes a lock of its resource for as long as it or
// anything that it started lives, and notes when it begins and ends.
const workMode = "work"

// note is one line of what commands write down.
type note struct {
	What     string // begin, end, overlap
	Pid      int
	Node     string
	Resource string
	Key      string
	Fence    int64
	At       int64 // nanoseconds of CLOCK_BOOTTIME
}

// work handles a message: its arguments are the folder of the log, how long to work at most, in milliseconds, and for how long
// one in sixteen works.
func work(args []string) int {
	folder, resource := args[0], os.Getenv("RB_RESOURCE")
	most, err := strconv.Atoi(args[1])
	if err != nil {
		return fail(err)
	}
	long, err := time.ParseDuration(args[2])
	if err != nil {
		return fail(err)
	}
	fence, err := strconv.ParseInt(os.Getenv("RB_FENCE"), 10, 64)
	if err != nil {
		return fail(err)
	}
	n := note{Pid: os.Getpid(), Node: os.Getenv("RB_NODE"), Resource: resource, Key: os.Getenv("RB_KEY"), Fence: fence}
	lock, err := os.OpenFile(filepath.Join(folder, resource+".lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fail(err)
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return fail(err, n.write(folder, "overlap"))
	}
	if err := n.write(folder, "begin"); err != nil {
		return fail(err)
	}
	body, err := io.ReadAll(os.Stdin)
	if err != nil || string(body) != "body of "+n.Key {
		return fail(fmt.Errorf("body %q, %v", body, err))
	}
	if n.Pid%4 == 0 { // it leaves something behind that works on the resource, in a session of its own
		c := exec.Command("sleep", "1000")
		c.ExtraFiles, c.SysProcAttr = []*os.File{lock}, &syscall.SysProcAttr{Setsid: true}
		if err := c.Start(); err != nil {
			return fail(err)
		}
	}
	took := time.Duration(n.Pid*7919%most) * time.Millisecond
	if n.Pid%16 < 1 {
		took = long
	}
	time.Sleep(took) // the work
	if err := n.write(folder, "end"); err != nil {
		return fail(err)
	}
	return 0
}

// write appends a line; each is one write.
func (n note) write(folder, what string) error {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return err
	}
	n.What, n.At = what, ts.Nano()
	b, err := json.Marshal(n)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(folder, "notes"), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.Write(append(b, '\n'))
	return err
}

func fail(errs ...error) int {
	fmt.Fprintln(os.Stderr, "work:", errs)
	return 1
}

//go:build linux

package testserver

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// Spec says how a server is started.
type Spec struct {
	Name string   // for messages
	Path string   // of the binary, below Root
	Args []string // without the binary
	Env  []string // in addition to PATH and HOME=Dir
	Dir  string   // it works there, and has its data there or below. Required; below a Root it has the same path in there
	User string   // that it runs as; empty: as the test
	Root string   // run it below this root; empty: no. See func Root
	// Ready tells whether it serves: it is asked until it returns nil. Nil: as soon as it runs.
	Ready func(ctx context.Context) error
	Stop  syscall.Signal // for an orderly end; 0: SIGTERM
	// Patience is how long it may take until it is ready; 0: 60 s.
	Patience time.Duration
}

// Process is a server that runs, or ran. Its methods fail the test when they cannot do what they are for. It is for one goroutine.
type Process struct {
	t      testing.TB
	spec   Spec
	cmd    *exec.Cmd
	ended  chan struct{} // closed when the process has ended
	frozen []int
}

// Start starts a server and waits until it is ready. It is killed at the end of the test.
func Start(t testing.TB, s Spec) *Process {
	t.Helper()
	p := &Process{t: t, spec: s}
	t.Cleanup(func() { // before that of Dir, which was made before
		p.Kill()
		if s.Root != "" {
			_ = os.Remove(filepath.Join(s.Root, s.Dir)) // where it was mounted: empty, or there are no servers left to hurt
		}
	})
	p.start()
	return p
}

func (p *Process) start() {
	p.t.Helper()
	s := p.spec
	out, err := os.OpenFile(p.log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		p.t.Fatal(err)
	}
	defer out.Close()
	cmd := p.command()
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		p.t.Fatalf("testserver: %s: %v", s.Name, err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // how it ended is in its output
		close(ended)
	}()
	p.cmd, p.ended, p.frozen = cmd, ended, nil
	p.waitReady()
}

// command is what runs the server. Below a root it gets a mount namespace of its own, with the devices, the processes and Dir.
func (p *Process) command() *exec.Cmd {
	s := p.spec
	cmd := exec.Command(s.Path, s.Args...)
	attr := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if s.Root != "" {
		const inside = `root=$1 dir=$2 user=$3; shift 3
mkdir -p "$root$dir" && mount --rbind /dev "$root/dev" && mount -t proc proc "$root/proc" && mount --rbind "$dir" "$root$dir" &&
exec chroot ${user:+--userspec="$user"} "$root" "$@"`
		args := append([]string{"-m", "--propagation", "private", "sh", "-c", inside, "sh", s.Root, s.Dir, s.User, s.Path}, s.Args...)
		cmd = exec.Command("unshare", args...)
	} else if s.User != "" {
		attr.Credential = credential(p.t, s.User)
	}
	cmd.SysProcAttr = attr
	cmd.Dir = s.Dir
	cmd.Env = append([]string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=" + s.Dir, "LC_ALL=C"}, s.Env...)
	return cmd
}

func credential(t testing.TB, name string) *syscall.Credential {
	t.Helper()
	uid, gid := IDs(t, name)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}

// IDs are the numbers of a user of this machine and of its group.
func IDs(t testing.TB, name string) (uid, gid int) {
	t.Helper()
	u, err := user.Lookup(name)
	if err != nil {
		Missing(t, "the user "+name)
	}
	uid, _ = strconv.Atoi(u.Uid)
	gid, _ = strconv.Atoi(u.Gid)
	return uid, gid
}

func (p *Process) waitReady() {
	p.t.Helper()
	if p.spec.Ready == nil {
		return
	}
	patience := p.spec.Patience
	if patience == 0 {
		patience = time.Minute
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		once, done := context.WithTimeout(ctx, 5*time.Second)
		err := p.spec.Ready(once)
		done()
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-p.ended:
			p.t.Fatalf("testserver: %s ended before it was ready:\n%s", p.spec.Name, p.last())
		case <-ctx.Done():
			p.t.Fatalf("testserver: %s is not ready after %v: %v\n%s", p.spec.Name, patience, err, p.last())
		}
	}
}

// Pid is that of the server's first process.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

func (p *Process) log() string { return filepath.Join(p.spec.Dir, "testserver.log") }

// Output is what the server printed, all its starts together.
func (p *Process) Output() string {
	b, err := os.ReadFile(p.log())
	if err != nil {
		return fmt.Sprintf("(%v)", err)
	}
	return string(b)
}

// last is the end of Output, for messages.
func (p *Process) last() string {
	out := p.Output()
	return out[max(0, len(out)-4000):]
}

// Running tells whether the server's first process has not ended.
func (p *Process) Running() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

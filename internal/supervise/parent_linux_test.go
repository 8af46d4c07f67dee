package supervise

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/internal/waittest"
)

// parent runs a script under trust for some time and prints how it ended: the process that the tests below kill. Its body
// never ends.
func parent(args []string) int {
	d, err := time.ParseDuration(args[0])
	if err != nil {
		return 1
	}
	p, err := New(Config{Args: []string{"supervise"}})
	if err != nil {
		return 1
	}
	defer p.Close(context.Background())
	m, err := In(time.Now().Add(d))
	if err != nil {
		return 1
	}
	p.Trust(m)
	j := shell(args[1], args[2:]...)
	j.Body = func(context.Context) (io.ReadCloser, error) { r, _ := io.Pipe(); return r, nil }
	res, err := p.Run(context.Background(), j)
	fmt.Printf("%s %v\n", res.Why, err)
	return 0
}

// victim is a parent whose command has started.
type victim struct {
	cmd          *exec.Cmd
	out          *strings.Builder
	command, far int
	completed    string
}

const family = `
setsid sh -c 'trap "" TERM; echo $$ >"$1.far"; exec sleep 1000' sh "$1" &
while ! [ -s "$1.far" ]; do sleep 0.01; done
trap '' TERM HUP INT
echo $$ >"$1"
cat >/dev/null
echo complete >"$1.completed"
while :; do sleep 0.1; done`

func startVictim(t *testing.T, trust time.Duration) *victim {
	t.Helper()
	file := filepath.Join(t.TempDir(), "pid")
	v := &victim{cmd: exec.Command("/proc/self/exe", "parent", trust.String(), family, file), out: &strings.Builder{}, completed: file + ".completed"}
	v.cmd.Stdout, v.cmd.Stderr = v.out, os.Stderr
	v.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := v.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = v.cmd.Process.Kill(); _ = v.cmd.Wait() })
	v.command, v.far = pidIn(t, file), pidIn(t, file+".far")
	return v
}

func (v *victim) gone(t *testing.T) {
	t.Helper()
	waittest.Until(t, "the command and what it started are gone", func() bool { return !works(v.command) && !works(v.far) })
	if _, err := os.Stat(v.completed); err == nil {
		t.Error("the command took the end of its parent for the end of its body")
	}
}

func TestParentKilled(t *testing.T) {
	t.Parallel()
	v := startVictim(t, time.Hour)
	_ = v.cmd.Process.Kill()
	v.gone(t)
}

func TestParentStopped(t *testing.T) {
	t.Parallel()
	began := time.Now()
	v := startVictim(t, 1500*time.Millisecond)
	_ = v.cmd.Process.Signal(syscall.SIGSTOP)
	if !works(v.command) {
		t.Fatal("the command ended before trust did")
	}
	v.gone(t)
	if d := time.Since(began); d < time.Second {
		t.Errorf("gone after %v", d)
	}
	_ = v.cmd.Process.Signal(syscall.SIGCONT)
	_ = v.cmd.Wait()
	if got := v.out.String(); got != "trust ended <nil>\n" {
		t.Errorf("woken, the parent says %q", got)
	}
}

// A Ctrl-C goes to the whole group of the terminal's foreground; commands must see the end of the drain instead.
func TestInterruptOfTheParentsGroup(t *testing.T) {
	t.Parallel()
	v := startVictim(t, time.Hour)
	p, _ := readProcess(v.command)
	own, _ := readProcess(v.cmd.Process.Pid)
	if p.session == own.session {
		t.Error("the command shares its session with the parent: a terminal could reach it")
	}
	if g, err := syscall.Getpgid(v.command); err != nil || g != v.command {
		t.Errorf("the command is in group %d, %v", g, err)
	}
	_ = syscall.Kill(-v.cmd.Process.Pid, syscall.SIGINT) // kills the parent, which does not catch it
	v.gone(t)
}

func TestRecord(t *testing.T) {
	file := filepath.Join(t.TempDir(), "record")
	t.Setenv(RecordVariable, file)
	v := startVictim(t, time.Hour)
	_ = v.cmd.Process.Kill()
	v.gone(t)
	waittest.Until(t, "the end is recorded", func() bool {
		b, _ := os.ReadFile(file)
		return strings.Contains(string(b), fmt.Sprintf(`{"pid":%d,`, v.command)) && strings.Contains(string(b), string(Orphaned))
	})
}

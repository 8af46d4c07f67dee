package supervise

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/rebalancer-go/rebalancer/internal/waittest"
)

// The test binary is also the supervisor, and the parent that tests kill.
func TestMain(m *testing.M) {
	switch {
	case len(os.Args) > 1 && os.Args[1] == "supervise":
		os.Exit(Main())
	case len(os.Args) > 1 && os.Args[1] == "parent":
		os.Exit(parent(os.Args[2:]))
	}
	code := m.Run()
	if err := goleak.Find(); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	if left := children(); code == 0 && len(left) > 0 {
		fmt.Fprintf(os.Stderr, "processes left: %+v\n", left)
		code = 1
	}
	os.Exit(code)
}

func children() []process {
	ps, _ := processes()
	return descendants(ps, os.Getpid())
}

func newPool(t *testing.T) *Pool {
	t.Helper()
	p, err := New(Config{Args: []string{"supervise"}, Stderr: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closePool(t, p) })
	trust(t, p, time.Hour)
	return p
}

func closePool(t *testing.T, p *Pool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := p.Close(ctx); err != nil {
		t.Error(err)
	}
}

func trust(t *testing.T, p *Pool, d time.Duration) {
	t.Helper()
	m, err := In(time.Now().Add(d))
	if err != nil {
		t.Fatal(err)
	}
	p.Trust(m)
}

// shell is a job that runs a script.
func shell(script string, args ...string) Job {
	return Job{Path: "/bin/sh", Args: append([]string{"sh", "-c", script, "sh"}, args...), Env: os.Environ()}
}

func text(s string) func(context.Context) (io.ReadCloser, error) {
	return func(context.Context) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(s)), nil }
}

// pidIn waits for a script to have written a process id and a newline into a file.
func pidIn(t *testing.T, file string) int {
	t.Helper()
	var pid int
	waittest.Until(t, file+" holds a process id", func() bool {
		b, _ := os.ReadFile(file)
		if !bytes.HasSuffix(b, []byte("\n")) {
			return false
		}
		pid, _ = strconv.Atoi(strings.TrimSpace(string(b)))
		return pid > 0
	})
	return pid
}

func works(pid int) bool {
	p, ok := readProcess(pid)
	return ok && !p.dead
}

func TestExitsAndSignals(t *testing.T) {
	t.Parallel()
	p := newPool(t)
	for _, c := range []struct {
		script string
		exit   int
		signal syscall.Signal
	}{{"exit 0", 0, 0}, {"exit 65", 65, 0}, {"exit 7", 7, 0}, {"kill -9 $$", -1, syscall.SIGKILL}, {"kill -15 $$", -1, syscall.SIGTERM}} {
		res, err := p.Run(t.Context(), shell(c.script))
		if err != nil || res.Exit != c.exit || res.Signal != c.signal || res.Why != Exited {
			t.Errorf("%s: %+v, %v", c.script, res, err)
		}
	}
}

func TestArgumentsAndEnvironmentAreBytes(t *testing.T) {
	t.Parallel()
	odd := "a\nb \xff\xfe 'c' \"d\" -e é"
	j := shell(`printf %s "$1" | cmp - "$2" && printf %s "$ODD" | cmp - "$2"`, odd, filepath.Join(t.TempDir(), "want"))
	if err := os.WriteFile(j.Args[5], []byte(odd), 0o600); err != nil {
		t.Fatal(err)
	}
	j.Env = append(j.Env, "ODD="+odd)
	if res, err := newPool(t).Run(t.Context(), j); err != nil || res.Exit != 0 {
		t.Fatalf("%+v, %v", res, err)
	}
}

// What the parent leaves open for its children, like a lock that they are to hold too, reaches the command.
func TestFilesThatAreToBeInherited(t *testing.T) {
	t.Parallel()
	p := newPool(t)
	for range 2 {
		fd, err := unix.Open("/dev/null", unix.O_RDONLY, 0) // not marked close-on-exec
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(fd)
		if res, err := p.Run(t.Context(), shell(`[ "$(readlink /proc/$$/fd/"$1")" = /dev/null ]`, strconv.Itoa(fd))); err != nil || res.Exit != 0 {
			t.Errorf("file %d: %+v, %v", fd, res, err)
		}
		p.idle[0].hangUp() // the next one starts another supervisor
		<-p.idle[0].ended
	}
}

func TestTailOfStandardError(t *testing.T) {
	t.Parallel()
	p := newPool(t)
	res, err := p.Run(t.Context(), shell(`i=0; while [ $i -lt 2000 ]; do echo line $i >&2; i=$((i+1)); done; printf 'the \377 end\n' >&2; exit 3`))
	if err != nil || res.Exit != 3 || !strings.HasSuffix(res.Tail, "line 1999\nthe \uFFFD end") || len(res.Tail) > tailSize+8 {
		t.Fatalf("%v, %+v", err, res)
	}
}

func TestBodies(t *testing.T) {
	t.Parallel()
	p := newPool(t)
	big := func(context.Context) (io.ReadCloser, error) {
		return io.NopCloser(io.LimitReader(zeros{}, 64<<20)), nil
	}
	for _, c := range []struct {
		name, script string
		body         func(context.Context) (io.ReadCloser, error)
	}{
		{"none", `[ "$(wc -c)" -eq 0 ]`, nil},
		{"small", `[ "$(cat)" = hello ]`, text("hello")},
		{"big", `[ "$(wc -c)" -eq 67108864 ]`, big},
		{"big, unread", `exit 0`, big},
		{"big, read in part", `head -c 10 >/dev/null`, big},
		{"big, closed at once", `exec <&-; sleep 0.1`, big},
	} {
		if res, err := p.Run(t.Context(), shell(c.script, t.TempDir())); err != nil || (c.body == nil && res.Exit != 0) {
			t.Errorf("%s: %+v, %v", c.name, res, err)
		}
		j := shell(c.script)
		j.Body = c.body
		if res, err := p.Run(t.Context(), j); err != nil || res.Exit != 0 {
			t.Errorf("%s: %+v, %v", c.name, res, err)
		}
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// A body that breaks off must not look complete.
func TestBrokenBodyIsNeverComplete(t *testing.T) {
	t.Parallel()
	bad := errors.New("changed")
	seen := filepath.Join(t.TempDir(), "seen")
	j := shell(`cat >/dev/null; echo complete >"$1"`, seen)
	j.Body = func(context.Context) (io.ReadCloser, error) {
		return io.NopCloser(io.MultiReader(strings.NewReader("half"), broken{bad})), nil
	}
	_, err := newPool(t).Run(t.Context(), j)
	if !errors.Is(err, ErrBody) || !errors.Is(err, bad) {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(seen); err == nil {
		t.Error("the command saw the end of a body that broke off")
	}
	j.Body = func(context.Context) (io.ReadCloser, error) { return nil, bad }
	if _, err := newPool(t).Run(t.Context(), j); !errors.Is(err, ErrBody) || !errors.Is(err, bad) {
		t.Errorf("got %v", err)
	}
}

type broken struct{ err error }

func (b broken) Read([]byte) (int, error) { return 0, b.err }

func TestCommandsThatCannotStart(t *testing.T) {
	t.Parallel()
	p := newPool(t)
	if _, err := p.Run(t.Context(), Job{Path: "/nonexistent", Args: []string{"x"}}); !errors.Is(err, ErrStart) || !errors.Is(err, syscall.ENOENT) {
		t.Errorf("got %v", err)
	}
	j := shell("true")
	j.Env = append(j.Env, "LONG="+strings.Repeat("x", 1<<20))
	if _, err := p.Run(t.Context(), j); !errors.Is(err, ErrStart) || !errors.Is(err, syscall.E2BIG) {
		t.Errorf("got %v", err)
	}
	j.Env = append(j.Env, "LONG="+strings.Repeat("x", 8<<20))
	if _, err := p.Run(t.Context(), j); !errors.Is(err, ErrStart) || !errors.Is(err, syscall.E2BIG) {
		t.Errorf("got %v", err)
	}
	if res, err := p.Run(t.Context(), shell("exit 4")); err != nil || res.Exit != 4 {
		t.Errorf("afterwards: %+v, %v", res, err)
	}
}

func TestEndOfContext(t *testing.T) {
	t.Parallel()
	p := newPool(t)
	for _, c := range []struct {
		name, script string
		patience     time.Duration
		exit         int
		signal       syscall.Signal
	}{
		{"obeys", `trap 'exit 0' TERM; echo $$ >"$1"; while :; do sleep 0.01; done`, time.Minute, 0, 0},
		{"default action", `echo $$ >"$1"; exec sleep 1000`, time.Minute, -1, syscall.SIGTERM},
		{"ignores", `trap '' TERM; echo $$ >"$1"; while :; do sleep 0.01; done`, 100 * time.Millisecond, -1, syscall.SIGKILL},
		{"stopped", `echo $$ >"$1"; kill -STOP $$; exec sleep 1000`, time.Minute, -1, syscall.SIGTERM},
		{"no patience", `trap 'exit 0' TERM; echo $$ >"$1"; while :; do sleep 0.01; done`, 0, -1, syscall.SIGKILL},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancelCause(t.Context())
			cause := errors.New("enough")
			file := filepath.Join(t.TempDir(), "pid")
			j := shell(c.script, file)
			j.Patience = func(got error) time.Duration {
				if got != cause {
					t.Errorf("cause %v", got)
				}
				return c.patience
			}
			go func() {
				pidIn(t, file)
				cancel(cause)
			}()
			res, err := p.Run(ctx, j)
			if err != nil || res.Why != Stopped || res.Exit != c.exit || res.Signal != c.signal {
				t.Errorf("%+v, %v", res, err)
			}
		})
	}
}

// What a command leaves behind has no right to work on, wherever it went.
func TestNothingIsLeftBehind(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"in the background": `sleep 1000 & echo $! >"$1"`,
		"own session":       `setsid sh -c 'echo $$ >"$1"; exec sleep 1000' sh "$1" & while ! [ -s "$1" ]; do sleep 0.01; done`,
		"twice forked":      `(setsid sh -c '(trap "" TERM HUP; echo $$ >"$1"; sleep 1000) & ' sh "$1" &) ; while ! [ -s "$1" ]; do sleep 0.01; done`,
		"without its mark":  `env -i setsid sh -c 'echo $$ >"$1"; sleep 1000' sh "$1" & while ! [ -s "$1" ]; do sleep 0.01; done`,
	} {
		for _, end := range []string{"exit", "cancel"} {
			t.Run(name+", "+end, func(t *testing.T) {
				t.Parallel()
				file := filepath.Join(t.TempDir(), "pid")
				ctx, cancel := context.WithCancel(t.Context())
				j := shell(script, file)
				if end == "cancel" {
					j.Args[2] += "; sleep 1000"
					go func() { pidIn(t, file); cancel() }()
				}
				defer cancel()
				if res, err := newPool(t).Run(ctx, j); err != nil {
					t.Errorf("%+v, %v", res, err)
				}
				if pid := pidIn(t, file); works(pid) {
					t.Errorf("process %d still runs", pid)
				}
			})
		}
	}
}

func TestTrust(t *testing.T) {
	t.Parallel()
	p, err := New(Config{Args: []string{"supervise"}, Stderr: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	defer closePool(t, p)
	ran := filepath.Join(t.TempDir(), "ran")
	if res, err := p.Run(t.Context(), shell(`echo x >"$1"`, ran)); err != nil || res.Why != Distrusted {
		t.Errorf("without trust: %+v, %v", res, err)
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("a command ran without trust")
	}
	trust(t, p, 300*time.Millisecond)
	began := time.Now()
	res, err := p.Run(t.Context(), shell("exec sleep 1000"))
	if took := time.Since(began); err != nil || res.Why != Distrusted || res.Signal != syscall.SIGKILL || took < 250*time.Millisecond {
		t.Errorf("after %v: %+v, %v", took, res, err)
	}
	// Longer trust lets it work on, shorter trust ends it.
	trust(t, p, 200*time.Millisecond)
	file := filepath.Join(t.TempDir(), "pid")
	go func() {
		pidIn(t, file)
		trust(t, p, time.Hour)
	}()
	if res, err := p.Run(t.Context(), shell(`echo $$ >"$1"; sleep 0.5; exit 9`, file)); err != nil || res.Exit != 9 || res.Why != Exited {
		t.Errorf("trust extended: %+v, %v", res, err)
	}
	file += "2"
	go func() {
		pidIn(t, file)
		p.Trust(0)
	}()
	if res, err := p.Run(t.Context(), shell(`echo $$ >"$1"; exec sleep 1000`, file)); err != nil || res.Why != Distrusted {
		t.Errorf("trust withdrawn: %+v, %v", res, err)
	}
}

// The supervisor is the weakest link: without it everything that it started dies, and its parent learns of it.
func TestSupervisorKilledOrStopped(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGSTOP} {
		for name, script := range map[string]string{
			"command":      `echo $$ >"$1"; exec sleep 1000`,
			"background":   `(trap '' TERM; exec sleep 1000) & echo $! >"$1"; wait`,
			"own session":  `setsid sh -c 'echo $$ >"$1"; exec sleep 1000' sh "$1" & wait`,
			"own session2": `(setsid sh -c '(sh -c "echo \$\$ >\"\$1\"; exec sleep 1000" sh "$1") &' sh "$1" &); sleep 1000`,
		} {
			t.Run(sig.String()+" "+name, func(t *testing.T) {
				t.Parallel()
				p := newPool(t)
				file := filepath.Join(t.TempDir(), "pid")
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				go func() {
					pidIn(t, file)
					p.mu.Lock()
					for s := range p.busy {
						_ = s.cmd.Process.Signal(sig)
					}
					p.mu.Unlock()
					if sig == syscall.SIGSTOP {
						cancel()
					}
				}()
				if _, err := p.Run(ctx, shell(script, file)); !errors.Is(err, ErrSupervisor) {
					t.Errorf("got %v", err)
				}
				if pid := pidIn(t, file); works(pid) {
					t.Errorf("process %d still runs", pid)
				}
				if res, err := p.Run(t.Context(), shell("exit 5")); err != nil || res.Exit != 5 {
					t.Errorf("afterwards: %+v, %v", res, err)
				}
			})
		}
	}
}

func TestClose(t *testing.T) {
	t.Parallel()
	p := newPool(t)
	file := filepath.Join(t.TempDir(), "pid")
	go func() { pidIn(t, file); closePool(t, p) }()
	if _, err := p.Run(t.Context(), shell(`echo $$ >"$1"; exec sleep 1000`, file)); !errors.Is(err, ErrSupervisor) {
		t.Errorf("got %v", err)
	}
	if pid := pidIn(t, file); works(pid) {
		t.Errorf("process %d still runs", pid)
	}
	if _, err := p.Run(t.Context(), shell("exit 0")); !errors.Is(err, ErrClosed) {
		t.Errorf("got %v", err)
	}
}

// Supervisors are used again, and leave neither files nor processes behind.
func TestManyRuns(t *testing.T) {
	t.Parallel()
	p := newPool(t)
	run := func() {
		if res, err := p.Run(t.Context(), Job{Path: "/bin/true", Args: []string{"true"}, Body: text("x")}); err != nil || res.Exit != 0 || res.Why != Exited {
			t.Fatalf("%+v, %v", res, err)
		}
	}
	run()
	first := p.idle[0].cmd.Process.Pid
	files := func() int {
		fds, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", first))
		if err != nil {
			t.Fatal(err)
		}
		return len(fds)
	}
	before := files()
	began := time.Now()
	for range 200 {
		run()
	}
	t.Logf("%v per run", time.Since(began)/200)
	if len(p.idle) != 1 || p.idle[0].cmd.Process.Pid != first {
		t.Error("not the same supervisor")
	}
	if after := files(); after > before {
		t.Errorf("the supervisor had %d open files after its first run and %d after the last", before, after)
	}
	if out, err := exec.Command("ps", "-o", "pid=", "--ppid", strconv.Itoa(first)).Output(); len(out) > 0 {
		t.Errorf("left behind: %s, %v", out, err)
	}
}

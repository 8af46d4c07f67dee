//go:build linux

package testserver

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "echo" {
		os.Exit(echo(os.Args[2]))
	}
	goleak.VerifyTestMain(m, Leftovers()...)
}

// echo is a server that sends back each line.
func echo(addr string) int {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return 1
	}
	for {
		c, err := l.Accept()
		if err != nil {
			return 0
		}
		go io.Copy(c, c)
	}
}

func line(ctx context.Context, addr string) error {
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	defer c.Close()
	end, _ := ctx.Deadline()
	_ = c.SetDeadline(end)
	if _, err = io.WriteString(c, "hello\n"); err == nil {
		_, err = bufio.NewReader(c).ReadString('\n')
	}
	return err
}

// within says how a line fares that has little time.
func within(t *testing.T, addr string, d time.Duration) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	return line(ctx, addr)
}

func newEcho(t *testing.T) (*Process, string) {
	t.Helper()
	dir, addr := Dir(t), "127.0.0.1:"+strconv.Itoa(Port(t))
	// A shell in front of it: faults must reach what the first process started.
	p := Start(t, Spec{Name: "echo", Path: "/bin/sh", Args: []string{"-c", `"$0" echo "$1"; exit $?`, os.Args[0], addr}, Dir: dir,
		Ready: func(ctx context.Context) error { return line(ctx, addr) }})
	return p, addr
}

func TestProcess(t *testing.T) {
	t.Parallel()
	p, addr := newEcho(t)
	if len(p.tree()) < 2 {
		t.Errorf("descendants: %v", p.tree())
	}
	p.Freeze()
	if err := within(t, addr, 200*time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("frozen, a line: %v", err)
	}
	p.Thaw()
	if err := within(t, addr, 5*time.Second); err != nil {
		t.Errorf("thawed, a line: %v", err)
	}
	p.Kill()
	p.Kill()
	if err := within(t, addr, time.Second); err == nil || p.Running() {
		t.Errorf("killed, a line: %v", err)
	}
	p.Restart()
	if err := within(t, addr, 5*time.Second); err != nil {
		t.Errorf("started again, a line: %v", err)
	}
	p.Kill()
}

func TestLink(t *testing.T) {
	t.Parallel()
	_, addr := newEcho(t)
	l := Proxy(t, addr)
	ok := func(what string) {
		t.Helper()
		if err := within(t, l.Addr(), 5*time.Second); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	ok("at first")
	for what, fault := range map[string]func(){"blackhole": l.Blackhole, "deaf": l.Deaf, "cut": l.Cut} {
		fault()
		if err := within(t, l.Addr(), 200*time.Millisecond); err == nil {
			t.Errorf("%s: a line passed", what)
		}
		l.Heal()
		ok("after " + what)
	}
	l.Latency(300 * time.Millisecond)
	began := time.Now()
	ok("late")
	if took := time.Since(began); took < 300*time.Millisecond {
		t.Errorf("a round trip took %v in spite of the latency", took)
	}
	l.Slow(1)
	ok("slow")
}

func TestParents(t *testing.T) {
	t.Parallel()
	pid, parent, err := parents([]byte("12 (a) b (c) S 7 12 12"))
	if pid != 12 || parent != 7 || err != nil {
		t.Errorf("%d %d %v", pid, parent, err)
	}
	for _, s := range []string{"", "12", "12 (a", "12 (a)", "x (a) S 7"} {
		if _, _, err := parents([]byte(s)); err == nil {
			t.Errorf("%q: no error", s)
		}
	}
}

func TestNeed(t *testing.T) {
	t.Parallel()
	if path := Need(t, "", "no-such-server", "sh"); !strings.HasSuffix(path, "/sh") {
		t.Error(path)
	}
	root := t.TempDir()
	if err := os.MkdirAll(root+"/usr/lib/x/17/bin", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(root+"/usr/lib/x/17/bin/db", nil, 0o755); err != nil {
		t.Fatal(err)
	}
	if path := Need(t, root, "/usr/lib/x/*/bin/db"); path != "/usr/lib/x/17/bin/db" {
		t.Error(path)
	}
}

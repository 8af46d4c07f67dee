package integration

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/internal/programtest"
)

// slow writes begin, works until it is told to end or a second has passed, and writes how that was.
const slow = `trap 'echo told >>"$0"; exit 1' TERM; echo begin >>"$0"; i=0; while [ $i -lt 20 ]; do sleep 0.05; i=$((i+1)); done; echo end >>"$0"`

func content(file string) string {
	b, _ := os.ReadFile(file)
	return strings.Join(strings.Fields(string(b)), " ")
}

func begun(t *testing.T, file string) {
	t.Helper()
	eventually(t, "a command has begun", 20*time.Second, func() bool { return strings.HasPrefix(content(file), "begin") })
}

// SIGTERM, and Ctrl-C, which the terminal sends to the whole group, let the command in hand finish.
func TestStopSignals(t *testing.T) {
	t.Parallel()
	for name, send := range map[string]func(p *process){
		"SIGTERM": func(p *process) { p.signal(syscall.SIGTERM) },
		"Ctrl-C":  func(p *process) { _ = syscall.Kill(-p.Process.Pid, syscall.SIGINT) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t, "in")
			p.put("in", "a", "x")
			p.put("in", "b", "x")
			log := filepath.Join(p.log, "slow")
			c := p.consume([]string{"in"}, "--", "sh", "-c", slow, log).start()
			begun(t, log)
			send(c)
			c.ends(0, 10*time.Second)
			if got := content(log); got != "begin end" {
				t.Errorf("worked %q", got)
			}
			if got := strings.Join(p.names("in"), " "); got != "b" {
				t.Errorf("left %q", got)
			}
		})
	}
}

// A second signal ends the program at once, and its command with it.
func TestSecondSignal(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "in")
	p.put("in", "a", "x")
	log := filepath.Join(p.log, "slow")
	c := p.consume([]string{"in"}, "--", "sh", "-c", `echo begin >>"$0"; echo $$ >"$0.pid"; trap '' TERM; while :; do sleep 1; done`, log).start()
	begun(t, log)
	c.signal(syscall.SIGTERM)
	eventually(t, "the first signal is noticed", 10*time.Second, func() bool { return strings.Contains(c.errs.String(), "once more") })
	c.signal(syscall.SIGINT)
	c.ends(1, 2*time.Second)
	eventually(t, "the command is gone", 5*time.Second, func() bool {
		return exec.Command("kill", "-0", content(log+".pid")).Run() != nil
	})
	if got := strings.Join(p.names("in"), " "); got != "a" {
		t.Errorf("left %q", got)
	}
}

// A handler that outlives drain and grace, here one that writes to a pipe which nobody reads, is exit code 5.
func TestStuck(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "in")
	for _, n := range []string{"a", "b", "c"} {
		p.put("in", n, strings.Repeat("x", 60<<10))
	}
	c := p.consume([]string{"in"}, "--drain", "300ms", "--on-success", "move:done")
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	c.Stdout = w
	c.start()
	w.Close()
	eventually(t, "the pipe is full", 20*time.Second, func() bool { return len(p.names("in/done")) == 1 })
	c.signal(syscall.SIGTERM)
	c.ends(5, 15*time.Second)
	if got := strings.Join(p.names("in"), " "); got != "b c" {
		t.Errorf("left %q", got)
	}
}

// Whoever reads the lines goes away: no further message is settled.
func TestReaderGoesAway(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "in")
	p.put("in", "a", "body")
	c := p.consume([]string{"in"}, "--on-success", "move:done")
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.start()
	l, err := bufio.NewReader(out).ReadString('\n')
	var v struct{ Key, Body, Path string }
	if err != nil || json.Unmarshal([]byte(l), &v) != nil || v.Key != "a" || v.Body != "body" || v.Path != filepath.Join(p.root, "in", "a") {
		t.Errorf("%v: %s", err, l)
	}
	out.Close()
	p.put("in", "b", "body")
	c.ends(1, 15*time.Second)
	if got := strings.Join(p.names("in"), " "); got != "b" {
		t.Errorf("left %q", got)
	}
	if !strings.Contains(c.errs.String(), "standard output") {
		t.Errorf("standard error:\n%s", c.errs.String())
	}
}

const anyCode = -2

// output runs the program to its end and returns what it wrote to standard output.
func (p *place) output(code int, args ...string) string {
	p.t.Helper()
	c := p.command(args...)
	var out programtest.Buffer
	c.Stdout = &out
	if got := c.start().exit(15 * time.Second); code != anyCode && got != code {
		p.t.Errorf("%q: exit code %d, want %d:\n%s", args, got, code, c.errs.String())
	}
	return out.String()
}

func TestOperatorsSeeNodes(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "a", "b")
	var nodes []*process
	for _, n := range []string{"one", "two"} {
		nodes = append(nodes, p.consume([]string{"a", "b"}, "--node", n, "--ttl", "2s", "--", "true").start())
	}
	type group struct {
		Coordinator string
		Nodes       []struct {
			Name  string
			Holds int
		}
		Resources []struct {
			Name, State, Owner string
			Fence              int64
		}
	}
	eventually(t, "each node holds one directory", 30*time.Second, func() bool {
		var g group
		_ = json.Unmarshal([]byte(p.output(anyCode, "describe", "g", "-o", "json")), &g) // none at first
		return len(g.Nodes) == 2 && g.Nodes[0].Holds == 1 && g.Nodes[1].Holds == 1 && g.Coordinator != "" &&
			g.Resources[0].Owner != g.Resources[1].Owner && g.Resources[0].State == "held" && g.Resources[0].Fence > 0
	})
	if got := p.output(0, "groups"); got != "g\n" {
		t.Errorf("groups: %q", got)
	}
	p.consume([]string{"a", "b"}, "--ttl", "3s", "--", "true").start().ends(4, 10*time.Second)
	for _, n := range nodes {
		n.signal(syscall.SIGTERM)
	}
	for _, n := range nodes {
		n.ends(0, 10*time.Second)
	}
}

// Without --store a file in the user's state directory is used; looking does not make it.
func TestDefaultStore(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "in")
	state := t.TempDir()
	call := func(args ...string) *process {
		c := p.command(args...)
		c.Env = append(c.Env, "REBALANCER_STORE=", "XDG_STATE_HOME="+state)
		return c.start()
	}
	call("describe", "g").ends(3, 10*time.Second)
	call("create", "g").ends(0, 10*time.Second)
	call("describe", "g").ends(0, 10*time.Second)
	call("describe", "h").ends(3, 10*time.Second)
	if _, err := os.Stat(filepath.Join(state, "rebalancer", "rebalancer.db")); err != nil {
		t.Error(err)
	}
	p.put("in", "a", "x")
	call("consume", "g", "--source", "file://"+p.root, "--resource", "in", "--count", "1", "--", "true").ends(0, 20*time.Second)
}

func TestStoreThatCannotBeOpened(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "in")
	file := strings.TrimPrefix(p.store, "sqlite://")
	if err := os.WriteFile(file, []byte(strings.Repeat("no database ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	c := p.consume([]string{"in"}, "--", "true").start()
	c.ends(1, 20*time.Second)
	if !strings.Contains(c.errs.String(), file) {
		t.Errorf("the message does not name the file:\n%s", c.errs.String())
	}
}

//go:build linux

package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// operator runs commands.
type operator struct {
	*program
	dir string
}

// all runs commands that end with a code.
func (o *operator) all(group string, code int, lines ...string) {
	o.t.Helper()
	for _, line := range lines {
		o.one(group, command{line: line, code: code})
	}
}

// one runs a command, and gives what it wrote.
func (o *operator) one(group string, c command) string {
	o.t.Helper()
	args := strings.Fields(c.line)
	for i, a := range args {
		if a == "G" {
			args[i] = group
		}
	}
	out, errs, code := o.run(args...)
	if code != c.code || !strings.Contains(out+errs, c.says) {
		o.t.Errorf("rebalancer %s: exit %d, want %d and %q\n%s%s", strings.Join(args, " "), code, c.code, c.says, out, errs)
	}
	return out
}

// node starts a node of the group, and returns what stops it as an operator would, if it has not ended, and wants a code of it.
func (o *operator) node(name string) (stop func(code int)) {
	o.t.Helper()
	for _, r := range []string{"a", "b", "c", "d"} {
		if err := os.MkdirAll(filepath.Join(o.dir, r), 0o700); err != nil {
			o.t.Error(err)
		}
	}
	cmd := exec.Command(binary, "consume", "g", "--registered", "--source", "file://"+o.dir, "--node", name, "--ttl", "8s", "--on-success", "keep", "--", "sh", "-c", "echo >>"+filepath.Join(o.dir, "worked"))
	var errs strings.Builder
	cmd.Env, cmd.Stderr = o.env, &errs
	if err := cmd.Start(); err != nil {
		o.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }() // how it ended is looked at
	return func(code int) {
		if code == done {
			_ = cmd.Process.Signal(os.Interrupt)
		}
		select {
		case <-ended:
			if got := cmd.ProcessState.ExitCode(); got != code {
				o.t.Errorf("node %s: exit %d, want %d\n%s", name, got, code, errs.String())
			}
		case <-time.After(time.Minute):
			_ = cmd.Process.Kill()
			o.t.Errorf("node %s does not stop", name)
		}
	}
}

// eventually runs a command until it ends well and says all of this.
func (o *operator) eventually(what, line string, says ...string) {
	o.t.Helper()
	args := strings.Fields(strings.ReplaceAll(line, "G", "g"))
	var out, errs string
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); <-time.After(50 * time.Millisecond) {
		var code int
		out, errs, code = o.run(args...)
		if code == done && !slices.ContainsFunc(says, func(s string) bool { return !strings.Contains(out, s) }) {
			return
		}
	}
	o.t.Error(fmt.Sprintf("gave up waiting until %s", what), out, errs)
}

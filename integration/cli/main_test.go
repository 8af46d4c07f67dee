//go:build linux

package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/internal/programtest"
	"github.com/rebalancer-go/rebalancer/internal/sqlservertest"
	"github.com/rebalancer-go/rebalancer/internal/testserver"
)

// binary is the program under test, built once.
var binary string

var (
	servers   testserver.Keeper
	databases sqlservertest.Maker
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	defer servers.End()
	return programtest.Main(m, &binary)
}

// program is a call with an environment.
type program struct {
	t   *testing.T
	env []string
}

func newProgram(t *testing.T, env ...string) *program {
	return &program{t, append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "AWS_EC2_METADATA_DISABLED=true"}, env...)}
}

// run returns what the program wrote and the code that it ended with.
func (p *program) run(args ...string) (out, errs string, code int) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, args...)
	var stdout, stderr bytes.Buffer
	cmd.Env, cmd.Stdout, cmd.Stderr = p.env, &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		p.t.Fatal(err)
	}
	return stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()
}

// finding is one of doctor's.
type finding struct{ State, About, Check, Text, Do string }

// doctor returns what it found, and fails unless the code says whether anything failed.
func (p *program) doctor(args ...string) []finding {
	p.t.Helper()
	out, errs, code := p.run(append([]string{"doctor", "-o", "json"}, args...)...)
	var got struct {
		OK       bool
		Findings []finding
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		p.t.Fatalf("%q: %v, code %d\n%s%s", args, err, code, out, errs)
	}
	failed := false
	for _, f := range got.Findings {
		failed = failed || f.State == "failed"
	}
	if failed == got.OK || failed != (code == 1) {
		p.t.Errorf("%q: ok %v, code %d\n%s", args, got.OK, code, out)
	}
	return got.Findings
}

// has tells whether there is a finding of this state whose check begins so, and whose text and advice hold a word.
func has(fs []finding, state, check, word string) bool {
	for _, f := range fs {
		if f.State == state && strings.HasPrefix(f.Check, check) && strings.Contains(f.Text+" "+f.Do, word) {
			return true
		}
	}
	return false
}

// well fails when something failed.
func (p *program) well(fs []finding) {
	p.t.Helper()
	for _, f := range fs {
		if f.State == "failed" {
			p.t.Errorf("%+v", f)
		}
	}
}

// want fails unless there is such a finding.
func (p *program) want(fs []finding, state, check, word string) {
	p.t.Helper()
	if !has(fs, state, check, word) {
		p.t.Errorf("no finding %s of %q with %q in %+v", state, check, word, fs)
	}
}

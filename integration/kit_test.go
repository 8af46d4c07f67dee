package integration

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/internal/programtest"
)

var (
	seed = flag.Uint64("seed", 0, "of the random schedules; 0: another one for each run")
	soak = flag.Bool("soak", false, "run the long version of the random schedules")
)

// binary is the program under test, built once.
var binary string

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == workMode {
		os.Exit(work(os.Args[2:]))
	}
	if len(os.Args) > 1 && os.Args[1] == nodeMode {
		os.Exit(node(os.Args[2:]))
	}
	flag.Parse()
	os.Exit(programtest.Main(m, &binary))
}

// random is the chance of one test, and says how to have it again.
func random(t *testing.T) *rand.Rand {
	t.Helper()
	return programtest.Random(t, *seed, func(test string, seed uint64) string {
		return fmt.Sprintf("go test ./integration -run '^%s$' -args -seed=%d -soak=%v", test, seed, *soak)
	})
}

// place is a root of directories, a store and a log, for one test.
type place struct {
	t     *testing.T
	root  string // the source's
	store string // URL
	group string
	log   string // where commands and supervisors write to
}

func newPlace(t *testing.T, resources ...string) *place {
	t.Helper()
	dir := t.TempDir()
	p := &place{t: t, group: "g", root: filepath.Join(dir, "root"), store: "sqlite://" + filepath.Join(dir, "store", "group.db"), log: filepath.Join(dir, "log")}
	for _, d := range append([]string{"store", "log"}, resources...) {
		if d != "store" && d != "log" {
			d = filepath.Join("root", d)
		}
		if err := os.MkdirAll(filepath.Join(dir, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// put makes a file appear at once.
func (p *place) put(resource, name, body string) {
	p.t.Helper()
	tmp := filepath.Join(p.root, resource, "."+name)
	if err := os.WriteFile(tmp, []byte(body), 0o600); err != nil {
		p.t.Fatal(err)
	}
	if err := os.Rename(tmp, filepath.Join(p.root, resource, name)); err != nil {
		p.t.Fatal(err)
	}
}

// names are the files in a directory below the root.
func (p *place) names(dir string) []string {
	es, err := os.ReadDir(filepath.Join(p.root, dir))
	if err != nil && !os.IsNotExist(err) {
		p.t.Fatal(err)
	}
	var names []string
	for _, e := range es {
		if !e.IsDir() && !strings.HasPrefix(e.Name(), ".") {
			names = append(names, e.Name())
		}
	}
	return names
}

// command is a call of the program in a process group of its own, its standard error kept.
func (p *place) command(args ...string) *process {
	c := exec.Command(binary, args...)
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Env = append(os.Environ(), "REBALANCER_STORE="+p.store, "REBALANCER_SUPERVISOR_RECORD="+filepath.Join(p.log, "record"))
	pr := &process{Cmd: c, t: p.t}
	c.Stderr = &pr.errs
	return pr
}

// consume is a node of the group g on the given resources.
func (p *place) consume(resources []string, flagsAndCommand ...string) *process {
	args := []string{"consume", p.group, "--source", "file://" + p.root}
	for _, r := range resources {
		args = append(args, "--resource", r)
	}
	return p.command(append(args, flagsAndCommand...)...)
}

// process is one that the test started.
type process struct {
	*exec.Cmd
	t    *testing.T
	errs programtest.Buffer
}

func (p *process) start() *process {
	p.t.Helper()
	if err := p.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = p.Process.Kill(); _ = p.Wait() })
	return p
}

func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.Process.Signal(s); err != nil {
		p.t.Errorf("signal %v: %v", s, err)
	}
}

// exit waits for the end and returns the exit code, -1 when a signal ended it.
func (p *process) exit(within time.Duration) int {
	p.t.Helper()
	timer := time.AfterFunc(within, func() { _ = p.Process.Kill() })
	_ = p.Wait()
	if !timer.Stop() {
		p.t.Errorf("%v had not ended after %v; its standard error:\n%s", p.Args[1:], within, p.errs.String())
	}
	return p.ProcessState.ExitCode()
}

// ends checks how a process ends.
func (p *process) ends(code int, within time.Duration) {
	p.t.Helper()
	if got := p.exit(within); got != code {
		p.t.Errorf("exit code %d, want %d; its standard error:\n%s", got, code, p.errs.String())
	}
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, patience time.Duration, ok func() bool) {
	t.Helper()
	if !within(patience, ok) {
		t.Fatalf("gave up after %v waiting until %s", patience, what)
	}
}

// within polls a condition, and tells whether it came to hold.
func within(patience time.Duration, ok func() bool) bool {
	for end := time.Now().Add(patience); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

//go:build linux

package files

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/internal/programtest"
)

// crew is a group of processes over one place.
type crew struct {
	t       *testing.T
	cfg     nodeConfig
	ledger  *ledger
	uploads *uploads
	made    int
}

// process is a node.
type process struct {
	c     *crew
	name  string
	cmd   *exec.Cmd
	errs  programtest.Buffer
	ended chan struct{}
}

func newCrew(t *testing.T, name, store string, p place, doneFile string, resources []string) *crew {
	t.Helper()
	cfg := nodeConfig{Group: name, Store: store, Resources: resources, Ledger: t.TempDir(), Place: p}
	if doneFile != "" {
		cfg.DoneFile = "*" + doneFile
	}
	return &crew{t: t, cfg: cfg, ledger: &ledger{folder: cfg.Ledger},
		uploads: &uploads{t: t, place: p, resources: resources, done: doneFile, forgiven: map[string]bool{}}}
}

// join starts a node, which dies where it is told to; "" for nowhere.
func (c *crew) join(dies string) *process {
	c.t.Helper()
	c.made++
	cfg := c.cfg
	cfg.Name = fmt.Sprintf("n%d", c.made)
	arg, err := json.Marshal(cfg)
	if err != nil {
		c.t.Fatal(err)
	}
	p := &process{c: c, name: cfg.Name, cmd: exec.Command(os.Args[0], nodeMode, string(arg)), ended: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), crashAt+"="+dies, "GOMAXPROCS=2")
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	p.cmd.Stderr = &p.errs
	if err := p.cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	go func() {
		_ = p.cmd.Wait() // how it ended is asked for where it matters
		close(p.ended)
	}()
	c.t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.ended
		if c.t.Failed() {
			c.t.Logf("%s:\n%s", p.name, p.errs.Tail(3000))
		}
	})
	return p
}

// kill ends a node as a loss of power would.
func (p *process) kill() {
	p.c.t.Helper()
	_ = p.cmd.Process.Kill() // it may be dead already
	<-p.ended
	p.buried()
}

// buried writes down that a process is dead.
func (p *process) buried() {
	p.c.t.Helper()
	if err := p.c.ledger.write(line{What: "killed", Node: p.name, Pid: p.cmd.Process.Pid}); err != nil {
		p.c.t.Fatal(err)
	}
}

// dies waits for a node that dies by itself, and kills it when it does not within some time. It tells whether it did.
func (p *process) dies(patience time.Duration) bool {
	p.c.t.Helper()
	select {
	case <-p.ended:
		if s, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || s.Signal() != syscall.SIGKILL {
			p.c.t.Errorf("%s ended by itself: %v\n%s", p.name, p.cmd.ProcessState, p.errs.Tail(3000))
		}
		p.buried()
		return true
	case <-time.After(patience):
		p.kill()
		return false
	}
}

// leave ends a node in good order.
func (p *process) leave() {
	p.c.t.Helper()
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(30 * time.Second):
		p.c.t.Errorf("%s did not leave", p.name)
		p.kill()
		return
	}
	if code := p.cmd.ProcessState.ExitCode(); code != 0 {
		p.c.t.Errorf("%s left with %v", p.name, p.cmd.ProcessState)
	}
}

// all waits until everything that was uploaded is handled and gone, and returns what became of it.
func (c *crew) all(patience time.Duration) *account {
	c.t.Helper()
	final, forgiven := c.uploads.finals()
	var a *account
	var left []string
	done := within(patience, func() bool {
		a, left = judge(c.ledger.read(c.t), forgiven), nil
		if len(a.missing(final)) == 0 {
			for _, r := range c.cfg.Resources {
				left = append(left, c.cfg.Place.left(c.t, r)...)
			}
			left = slices.DeleteFunc(left, c.isDoneFile) // one without its file is what a death leaves, and does no harm
		} else {
			c.uploads.sayAgain(a.missing(final))
		}
		return len(a.missing(final)) == 0 && len(left) == 0 || len(a.wrong) > 0
	})
	if !done {
		c.t.Errorf("after %v: not handled %q; not settled %q", patience, a.missing(final), left)
		c.tell(a.missing(final))
	}
	for _, w := range a.wrong {
		c.t.Error(w)
	}
	return a
}

func (c *crew) isDoneFile(name string) bool {
	return c.uploads.done != "" && strings.HasSuffix(name, c.uploads.done)
}

// tell shows what is known of the first of some versions.
func (c *crew) tell(versions []string) {
	c.t.Helper()
	for _, v := range versions[:min(1, len(versions))] {
		for _, l := range c.ledger.read(c.t) {
			if strings.Contains(v, l.Name) && l.Name != "" && strings.HasPrefix(v, l.Resource) {
				c.t.Logf("%+v", l)
			}
		}
		resource, _, _ := strings.Cut(v, "-")
		c.t.Logf("left in %s: %q", resource, c.cfg.Place.left(c.t, resource))
	}
}

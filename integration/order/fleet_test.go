//go:build linux

package order

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/internal/programtest"
	"github.com/rebalancer-go/rebalancer/internal/testserver"
)

// fleet is a group of processes, and what befalls them whatever they work.
type fleet struct {
	t       *testing.T
	rnd     *rand.Rand
	lines   string // what the nodes wrote
	command func(*node) *exec.Cmd
	thaws   func(*node) // a node that was frozen for longer than the ttl goes on; may be nil

	nodes []*node
	made  int
}

// node is a process, with proxies in front of its servers.
type node struct {
	f             *fleet
	name          string
	cmd           *exec.Cmd
	errs          programtest.Buffer
	broker, store *testserver.Link // made by the fleet's command
	ended         chan struct{}
}

func (f *fleet) join() *node {
	f.t.Helper()
	f.made++
	n := &node{f: f, name: fmt.Sprintf("n%d", f.made), ended: make(chan struct{})}
	n.cmd = f.command(n)
	n.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	out, err := os.OpenFile(f.lines, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		f.t.Fatal(err)
	}
	defer out.Close()
	n.cmd.Stdout, n.cmd.Stderr = out, &n.errs
	if err := n.cmd.Start(); err != nil {
		f.t.Fatal(err)
	}
	go func() {
		_ = n.cmd.Wait() // how it ended is in its output, and asked for where it matters
		close(n.ended)
	}()
	f.t.Cleanup(func() {
		n.kill()
		if f.t.Failed() {
			f.t.Logf("%s:\n%s", n.name, n.errs.Tail(4000))
		}
	})
	f.nodes = append(f.nodes, n)
	return n
}

func (n *node) signal(s syscall.Signal) { _ = n.cmd.Process.Signal(s) } // one that has ended needs none

func (n *node) kill() {
	n.signal(syscall.SIGKILL)
	<-n.ended
}

// leave ends a node in good order.
func (n *node) leave() {
	n.f.t.Helper()
	n.signal(syscall.SIGTERM)
	select {
	case <-n.ended:
	case <-time.After(40 * time.Second):
		n.f.t.Errorf("%s did not leave", n.name)
		n.kill()
	}
	if code := n.cmd.ProcessState.ExitCode(); code != 0 {
		n.f.t.Errorf("%s left with code %d", n.name, code)
	}
	n.f.drop(n)
}

func (f *fleet) drop(n *node) {
	for i, m := range f.nodes {
		if m == n {
			f.nodes = append(f.nodes[:i:i], f.nodes[i+1:]...)
			return
		}
	}
}

func (f *fleet) any() *node { return f.nodes[f.rnd.IntN(len(f.nodes))] }

func (f *fleet) pause(from, to time.Duration) {
	time.Sleep(from + time.Duration(f.rnd.Int64N(int64(to-from)))) // the schedule of the faults, not a synchronisation
}

func (f *fleet) kill() string {
	n := f.any()
	n.kill()
	f.drop(n)
	f.pause(0, ttl/2)
	return fmt.Sprintf("%s killed, %s joined", n.name, f.join().name)
}

func (f *fleet) freezeLong() string {
	n := f.any()
	n.signal(syscall.SIGSTOP)
	f.pause(ttl+500*time.Millisecond, ttl+3*time.Second)
	if f.thaws != nil {
		f.thaws(n)
	}
	n.signal(syscall.SIGCONT)
	return n.name + " frozen for longer than the ttl"
}

func (f *fleet) freezeShort() string {
	n := f.any()
	n.signal(syscall.SIGSTOP)
	f.pause(ttl/4, ttl/2)
	n.signal(syscall.SIGCONT)
	return n.name + " frozen for less than the ttl"
}

func (f *fleet) cutBroker() string {
	n := f.any()
	n.broker.Cut()
	f.pause(0, 3*time.Second)
	n.broker.Heal()
	return n.name + " cut off from the broker"
}

func (f *fleet) cutStore() string {
	n := f.any()
	n.store.Cut()
	f.pause(ttl/2, ttl+time.Second)
	n.store.Heal()
	return n.name + " cut off from the store"
}

// silence is what a firewall does: connections stay, and nothing passes.
func (f *fleet) silence() string {
	n := f.any()
	n.broker.Blackhole()
	n.store.Blackhole()
	f.pause(ttl, ttl+2*time.Second)
	n.broker.Heal()
	n.store.Heal()
	return n.name + " alone in the world"
}

// roll replaces all nodes, one after the other.
func (f *fleet) roll() string {
	old := append([]*node(nil), f.nodes...)
	for _, n := range old {
		f.join()
		n.leave()
	}
	return fmt.Sprintf("%d nodes replaced", len(old))
}

// scale makes many nodes, and then few.
func (f *fleet) scale() string {
	for len(f.nodes) < 7 {
		f.join()
	}
	f.pause(time.Second, 3*time.Second)
	for len(f.nodes) > 2 {
		f.any().leave()
	}
	f.pause(time.Second, 3*time.Second)
	for len(f.nodes) < 4 {
		f.join()
	}
	return "from 7 nodes to 2 and back to 4"
}

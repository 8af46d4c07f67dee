//go:build linux

package testserver

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// Kill ends the server and every process that it started at once, as a loss of power of its machine's processes would, and waits for the
// end. A server that has ended is no error.
func (p *Process) Kill() {
	if p.cmd == nil || !p.Running() {
		return
	}
	p.Freeze() // else one that is started meanwhile is missed, and lives on with the server's memory and port in its hands
	for _, pid := range p.frozen {
		_ = syscall.Kill(pid, syscall.SIGKILL) // one that has ended meanwhile is what was wanted
	}
	<-p.ended
	for _, pid := range p.frozen { // a child that still holds the port looks like the next server
		for end := time.Now().Add(10 * time.Second); !gone(pid) && time.Now().Before(end); {
			<-time.After(2 * time.Millisecond)
		}
	}
}

// gone tells whether a process holds nothing any more.
func gone(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return true
	}
	fields := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	return len(fields) == 0 || bytes.Equal(fields[0], []byte("Z")) || bytes.Equal(fields[0], []byte("X")) // nobody has asked for its end yet
}

// Stop ends the server in good order and waits for it. After 30 s it is killed, which fails the test.
func (p *Process) Stop() {
	p.t.Helper()
	if !p.Running() {
		return
	}
	signal := p.spec.Stop
	if signal == 0 {
		signal = syscall.SIGTERM
	}
	_ = syscall.Kill(p.Pid(), signal)
	select {
	case <-p.ended:
	case <-time.After(30 * time.Second):
		p.Kill()
		p.t.Errorf("testserver: %s did not end after signal %v:\n%s", p.spec.Name, signal, p.Output())
	}
}

// Restart starts the server again after Kill or Stop, or kills it first, over the same data and on the same port, and waits until it is ready.
func (p *Process) Restart() {
	p.t.Helper()
	p.Kill()
	p.start()
}

// Freeze stops all processes of the server: connections stay, and nothing answers. Processes that it starts meanwhile are frozen too.
func (p *Process) Freeze() {
	stopped := map[int]bool{}
	for _, pid := range p.frozen {
		stopped[pid] = true
	}
	for more := true; more; { // until no process was started by one that was not frozen yet
		more = false
		for _, pid := range p.tree() {
			if !stopped[pid] && syscall.Kill(pid, syscall.SIGSTOP) == nil {
				stopped[pid], more = true, true
				p.frozen = append(p.frozen, pid)
			}
		}
	}
}

// Thaw lets the server go on after Freeze.
func (p *Process) Thaw() {
	for _, pid := range p.frozen {
		_ = syscall.Kill(pid, syscall.SIGCONT)
	}
	p.frozen = nil
}

// tree is the server's first process and all that descend from it: some start sessions and groups of their own.
func (p *Process) tree() []int {
	children := map[int][]int{}
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			continue // it has ended
		}
		pid, parent, err := parents(b)
		if err == nil {
			children[parent] = append(children[parent], pid)
		}
	}
	all := []int{p.Pid()}
	for i := 0; i < len(all); i++ {
		all = append(all, children[all[i]]...)
	}
	return all
}

// parents reads the process and its parent from /proc/PID/stat. The name in parentheses may hold anything.
func parents(stat []byte) (pid, parent int, err error) {
	open, end := bytes.IndexByte(stat, '('), bytes.LastIndexByte(stat, ')')
	if open < 0 || end < open {
		return 0, 0, fmt.Errorf("not a line of /proc: %q", stat)
	}
	fields := bytes.Fields(stat[end+1:])
	if len(fields) < 2 {
		return 0, 0, fmt.Errorf("not a line of /proc: %q", stat)
	}
	if pid, err = strconv.Atoi(string(bytes.TrimSpace(stat[:open]))); err == nil {
		parent, err = strconv.Atoi(string(fields[1]))
	}
	return pid, parent, err
}

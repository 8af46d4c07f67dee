package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// cast are the processes of the nodes.
type cast struct {
	dir   string
	table *table

	actors []*actor
	killed time.Time // when the kill was sent
	dead   time.Time // when the killed process was gone
	victim string
}

type actor struct {
	name  string
	cmd   *exec.Cmd
	stdin io.Closer
	heard sync.WaitGroup // what the process said has been read
	gone  bool
}

func newCast(dir string, t *table) *cast { return &cast{dir: dir, table: t} }

// start runs this program again as a node.
func (c *cast) start(name string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(c.dir, "group"), 0o755); err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(c.dir, name+".log"))
	if err != nil {
		return err
	}
	defer log.Close() // the process has its own
	a := &actor{name: name, cmd: exec.Command(self, c.dir, name)}
	a.cmd.Stderr = log
	a.stdin, err = a.cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := a.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := a.cmd.Start(); err != nil {
		return err
	}
	c.table.note("%s starts (process %d)", name, a.cmd.Process.Pid)
	a.heard.Go(func() { c.listen(name, out) })
	c.actors = append(c.actors, a)
	return nil
}

// listen takes what a node says about its claims.
func (c *cast) listen(name string, out io.Reader) {
	for lines := bufio.NewScanner(out); lines.Scan(); {
		what, directory, _ := strings.Cut(lines.Text(), " ")
		c.table.tell(name, what, directory)
	}
}

// kill ends a node as a power failure would: the process can do nothing about it.
func (c *cast) kill(name string) error {
	for _, a := range c.actors {
		if a.name != name {
			continue
		}
		select { // in the middle of a file
		case <-c.table.begins(name):
		case <-time.After(patience):
			return fmt.Errorf("%s began no file within %v", name, patience)
		}
		c.table.note("%s is killed (kill -9) in the middle of a file: what it held is free when its session ends, within %v", name, ttl)
		c.killed, c.victim = time.Now(), name
		if err := a.cmd.Process.Kill(); err != nil {
			return err
		}
		a.end()
		c.dead = time.Now()
		c.table.left(name)
	}
	return nil
}

// end waits for a process that is about to end.
func (a *actor) end() error {
	a.gone = true
	a.heard.Wait()
	err := a.cmd.Wait()
	a.stdin.Close()
	return err
}

// leave asks every node to leave, and wants each to end well.
func (c *cast) leave(ctx context.Context) error {
	c.table.note("the others leave (SIGTERM)")
	for _, a := range c.actors {
		if a.gone {
			continue
		}
		if err := a.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			return err
		}
	}
	for _, a := range c.actors {
		if a.gone {
			continue
		}
		hang := time.AfterFunc(patience, func() { _ = a.cmd.Process.Kill() })
		err := a.end()
		hang.Stop()
		if err != nil {
			return fmt.Errorf("%s did not leave well: %w", a.name, err)
		}
	}
	c.table.note("all have left")
	return ctx.Err()
}

// endAll leaves no process behind.
func (c *cast) endAll() {
	for _, a := range c.actors {
		if !a.gone {
			_ = a.cmd.Process.Kill()
			_ = a.end()
		}
	}
}

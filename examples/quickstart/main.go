// Command quickstart shows a group at work, with no server: processes share directories of real files through SQLite. One of
// them is killed with kill -9 in the middle of a file, another joins, and at the end the records that the handlers
// themselves wrote are checked: every file handled, no directory worked by two processes at once. It exits 0 only if that is so.
//
//	go run ./examples/quickstart
//
// node.go is what a program of yours would look like; the rest is the stage around it.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

const (
	ttl        = 2 * time.Second  // a node that crashed is replaced after this
	patience   = 20 * time.Second // for each step of the show
	enjoy      = 2 * time.Second  // between two steps
	everyFile  = 100 * time.Millisecond
	handleTime = 40 * time.Millisecond
)

// directories are the resources.
func directories() []string { return []string{"a", "b", "c", "d", "e", "f"} }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if len(os.Args) == 3 { // started by show, as one of its nodes
		if err := node(ctx, os.Args[1], os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, os.Args[2]+":", err)
			os.Exit(1)
		}
		return
	}
	if err := inTemporary(ctx, show); err != nil {
		fmt.Println("\nFAILED:", err)
		os.Exit(1)
	}
}

// inTemporary runs f over a new folder, which is kept when f fails.
func inTemporary(ctx context.Context, f func(context.Context, string) error) error {
	dir, err := os.MkdirTemp("", "quickstart-")
	if err != nil {
		return err
	}
	if err := f(ctx, dir); err != nil {
		return fmt.Errorf("%w\nsee what is in %s", err, dir)
	}
	return os.RemoveAll(dir)
}

// show is the play: one node, three, one is killed, another joins, all leave.
func show(ctx context.Context, dir string) error {
	for _, d := range directories() {
		if err := os.MkdirAll(filepath.Join(dir, "in", d), 0o755); err != nil {
			return err
		}
	}
	fmt.Printf("Processes share the directories below %s through SQLite. A dash is a directory that nobody holds.\n\n", dir)
	t := newTable()
	cast := newCast(dir, t)
	defer cast.endAll()
	stopWriting := writeFiles(dir, t)
	defer stopWriting()

	if err := acts(ctx, cast, t); err != nil {
		return err
	}
	written := stopWriting()
	t.note("%d files were written; what is left of them is handled", written)
	if err := t.wait(ctx, "every file to be handled", func() bool { return t.handled() >= written && left(dir) == 0 }); err != nil {
		return err
	}
	if err := cast.leave(ctx); err != nil {
		return err
	}
	return summary(dir, cast, written)
}

// acts are what happens to the nodes.
func acts(ctx context.Context, c *cast, t *table) error {
	all := len(directories())
	steps := []struct {
		do    func() error
		until string
		holds func() bool
	}{
		{func() error { return c.start("n1") }, "n1 to hold every directory", func() bool { return t.holds("n1") == all }},
		{func() error { return errors.Join(c.start("n2"), c.start("n3")) }, "three nodes to hold two directories each", func() bool { return t.fair("n1", "n2", "n3") }},
		{func() error { return c.kill("n2") }, "n1 and n3 to take over", func() bool { return t.fair("n1", "n3") }},
		{func() error { return c.start("n4") }, "n4 to get its share", func() bool { return t.fair("n1", "n3", "n4") }},
	}
	for _, s := range steps {
		if err := s.do(); err != nil {
			return err
		}
		if err := t.wait(ctx, s.until, s.holds); err != nil {
			return err
		}
		pause(ctx, enjoy)
	}
	return ctx.Err()
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

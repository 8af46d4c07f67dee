//go:build linux

package file

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/internal/readertest"
)

// TestHelperProcess is no test: it is the other process of TestLockOfAnotherProcess.
func TestHelperProcess(t *testing.T) {
	root := os.Getenv("REBALANCER_TEST_ROOT")
	if root == "" {
		return
	}
	s := newSource(t, quick(root))
	if _, err := s.Open(context.Background(), claim(os.Getenv("REBALANCER_TEST_GROUP"), "in")); err != nil {
		t.Fatal(err)
	}
	os.Stdout.WriteString("open\n")
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n') // until it is killed
}

func TestLockOfAnotherProcess(t *testing.T) {
	t.Parallel()
	top := root(t)
	cmd := exec.Command(os.Args[0], "-test.run=^TestHelperProcess$")
	cmd.Env = append(os.Environ(), "REBALANCER_TEST_ROOT="+top, "REBALANCER_TEST_GROUP=other")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "open\n" {
		_ = cmd.Process.Kill()
		t.Fatalf("the other process said %q, %v", line, err)
	}
	told := func() bool {
		var l logs
		cfg := quick(top)
		cfg.Logger = l.logger()
		r := open(t, newSource(t, cfg))
		defer r.Close(context.Background())
		return strings.Contains(l.String(), "another group")
	}
	if !told() {
		t.Error("another group's process was not noticed")
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if told() {
		t.Error("the lock outlived its process")
	}
}

func TestSecondGroupIsNoticedByTheFirst(t *testing.T) {
	t.Parallel()
	top := root(t)
	var l logs
	cfg := quick(top)
	cfg.Logger = l.logger()
	r := open(t, newSource(t, cfg))
	readertest.Nothing(t, r)
	if l.String() != "" {
		t.Fatalf("told of nobody: %s", l.String())
	}
	same, err := newSource(t, quick(top)).Open(t.Context(), claim("g", "in")) // a hand-over: the old Reader is open still
	if err != nil {
		t.Fatalf("the same resource of the same group: %v", err)
	}
	readertest.Nothing(t, r)
	if l.String() != "" {
		t.Fatalf("told of its own group: %s", l.String())
	}
	_ = same.Close(t.Context())
	if _, err := newSource(t, quick(top)).Open(t.Context(), claim("other", "in")); err != nil {
		t.Fatalf("another group must work on: %v", err)
	}
	deadline := time.Now().Add(10 * time.Second)
	for !strings.Contains(l.String(), "another group") {
		if time.Now().After(deadline) {
			t.Fatal("the first group was not told of the second")
		}
		readertest.Nothing(t, r)
	}
	readertest.Nothing(t, r)
	if n := strings.Count(l.String(), "another group"); n != 1 {
		t.Errorf("told %d times", n)
	}
}

func TestOneDirectoryUnderTwoNames(t *testing.T) {
	t.Parallel()
	top := root(t)
	if err := os.Symlink("in", filepath.Join(top, "alias")); err != nil {
		t.Fatal(err)
	}
	r := open(t, newSource(t, quick(top)))
	other := newSource(t, quick(top))
	if _, err := other.Open(t.Context(), claim("g", "alias")); err == nil || !strings.Contains(err.Error(), "another name") {
		t.Fatalf("Open of the same directory under another name: %v", err)
	}
	readertest.Nothing(t, r) // the first one works on
	if err := r.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := other.Open(t.Context(), claim("g", "alias")); err != nil {
		t.Fatalf("after the first was closed: %v", err)
	}
}

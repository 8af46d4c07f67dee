package main

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/internal/programtest"
)

// The README shows this program, as it is.
func TestReadme(t *testing.T) {
	t.Parallel()
	programtest.Shown(t, "../../README.md", "main.go")
}

const asProgram = "SMALLEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// It does what it says: a file is handled and moved, and a signal ends it well.
func TestRuns(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, d := range []string{"state", "in/eu", "in/us", "in/asia"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "in/us/first.txt"), []byte("42"), 0o644); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	cmd := exec.Command(self)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, append(os.Environ(), asProgram+"=1"), &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := filepath.Join(dir, "in/us/done/first.txt")
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if _, err := os.Stat(done); err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Error("the file was not moved within a minute")
			_ = filepath.WalkDir(dir, func(p string, _ fs.DirEntry, _ error) error { t.Log(p); return nil })
			break
		}
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the program ended with %v", err)
	}
	if !strings.Contains(out.String(), "us: first.txt, fence ") || t.Failed() {
		t.Errorf("it said:\n%s", &out)
	}
}

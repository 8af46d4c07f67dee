package sqlite

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/backends"
)

// hold claims a key under a static name, leaves a child at work, and waits to be killed.
func hold(path string) error {
	s, err := Open(path)
	if err != nil {
		return err
	}
	ctx := context.Background()
	h, err := s.Open(ctx, backends.SessionOptions{Group: "g", Node: "static", TTL: time.Hour})
	if err != nil {
		return err
	}
	r, err := h.Commit(ctx, request(h, backends.Txn{Puts: []backends.Put{{Key: "claim", Bound: true}}}))
	if err != nil || r.Results[0].Err != nil {
		return errors.Join(err, r.Results[0].Err)
	}
	work := exec.Command("sleep", "300")
	if err := work.Start(); err != nil {
		return err
	}
	fmt.Println(work.Process.Pid)
	select {}
}

// An older session ends at once only when its process and all that it left running are gone: not while it is frozen, and not
// while a child of it works.
func TestSupersedeWithAProofOfDeath(t *testing.T) {
	t.Parallel()
	path := tempPath(t)
	s := openStore(t, path) // before the other process: its descriptors are not inherited by this one
	cmd := process(t, "holder", path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	child, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Kill(child, syscall.SIGKILL) }()
	h, err := s.Open(t.Context(), backends.SessionOptions{Group: "g", Node: "static", TTL: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	claim := backends.Txn{Checks: []backends.Check{{Key: "claim"}}, Puts: []backends.Put{{Key: "claim", Bound: true}}}
	stays := func(when string) {
		t.Helper()
		r, err := h.Supersede(t.Context(), "static")
		if err != nil || r.Older != 1 || r.Ended != 0 || r.Left <= 0 {
			t.Fatalf("%s: %+v, %v", when, r, err)
		}
		c, err := h.Commit(t.Context(), request(h, claim))
		if err != nil || !errors.Is(c.Results[0].Err, backends.ErrConflict) {
			t.Fatalf("%s: claimed what the old process holds: %v, %v", when, c.Results, err)
		}
	}
	stays("while it lives")
	if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	stays("while it is frozen")
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); !strings.Contains(fmt.Sprint(err), "killed") {
		t.Fatal(err)
	}
	stays("while its child works")
	if err := syscall.Kill(child, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(20 * time.Second); ; {
		r, err := h.Supersede(t.Context(), "static")
		if err != nil {
			t.Fatal(err)
		}
		if r.Ended == 1 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("nobody works any more, but the session lives: %+v", r)
		}
	}
	mustCommit(t, h, claim)
}

// A proof of another folder, or none, proves nothing.
func TestNoProofOfDeath(t *testing.T) {
	t.Parallel()
	path := tempPath(t)
	for _, name := range []string{"", "x", "1:2", "1:2:3"} {
		if dead(path, name) {
			t.Errorf("%q proves a death", name)
		}
	}
	name, release := newProof(path)
	if name == "" || dead(path, name) {
		t.Fatalf("the proof %q is of somebody dead", name)
	}
	if dead(t.TempDir()+"/store.db", name) {
		t.Error("proved in another folder")
	}
	release()
	release()
	for deadline := time.Now().Add(20 * time.Second); !dead(path, name); { // processes started meanwhile may have inherited it
		if time.Now().After(deadline) {
			t.Fatal("it was released, but proves nothing")
		}
	}
}

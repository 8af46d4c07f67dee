package sqlite

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/internal/waittest"
)

// hold claims a key under a static name, leaves a child at work, and waits to be killed.
func hold(path string) error {
	s, err := Open(path)
	if err != nil {
		return err
	}
	work := exec.Command("sleep", "300") // begun before the session, as by a handler of an earlier one that was lost
	if err := work.Start(); err != nil {
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
	defer func() { _ = cmd.Process.Kill() }()
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
	waittest.Until(t, "the session ended, since nobody works any more", func() bool {
		r, err := h.Supersede(t.Context(), "static")
		if err != nil || r.Older+r.Ended != 1 {
			t.Fatalf("%+v, %v", r, err)
		}
		return r.Ended == 1
	})
	mustCommit(t, h, claim)
}

// A proof of another folder, or none, proves nothing.
func TestNoProofOfDeath(t *testing.T) {
	t.Parallel()
	path := tempPath(t)
	p := openProofs(path)
	for _, name := range []string{"", "x", "1:2", "1:2:3"} {
		if p.dead(name) {
			t.Errorf("%q proves a death", name)
		}
	}
	name, release := p.give(time.Minute)
	kept, giveUp := p.give(time.Hour)
	defer giveUp()
	if name == "" || p.dead(name) {
		t.Fatalf("the proof %q is of somebody dead", name)
	}
	elsewhere := openProofs(t.TempDir() + "/store.db")
	if elsewhere.dead(name) {
		t.Error("proved in another folder")
	}
	elsewhere.close()
	release()
	release()
	waittest.Until(t, "what was released is not held", func() bool { return p.dead(name) })
	if p.dead(kept) {
		t.Error("one byte was released, and another was free")
	}
}

// What the path names by now is another folder: no lock is taken there, which children of before would not hold.
func TestNoProofInAFolderThatWasReplaced(t *testing.T) {
	t.Parallel()
	dir := t.TempDir() + "/folder"
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	p := openProofs(dir + "/store.db")
	defer p.close()
	if err := errors.Join(os.Rename(dir, dir+"2"), os.Mkdir(dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	if name, _ := p.give(time.Minute); name != "" {
		t.Fatalf("a proof in another folder: %s", name)
	}
}

// A store that is closed without its sessions leaves handlers that may still run: nobody takes the process for dead before
// they have ended. Then nothing is kept open.
func TestClosedStoreIsNoProofOfDeath(t *testing.T) {
	t.Parallel()
	path := tempPath(t)
	s := openStore(t, path)
	old, err := s.Open(t.Context(), backends.SessionOptions{Group: "g", Node: "n", TTL: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	other := openSession(t, openStore(t, path))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	end := old.Opened().Time.Add(old.TTL())
	waittest.Until(t, "the session ended", func() bool {
		r, err := other.Supersede(t.Context(), "n")
		if err != nil || r.Ended != 0 || r.Older == 0 && r.Time.Before(end) {
			t.Fatalf("%+v, %v", r, err)
		}
		return r.Older == 0
	})
	waittest.Until(t, "the descriptor was closed", func() bool {
		s.proofs.mu.Lock()
		defer s.proofs.mu.Unlock()
		return s.proofs.fd < 0
	})
	if name, _ := s.proofs.give(time.Minute); name != "" {
		t.Fatalf("a proof of a closed store: %s", name)
	}
}

// A session that ended gives its byte back, whichever way it ended: the locks do not add up.
func TestEndedSessionsGiveTheirProofBack(t *testing.T) {
	t.Parallel()
	s := openStore(t, tempPath(t))
	held := func() int {
		s.proofs.mu.Lock()
		defer s.proofs.mu.Unlock()
		return len(s.proofs.held)
	}
	closed := openSession(t, s)
	lost, err := s.Open(t.Context(), backends.SessionOptions{Group: "g", TTL: time.Second})
	if err != nil || held() != 2 {
		t.Fatalf("%d locks of two sessions, %v", held(), err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Open(ctx, backends.SessionOptions{Group: "g", TTL: time.Second}); err == nil || held() != 2 {
		t.Fatalf("a session that was not opened: %v, %d locks", err, held())
	}
	if err := closed.Close(t.Context()); err != nil || held() != 1 {
		t.Fatalf("%d locks after Close, %v", held(), err)
	}
	<-time.After(lost.TTL() + 50*time.Millisecond)
	if _, err := lost.Renew(t.Context(), backends.RenewRequest{Incarnation: lost.Opened().Incarnation}); !errors.Is(err, backends.ErrSessionLost) {
		t.Fatal(err)
	}
	if held() != 0 {
		t.Fatalf("%d locks after the end of all", held())
	}
}

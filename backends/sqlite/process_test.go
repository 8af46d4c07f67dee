package sqlite

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/backends"
)

// child plays a role in a process of its own.
func child(role string) int {
	path := os.Getenv("REBALANCER_TEST_PATH")
	var err error
	switch role {
	case "racer":
		err = race(path)
	case "parent":
		err = leaveChild(path)
	case "freezer":
		err = freeze(path)
	case "holder":
		err = hold(path)
	case "nobody":
		if os.Getuid() == 0 {
			err = syscall.Setuid(65534)
		}
		if err == nil {
			_, err = Open(path)
		}
		fmt.Println(errors.Is(err, backends.ErrFatal), err)
		return 0
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// race puts absent keys as long as it lives and reports each that it won.
func race(path string) error {
	s, err := Open(path)
	if err != nil {
		return err
	}
	ctx := context.Background()
	h, err := s.Open(ctx, backends.SessionOptions{Group: "g", TTL: time.Hour})
	if err != nil {
		return err
	}
	for i := 0; ; i++ {
		key := strconv.Itoa(i)
		r, err := h.Commit(ctx, request(h, backends.Txn{
			Checks: []backends.Check{{Key: key}}, Puts: []backends.Put{{Key: key, Value: []byte(strconv.Itoa(os.Getpid()))}}}))
		if err != nil {
			return err
		}
		if res := r.Results[0]; res.Err == nil {
			fmt.Println(key)
		} else if !errors.Is(res.Err, backends.ErrConflict) {
			return res.Err
		}
	}
}

// leaveChild opens the store and ends like a process that was killed, its child still at work.
func leaveChild(path string) error {
	if _, err := Open(path); err != nil {
		return err
	}
	work := exec.Command("sleep", "300")
	if err := work.Start(); err != nil {
		return err
	}
	fmt.Println(work.Process.Pid)
	return syscall.Kill(os.Getpid(), syscall.SIGKILL)
}

// Processes race for keys and are killed at random moments: no key has two winners, and what was acknowledged is there.
func TestProcessesRaceAndAreKilled(t *testing.T) {
	t.Parallel()
	path := tempPath(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	var mu sync.Mutex
	won := map[string]string{}
	var wg sync.WaitGroup
	for range 3 {
		delays := []time.Duration{time.Duration(200+rng.IntN(600)) * time.Millisecond, time.Duration(200+rng.IntN(600)) * time.Millisecond}
		wg.Go(func() {
			for _, delay := range delays {
				cmd := process(t, "racer", path)
				out, err := cmd.StdoutPipe()
				if err != nil || cmd.Start() != nil {
					t.Error("cannot start a process", err)
					return
				}
				pid := strconv.Itoa(cmd.Process.Pid)
				kill := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
				for lines, first := bufio.NewScanner(out), true; lines.Scan(); first = false {
					if first { // the machine may be busy
						kill.Reset(delay)
					}
					mu.Lock()
					if other := won[lines.Text()]; other != "" {
						t.Errorf("%s won key %s, and so did %s", pid, lines.Text(), other)
					}
					won[lines.Text()] = pid
					mu.Unlock()
				}
				kill.Stop()
				if err := cmd.Wait(); !strings.Contains(fmt.Sprint(err), "killed") {
					t.Errorf("the process ended by itself: %v", err)
				}
			}
		})
	}
	wg.Wait()
	r, err := openSession(t, openStore(t, path)).Read(t.Context(), backends.ReadRequest{Prefixes: []string{""}})
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]string{}
	for _, e := range r.Entries {
		there[e.Key] = string(e.Value)
	}
	for key, pid := range won {
		if there[key] != pid {
			t.Errorf("key %s: acknowledged to %s, but the file says %q", key, pid, there[key])
		}
	}
	if len(won) < 10 {
		t.Fatalf("only %d keys were won", len(won))
	}
	t.Logf("%d keys won, %d in the file", len(won), len(there))
}

// A child that outlives its parent still works: a file made meanwhile waits the grace. When it is gone, none does.
func TestChildThatOutlivesItsParentHoldsTheProof(t *testing.T) {
	t.Parallel()
	path := tempPath(t)
	cmd := process(t, "parent", path)
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
	grandchild, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	kill := sync.OnceFunc(func() { _ = syscall.Kill(grandchild, syscall.SIGKILL) })
	defer kill()
	if err := cmd.Wait(); !strings.Contains(fmt.Sprint(err), "killed") {
		t.Fatalf("the parent: %v", err)
	}
	remove(t, path)
	since := func() time.Time {
		s, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		return openSession(t, s).Opened().Since
	}
	if since().IsZero() {
		t.Fatal("a file made while a child works is passed off as proof that nobody does")
	}
	kill()
	for deadline := time.Now().Add(20 * time.Second); ; {
		remove(t, path)
		if since().IsZero() {
			return
		}
		if time.Now().After(deadline) { // other processes of this test program may have inherited the lock for a while
			t.Fatal("nobody works any more, but there is no proof of it")
		}
	}
}

func TestReadOnlyFileAndFolder(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "readonly")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := dir + "/store.db"
	s := openStore(t, path)
	mustCommit(t, openSession(t, s), txn("k", nil))
	_ = s.Close()
	for _, modes := range [][2]os.FileMode{{0o777, 0o444}, {0o555, 0o666}} {
		if err := errors.Join(os.Chmod(dir, modes[0]), os.Chmod(path, modes[1])); err != nil {
			t.Fatal(err)
		}
		cmd := process(t, "nobody", path)
		out, err := cmd.StdoutPipe()
		if err != nil || cmd.Start() != nil {
			t.Fatal("cannot start a process", err)
		}
		said, _ := io.ReadAll(out)
		if err := cmd.Wait(); err != nil || !strings.HasPrefix(string(said), "true") || !strings.Contains(string(said), "cannot be written") {
			t.Errorf("folder %v, file %v: %v, %s", modes[0], modes[1], err, said)
		}
	}
	_ = os.Chmod(dir, 0o755)
}

//go:build linux

package testserver

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// The ports that Port gives: below those that the system gives to connections, so that none of them takes one while a server is down.
const (
	firstPort = 10_000
	ports     = 22_000
)

// Port finds a free port of the loopback, and keeps it for this test: no other one, of this process or another, gets it before the test ends. A server
// takes seconds until it listens, and meanwhile many others look for theirs.
func Port(t testing.TB) int {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(os.TempDir(), fmt.Sprintf("rebalancer-test-ports-%d", os.Getuid())), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatalf("testserver: %v", err)
	}
	t.Cleanup(func() { _ = f.Close() })
	for {
		port := firstPort + rand.IntN(ports)
		lock := unix.Flock_t{Type: unix.F_WRLCK, Start: int64(port), Len: 1}
		if err := unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &lock); errors.Is(err, unix.EAGAIN) {
			continue
		} else if err != nil {
			t.Fatalf("testserver: %s: %v", f.Name(), err)
		}
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			_ = l.Close()
			return port
		}
		if !errors.Is(err, syscall.EADDRINUSE) {
			t.Fatal(err)
		}
	}
}

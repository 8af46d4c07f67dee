//go:build linux

package testserver

import "testing"

func TestExitCode(t *testing.T) {
	t.Parallel()
	stop := make(chan struct{})
	defer close(stop)
	go func() { <-stop }()
	if failed, leaks := ExitCode(3, 0), ExitCode(0, 0); failed != 3 || leaks != 1 {
		t.Errorf("%d for tests that failed with 3, %d for those that leave a goroutine, want 3 and 1", failed, leaks)
	}
}

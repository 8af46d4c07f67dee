//go:build linux

package testserver

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestAKilledPostgresLeavesNothing: not in /dev/shm, which is small in a container, nor in the kernel's table of shared memory. Both are for the whole
// machine, and no server of a later test starts when they are full.
func TestAKilledPostgresLeavesNothing(t *testing.T) {
	t.Parallel()
	segment := 0
	t.Run("server", func(t *testing.T) {
		p := StartPostgres(t, 15)
		b, err := os.ReadFile(filepath.Join(p.dir, "data", "postmaster.pid"))
		if err != nil {
			t.Fatal(err)
		}
		key := 0
		if _, err := fmt.Sscan(strings.Split(string(b), "\n")[6], &key, &segment); err != nil {
			t.Fatal(err)
		}
		var about unix.SysvShmDesc
		if _, err := unix.SysvShmCtl(segment, unix.IPC_STAT, &about); err != nil {
			t.Fatalf("segment %d of a server that runs: %v", segment, err)
		}
		maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", p.Pid()))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(maps), "/dev/shm/") {
			t.Errorf("the server has memory in /dev/shm:\n%s", maps)
		}
	}) // killed here
	var about unix.SysvShmDesc
	if _, err := unix.SysvShmCtl(segment, unix.IPC_STAT, &about); err == nil {
		t.Errorf("segment %d is left in the kernel", segment)
	}
}

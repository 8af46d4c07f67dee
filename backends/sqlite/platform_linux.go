package sqlite

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/rebalancer-go/rebalancer/backends"
	"golang.org/x/sys/unix"
)

// networked are file systems whose locks or shared memory do not work between machines, by their magic numbers.
var networked = map[int64]string{
	0x6969: "NFS", 0xff534d42: "CIFS", 0xfe534d42: "SMB", 0x517b: "SMB", 0x65735546: "FUSE", 0x01021997: "9p", 0x5346414f: "AFS",
	0x73757245: "Coda", 0x00c36400: "Ceph", 0x01161970: "GFS2", 0x7461636f: "OCFS2", 0x0bd00bd0: "Lustre", 0x564c: "NCP", 0x47504653: "GPFS",
}

// fileID is what tells one file from another under the same path.
type fileID struct{ dev, ino uint64 }

func (id fileID) String() string { return fmt.Sprintf("%d:%d", id.dev, id.ino) }

func identify(path string) (fileID, error) {
	id, _, err := measure(path)
	return id, err
}

// measure is identify with the size in bytes.
func measure(path string) (fileID, int64, error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return fileID{}, 0, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	return fileID{uint64(st.Dev), st.Ino}, st.Size, nil
}

// missing tells whether there is no file, or an empty one.
func missing(path string) (bool, error) {
	info, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	return info.Size() == 0, nil
}

// checkPlace refuses what cannot work.
func checkPlace(path string) error {
	var fs unix.Statfs_t
	if err := unix.Statfs(filepath.Dir(path), &fs); err != nil {
		return &os.PathError{Op: "statfs", Path: filepath.Dir(path), Err: err}
	}
	if err := refuse(int64(uint32(fs.Type))); err != nil {
		return err
	}
	if err := unix.Access(filepath.Dir(path), unix.W_OK|unix.X_OK); err != nil {
		return fmt.Errorf("%w: the folder cannot be written; give this user the right to: %w", backends.ErrFatal, err)
	}
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return nil // it is yet to be made
	}
	if err := unix.Access(path, unix.R_OK|unix.W_OK); err != nil {
		return fmt.Errorf("%w: the file cannot be written; give this user the right to: %w", backends.ErrFatal, err)
	}
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return fmt.Errorf("%w: it is not a file", backends.ErrFatal)
	case st.Nlink > 1:
		return fmt.Errorf("%w: the file has other hard links, and SQLite needs it to have one name", backends.ErrFatal)
	}
	return nil
}

func refuse(magic int64) error {
	if name := networked[magic]; name != "" {
		return fmt.Errorf("%w: the folder is on a network file system (%s), where SQLite's locks are not reliable; use a local disk",
			backends.ErrFatal, name)
	}
	return nil
}

// sinceBoot is the time since the machine booted, also while it was suspended, in µs: the same in every time namespace.
func sinceBoot() (int64, error) {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return 0, fmt.Errorf("reading the clock since boot: %w", err)
	}
	return ts.Nano()/1000 - namespaceOffset(), nil
}

// namespaceOffset is by how much this process's clock since boot differs from the machine's, in µs.
var namespaceOffset = sync.OnceValue(func() int64 {
	f, err := os.Open("/proc/self/timens_offsets")
	if err != nil {
		return 0 // a kernel without time namespaces
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var s, ns int64
		if n, _ := fmt.Sscanf(lines.Text(), "boottime %d %d", &s, &ns); n == 2 {
			return s*1_000_000 + ns/1000
		}
	}
	return 0
})

// bootID is another one after each boot.
var bootID = sync.OnceValue(func() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(id))
})

// lockShared takes the lock that every process holds for as long as it has the file open.
func lockShared(ctx context.Context, path string) (*os.File, error) {
	for {
		f, err := tryLock(path, unix.LOCK_SH)
		if err != nil || f != nil {
			return f, err
		}
		if err := pause(ctx, path); err != nil {
			return nil, err
		}
	}
}

// lockToMake locks the folder for who makes the file. With proof the lock is exclusive: no other process has a file
// of the folder open. Without, some process has had one open for a second. The lock is nil when the file has been made.
// prove is false for who has one open itself.
func lockToMake(ctx context.Context, path string, prove bool) (lock *os.File, proof bool, err error) {
	before, _ := identify(path)
	wasEmpty, _ := missing(path)
	for over := time.Now().Add(time.Second); prove && time.Now().Before(over); {
		f, err := tryLock(path, unix.LOCK_EX)
		if err != nil || f != nil {
			return f, true, err
		}
		if err := pause(ctx, path); err != nil {
			return nil, false, err
		}
		if empty, err := missing(path); err == nil && !empty {
			if now, err := identify(path); err == nil && (wasEmpty || now != before) {
				return nil, false, nil
			}
		}
	}
	lock, err = lockShared(ctx, path)
	return lock, false, err
}

func pause(ctx context.Context, path string) error {
	select {
	case <-time.After(5 * time.Millisecond):
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting for the lock on the folder of %s: %w", path, ctx.Err())
	}
}

// tryLock locks the folder of path by an open of its own, never by changing a lock that is held. nil: somebody holds it.
func tryLock(path string, how int) (*os.File, error) {
	f, err := os.Open(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
	if err == nil && how == unix.LOCK_SH {
		// Child processes inherit it: one that outlives this process may still work.
		_, err = unix.FcntlInt(f.Fd(), unix.F_SETFD, 0)
	}
	if err == nil {
		return f, nil
	}
	_ = f.Close()
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, nil
	}
	return nil, &os.PathError{Op: "lock", Path: filepath.Dir(path), Err: err}
}

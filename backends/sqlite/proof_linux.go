package sqlite

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"
)

// A session's proof of life is a lock of its own on one byte of the folder, far beyond what anybody else locks. The kernel frees it when
// the last process that has the descriptor is gone: children inherit it, so that a command that outlives
// its parent still counts. It is held until the session was closed, however long that takes, also when the Store is closed before:
// a handler may still run.

// newProof takes the lock and names it; release gives it up. The name is "" when it cannot be had, and then proves nothing.
func newProof(path string) (name string, release func()) {
	dir := filepath.Dir(path)
	id, err := identify(dir)
	if err != nil {
		return "", func() {}
	}
	// Not an *os.File: the lock must not go with an object that nobody refers to.
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return "", func() {}
	}
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	offset := int64(binary.LittleEndian.Uint64(b[:])>>2 | 1<<60)
	lock := unix.Flock_t{Type: unix.F_RDLCK, Start: offset, Len: 1}
	if err := unix.FcntlFlock(uintptr(fd), unix.F_OFD_SETLK, &lock); err != nil {
		_ = unix.Close(fd)
		return "", func() {}
	}
	return fmt.Sprintf("%v:%d", id, offset), sync.OnceFunc(func() { _ = unix.Close(fd) })
}

// dead tells whether nobody holds the lock of that name any more. Not when the folder is another one: then nothing is proved.
func dead(path, name string) bool {
	var was fileID
	var offset int64
	if n, err := fmt.Sscanf(name, "%d:%d:%d", &was.dev, &was.ino, &offset); err != nil || n != 3 {
		return false
	}
	dir := filepath.Dir(path)
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || (fileID{uint64(st.Dev), st.Ino}) != was {
		return false
	}
	lock := unix.Flock_t{Type: unix.F_WRLCK, Start: offset, Len: 1}
	err = unix.FcntlFlock(uintptr(fd), unix.F_OFD_GETLK, &lock)
	return err == nil && lock.Type == unix.F_UNLCK
}

package file

import (
	"hash/fnv"
	"math"
	"os"
	"syscall"
)

// Commands of fcntl for locks that belong to an open file rather than to a process.
const (
	getLock = 36
	setLock = 37
)

// place is the byte of a directory that stands for a resource of a group: the group in the upper half, so that the bytes
// of one group lie together.
func place(group, resource string) (groupStart, at, groupEnd int64) {
	const bits = 31
	hash := func(s string) int64 {
		h := fnv.New64a()
		_, _ = h.Write([]byte(s))
		return int64(h.Sum64() & (1<<bits - 1))
	}
	start := hash(group) << bits
	return start, start | hash(resource), start + 1<<bits
}

// lock puts a shared lock on the byte of the group and resource: nodes of one group may hold it together while a
// resource moves. It is freed when f is closed or the process ends.
func lock(f *os.File, group, resource string) error {
	_, at, _ := place(group, resource)
	return fcntl(f, setLock, &syscall.Flock_t{Type: syscall.F_RDLCK, Start: at, Len: 1})
}

// others looks for locks on other bytes: of the group under another resource name, and of another group.
func others(f *os.File, group, resource string) (sameGroup, otherGroup bool) {
	start, at, end := place(group, resource)
	sameGroup = locked(f, start, at) || locked(f, at+1, end)
	return sameGroup, locked(f, 0, start) || locked(f, end, math.MaxInt64)
}

// locked asks whether an exclusive lock of [from, to) would have to wait for somebody.
func locked(f *os.File, from, to int64) bool {
	if from >= to {
		return false
	}
	l := syscall.Flock_t{Type: syscall.F_WRLCK, Start: from, Len: to - from}
	return fcntl(f, getLock, &l) == nil && l.Type != syscall.F_UNLCK
}

func fcntl(f *os.File, cmd int, l *syscall.Flock_t) error {
	c, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var result error
	if err := c.Control(func(fd uintptr) { result = syscall.FcntlFlock(fd, cmd, l) }); err != nil {
		return err
	}
	return result
}

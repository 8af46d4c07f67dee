package file

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// kernel is how names change on Linux.
func kernel() ways {
	return ways{
		over: func(from *handle, name string, to *handle, as string) error {
			return withDirs(from.self, to.self, func(src, dst int) error { return unix.Renameat(src, name, dst, as) })
		},
		fresh: func(from *handle, name string, to *handle, as string) error {
			return withDirs(from.self, to.self, func(src, dst int) error {
				return unix.Renameat2(src, name, dst, as, unix.RENAME_NOREPLACE)
			})
		},
		link: func(from *handle, name string, to *handle, as string) error {
			return withDirs(from.self, to.self, func(src, dst int) error { return unix.Linkat(src, name, dst, as, 0) })
		},
		unlink: func(h *handle, name string) error { return h.root.Remove(name) },
	}
}

// withDirs runs f with the descriptors of two open directories, which stay open meanwhile.
func withDirs(a, b *os.File, f func(a, b int) error) error {
	ca, err := a.SyscallConn()
	if err != nil {
		return err
	}
	cb, err := b.SyscallConn()
	if err != nil {
		return err
	}
	var inner, result error
	err = ca.Control(func(fa uintptr) {
		inner = cb.Control(func(fb uintptr) { result = f(int(fa), int(fb)) })
	})
	return errors.Join(err, inner, result)
}

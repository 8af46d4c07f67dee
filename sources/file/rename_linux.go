package file

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// rename moves a file between directories and fails with fs.ErrExist rather than overwrite. Where the file system cannot
// do that in one step, a second link to the file takes the new name; where it has no links either, an empty file does.
func rename(from *handle, name string, to *handle, as string) error {
	return withDirs(from.self, to.self, func(src, dst int) error {
		return renameAt(renameAtOnce, src, name, dst, as)
	})
}

type step func(src int, name string, dst int, as string) error

// renameAt tries the ways to rename from the given one on.
func renameAt(first step, src int, name string, dst int, as string) error {
	err := first(src, name, dst, as)
	if unsupported(err) {
		err = renameByLink(src, name, dst, as)
	}
	if unsupported(err) {
		err = renameOverOwn(src, name, dst, as)
	}
	if err != nil {
		return &os.LinkError{Op: "rename", Old: name, New: as, Err: err}
	}
	return nil
}

func renameAtOnce(src int, name string, dst int, as string) error {
	return unix.Renameat2(src, name, dst, as, unix.RENAME_NOREPLACE)
}

func renameByLink(src int, name string, dst int, as string) error {
	if err := unix.Linkat(src, name, dst, as, 0); err != nil {
		return err
	}
	if err := unix.Unlinkat(src, name, 0); err != nil {
		return errors.Join(fmt.Errorf("remove %q after linking: %w", name, err), unix.Unlinkat(dst, as, 0))
	}
	return nil
}

func renameOverOwn(src int, name string, dst int, as string) error {
	fd, err := unix.Openat(dst, as, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	_ = unix.Close(fd)
	if err := unix.Renameat(src, name, dst, as); err != nil {
		return errors.Join(err, unix.Unlinkat(dst, as, 0))
	}
	return nil
}

// unsupported says that the file system cannot do it this way. EPERM is what some answer to a link.
func unsupported(err error) bool {
	for _, e := range []error{unix.EINVAL, unix.ENOSYS, unix.EOPNOTSUPP, unix.EPERM, unix.EMLINK} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
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

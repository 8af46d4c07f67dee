package file

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rebalancer-go/rebalancer/internal/files"
)

// Small files cost little but their system calls, so what is called for each is called directly, and no more than is needed.

// rawFile is an open regular file. A Close that comes during a Read does not wait for it.
type rawFile struct {
	size int64
	at   int64 // of the one reader

	mu     sync.Mutex
	fd     int
	users  int
	closed bool
}

// openFile opens a name of the directory, which may be no link.
func (h *handle) openFile(name string) (files.Content, error) {
	fd := -1
	err := withDir(h.self, func(dir int) (err error) {
		fd, err = unix.Openat(dir, name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0) // a pipe must not block
		return err
	})
	if errors.Is(err, unix.ELOOP) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: errLink}
	}
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return &rawFile{fd: fd}, nil
}

// Read ends where the file ended when it was observed; who reads it compares that with what it is then.
func (f *rawFile) Read(p []byte) (int, error) {
	if !f.use() {
		return 0, fs.ErrClosed
	}
	defer f.unuse()
	if len(p) == 0 {
		return 0, nil
	}
	if f.at == f.size {
		return 0, io.EOF
	}
	for {
		n, err := unix.Read(f.fd, p)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return 0, os.NewSyscallError("read", err)
		case n == 0:
			return 0, io.EOF
		}
		f.at += int64(n)
		return n, nil
	}
}

// Stat observes the open file.
func (f *rawFile) Stat() (files.Info, error) {
	if !f.use() {
		return files.Info{}, fs.ErrClosed
	}
	defer f.unuse()
	var st unix.Stat_t
	for {
		err := unix.Fstat(f.fd, &st)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return files.Info{}, os.NewSyscallError("fstat", err)
		}
		if st.Mode&unix.S_IFMT != unix.S_IFREG {
			return files.Info{}, errNotRegular
		}
		f.size = st.Size
		return infoOf(&st), nil
	}
}

func infoOf(st *unix.Stat_t) files.Info {
	return files.Info{
		Size: st.Size, ModTime: time.Unix(st.Mtim.Unix()), Tag: strconv.FormatUint(st.Ino, 36),
	}
}

func (f *rawFile) use() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return false
	}
	f.users++
	return true
}

func (f *rawFile) unuse() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.users--; f.users == 0 && f.closed {
		_ = unix.Close(f.fd)
	}
}

// Close closes the file, when a Read in progress has ended.
func (f *rawFile) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return fs.ErrClosed
	}
	f.closed = true
	if f.users > 0 {
		return nil
	}
	return os.NewSyscallError("close", unix.Close(f.fd))
}

// observe looks at a name of the directory.
func (h *handle) observe(name string) (files.Info, error) {
	var st unix.Stat_t
	err := withDir(h.self, func(dir int) error {
		for {
			if err := unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != unix.EINTR {
				return err
			}
		}
	})
	if err != nil {
		return files.Info{}, &fs.PathError{Op: "stat", Path: name, Err: err}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return files.Info{}, &fs.PathError{Op: "stat", Path: name, Err: errNotRegular}
	}
	return infoOf(&st), nil
}

// withDir runs f with the descriptor of an open directory, which stays open meanwhile.
func withDir(d *os.File, f func(dir int) error) error {
	c, err := d.SyscallConn()
	if err != nil {
		return err
	}
	var result error
	err = c.Control(func(fd uintptr) { result = f(int(fd)) })
	return errors.Join(err, result)
}

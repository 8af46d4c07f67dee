package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// watchOutput calls gone when nobody reads the pipe or socket f any more: a write would say so, but none may come for long.
// Other files always have a reader. stop ends the watch.
func watchOutput(f *os.File, gone func()) (stop func(), err error) {
	conn, err := f.SyscallConn()
	if err != nil {
		return nil, err
	}
	wake, quit, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = conn.Control(func(fd uintptr) {
			fds := []unix.PollFd{{Fd: int32(fd)}, {Fd: int32(wake.Fd())}} // the end of either is told unasked
			for {
				if _, err := unix.Poll(fds, -1); err != unix.EINTR {
					break
				}
			}
			if fds[1].Revents == 0 && fds[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0 {
				gone()
			}
		})
	}()
	return func() {
		quit.Close()
		<-ended
		wake.Close()
	}, nil
}

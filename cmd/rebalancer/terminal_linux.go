package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// screenOf is the size of the terminal that a file is; not ok when it is none.
func screenOf(f *os.File) (columns, lines int, ok bool) {
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ) //nolint:gosec // a descriptor is small
	if err != nil {
		return 0, 0, false
	}
	return int(size.Col), int(size.Row), true
}

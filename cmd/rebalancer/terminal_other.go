//go:build !linux

package main

import "os"

// screenOf knows no size here: nothing is cut off. A file that is a device is taken for a terminal.
func screenOf(f *os.File) (columns, lines int, ok bool) {
	fi, err := f.Stat()
	return 0, 0, err == nil && fi.Mode()&os.ModeCharDevice != 0
}

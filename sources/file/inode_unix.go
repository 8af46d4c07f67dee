//go:build unix

package file

import (
	"io/fs"
	"strconv"
	"syscall"
)

// inode is the number of a file in its file system.
func inode(fi fs.FileInfo) string {
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		return strconv.FormatUint(uint64(st.Ino), 36)
	}
	return ""
}

// device is the number of the file system that a file is on; 0 when it is not known.
func device(fi fs.FileInfo) uint64 {
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Dev)
	}
	return 0
}

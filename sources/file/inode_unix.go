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

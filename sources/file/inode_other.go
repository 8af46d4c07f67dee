//go:build !unix

package file

import "io/fs"

// inode is not known here: a file's identity is its size and time.
func inode(fs.FileInfo) string { return "" }

func device(fs.FileInfo) uint64 { return 0 }

//go:build !linux

package file

import (
	"os"
	"syscall"

	"github.com/rebalancer-go/rebalancer/internal/files"
)

// openFile opens a name of the directory.
func (h *handle) openFile(name string) (files.Content, error) {
	f, err := h.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe must not block
	if err != nil {
		return nil, err
	}
	return openFile{f}, nil
}

type openFile struct{ *os.File }

// Stat observes the open file.
func (f openFile) Stat() (files.Info, error) {
	fi, err := f.File.Stat()
	if err != nil {
		return files.Info{}, err
	}
	return info(fi), nil
}

// observe looks at a name of the directory.
func (h *handle) observe(name string) (files.Info, error) { return stat(h.root, name) }

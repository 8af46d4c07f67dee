//go:build !linux

package file

import (
	"errors"
	"os"
	"path/filepath"
)

// kernel is how names change on other systems.
func kernel() ways {
	path := func(h *handle, name string) string { return filepath.Join(h.root.Name(), name) }
	return ways{
		over: func(from *handle, name string, to *handle, as string) error {
			return os.Rename(path(from, name), path(to, as))
		},
		fresh: func(*handle, string, *handle, string) error { return errors.ErrUnsupported },
		link: func(from *handle, name string, to *handle, as string) error {
			return os.Link(path(from, name), path(to, as))
		},
		unlink: func(h *handle, name string) error { return h.root.Remove(name) },
	}
}

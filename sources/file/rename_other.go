//go:build !linux

package file

import (
	"os"
	"path/filepath"
)

// rename moves a file between directories and fails with fs.ErrExist rather than overwrite: a second link to the file
// takes the new name.
func rename(from *handle, name string, to *handle, as string) error {
	if err := os.Link(filepath.Join(from.root.Name(), name), filepath.Join(to.root.Name(), as)); err != nil {
		return err
	}
	if err := from.root.Remove(name); err != nil {
		_ = to.root.Remove(as)
		return err
	}
	return nil
}

//go:build !linux

package file

import (
	"errors"
	"os"
)

// lock is not available here: others who work a directory are not noticed.
func lock(*os.File, string, string) error { return errors.ErrUnsupported }

func others(*os.File, string, string) (sameGroup, otherGroup bool) { return false, false }

package file

import (
	"errors"
	"fmt"
	"log/slog"
	"path"
	"path/filepath"
	"strings"

	"github.com/rebalancer-go/rebalancer/internal/files"
	"github.com/rebalancer-go/rebalancer/sources/pickup"
)

// Config says where the directories are, which files in them are messages and what becomes of them. Root and OnSuccess
// are required; the zero value of every other field is a working default.
type Config struct {
	// Root is the directory below which resources are: a resource is the path of a directory, relative to Root ("in",
	// "eu/orders"), or "." for Root itself. Only the files of a directory are its messages, not those of directories in it.
	Root string
	// Policy is what sources of files have in common. OnSuccess is pickup.Delete(), pickup.MoveTo(folder) or pickup.Keep(),
	// OnFailure MoveTo, Keep or none. An absolute folder may be anywhere, also on another device.
	pickup.Policy
}

// parallel is how many files are settled at once: a share answers slowly.
const parallel = 4

// settings are a checked Config.
type settings struct {
	root    string // absolute
	options files.Options
	logger  *slog.Logger
}

// check returns what New needs, or all violations.
func (c Config) check() (settings, error) {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf("file: "+format, args...)) }
	var s settings
	if c.Root == "" {
		bad("Root is empty, must be a directory")
	} else if root, err := filepath.Abs(c.Root); err != nil {
		bad("Root %q cannot be made absolute: %w", c.Root, err)
	} else {
		s.root = root
	}
	options, err := files.FromPolicy(c.Policy, files.Can{
		Rename: true, Keep: true, LocalTags: true, Parallel: parallel,
		Folder: func(folder string) (string, error) { return cleanFolder(s.root, folder) },
	})
	if err != nil {
		errs = append(errs, fmt.Errorf("file: %w", err))
	}
	s.options, s.logger = options, options.Logger
	return s, errors.Join(errs...)
}

func cleanFolder(root, folder string) (string, error) {
	switch {
	case folder == "":
		return "", errors.New("the folder must have a name")
	case strings.ContainsRune(folder, 0):
		return "", errors.New("the folder must not contain a zero byte")
	case filepath.IsAbs(folder):
		folder = filepath.Clean(folder)
		if folder == root {
			return "", errors.New("that is Root, files would come again")
		}
		return folder, nil
	}
	folder = path.Clean(filepath.ToSlash(folder))
	if folder == "." || !filepath.IsLocal(filepath.FromSlash(folder)) {
		return "", errors.New("a relative folder must be inside the directory of the resource")
	}
	return folder, nil
}

package file

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rebalancer-go/rebalancer/internal/files"
)

// Discover lists the directories below the root that match a pattern, sorted. Each part of the pattern between slashes
// matches one part of the path (see path.Match); a part that begins with a wildcard does not match hidden names. Links
// are found only by their full name, and folders to which files are moved are left out. A directory that cannot be read
// is an error, not an empty list.
func (s *Source) Discover(ctx context.Context, pattern string) ([]string, error) {
	clean, err := canonical(pattern)
	if err == nil {
		_, err = path.Match(clean, "")
	}
	if err != nil {
		return nil, fmt.Errorf("file: discover %q: %w", pattern, err)
	}
	top, err := os.OpenRoot(s.root)
	if err != nil {
		return nil, fmt.Errorf("file: discover %q: %w", pattern, err)
	}
	defer top.Close()
	found := []string{"."}
	for part := range strings.SplitSeq(clean, "/") {
		var next []string
		for _, dir := range found {
			below, err := s.below(ctx, top, dir, part)
			if err != nil {
				return nil, fmt.Errorf("file: discover %q: %w", pattern, err)
			}
			next = append(next, below...)
		}
		found = next
	}
	found = slices.DeleteFunc(found, s.isFolder)
	slices.Sort(found)
	return found, nil
}

// below lists the directories in dir whose names match one part of a pattern.
func (s *Source) below(ctx context.Context, top *os.Root, dir, part string) ([]string, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if !strings.ContainsAny(part, `*?[\`) {
		name := path.Join(dir, part)
		fi, err := top.Stat(name)
		if errors.Is(err, fs.ErrNotExist) || err == nil && !fi.IsDir() {
			return nil, nil
		}
		return []string{name}, err
	}
	entries, err := readDir(top, dir)
	if err != nil && !(errors.Is(err, fs.ErrNotExist) && dir != ".") { // one that vanished meanwhile is no error
		return nil, err
	}
	var names []string
	for _, e := range entries {
		hidden := strings.HasPrefix(e.Name(), ".") && !strings.HasPrefix(part, ".")
		if ok, _ := path.Match(part, e.Name()); ok && e.IsDir() && !hidden {
			names = append(names, path.Join(dir, e.Name()))
		}
	}
	return names, nil
}

// readDir takes names that are no UTF-8 too, which fs.FS refuses.
func readDir(top *os.Root, dir string) ([]fs.DirEntry, error) {
	f, err := top.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.ReadDir(-1)
}

// isFolder reports whether a directory is where files of another one are moved.
func (s *Source) isFolder(name string) bool {
	for _, folder := range []files.Folder{s.options.Success, s.options.Failed} {
		if folder == "" {
			continue
		}
		if filepath.IsAbs(string(folder)) {
			if folder.Has(filepath.Join(s.root, filepath.FromSlash(name))) {
				return true
			}
			continue
		}
		for _, rest := range files.Splits(name) {
			if folder.Is(rest) {
				return true
			}
		}
	}
	return false
}

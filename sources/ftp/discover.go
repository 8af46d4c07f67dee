package ftp

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/rebalancer-go/rebalancer/internal/files"
	"github.com/rebalancer-go/rebalancer/sources"
)

// Discover lists the directories below the one in URL that match a pattern, sorted. Each part of the pattern between slashes
// matches one part of the path (see path.Match); a part that begins with a wildcard does not match hidden names. Links are
// found only by their full name, and folders to which files are moved are left out. A directory that cannot be read is an
// error, not an empty list.
func (s *Source) Discover(ctx context.Context, pattern string) ([]string, error) {
	clean, err := canonical(pattern)
	if err == nil {
		_, err = path.Match(clean, "")
	}
	if err != nil {
		return nil, fmt.Errorf("ftp: discover %q: %w", pattern, err)
	}
	var found []string
	err = s.pool.do(ctx, always, func(r remote) error {
		found = []string{"."}
		for part := range strings.SplitSeq(clean, "/") {
			var next []string
			for _, dir := range found {
				below, err := s.below(ctx, r, dir, part)
				if err != nil {
					return err
				}
				next = append(next, below...)
			}
			found = next
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("ftp: discover %q: %w", pattern, err)
	}
	found = slices.DeleteFunc(found, func(name string) bool { return s.isFolder(name) })
	slices.Sort(found)
	return found, nil
}

// below lists the directories in dir whose names match one part of a pattern.
func (s *Source) below(ctx context.Context, r remote, dir, part string) ([]string, error) {
	if !strings.ContainsAny(part, `*?[\`) {
		name := path.Join(dir, part)
		err := s.isDirectory(ctx, r, name)
		if errors.Is(err, sources.ErrGone) {
			return nil, nil
		}
		return []string{name}, err
	}
	var names []string
	err := r.list(ctx, s.at(r, dir), func(page []entry) error {
		for _, e := range page {
			hidden := strings.HasPrefix(e.name, ".") && !strings.HasPrefix(part, ".")
			if ok, _ := path.Match(part, e.name); ok && e.kind == directory && !hidden && usable(e.name) && carries(e.name) {
				names = append(names, path.Join(dir, e.name))
			}
		}
		return nil
	})
	if dir != "." && errors.Is(err, fs.ErrNotExist) { // it vanished meanwhile
		return nil, nil
	}
	return names, err
}

// isFolder reports whether a directory is where files of another one are moved.
func (s *Source) isFolder(name string) bool {
	for _, folder := range []files.Folder{s.options.Success, s.options.Failed} {
		switch {
		case folder == "":
		case !strings.HasPrefix(string(folder), "/"):
			for _, rest := range files.Splits(name) {
				if folder.Is(rest) {
					return true
				}
			}
		case strings.HasPrefix(s.root, "/") && folder.Has(path.Join(s.root, name)):
			return true
		}
	}
	return false
}

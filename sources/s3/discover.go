package s3

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
)

// Discover lists the prefixes below Base that match a pattern and have keys, sorted. Each part of the pattern between slashes matches one part of the
// keys (see path.Match); a part that begins with a wildcard does not match hidden names, and folders to which objects are moved are left out. It lists the
// first level that has a wildcard, then each prefix that matches it, and so on.
func (s *Source) Discover(ctx context.Context, pattern string) ([]string, error) {
	found, err := s.discover(ctx, pattern)
	if err != nil {
		return nil, fmt.Errorf("s3: discover %q: %w", pattern, err)
	}
	return found, nil
}

func (s *Source) discover(ctx context.Context, pattern string) ([]string, error) {
	clean, err := s.canonical(pattern)
	if err == nil {
		_, err = path.Match(clean, "")
	}
	if err != nil {
		return nil, err
	}
	found := []string{"."}
	for part := range strings.SplitSeq(clean, "/") {
		if part == "." {
			break
		}
		var next []string
		for _, name := range found {
			below, err := s.below(ctx, name, part)
			if err != nil {
				return nil, err
			}
			next = append(next, below...)
		}
		found = next
	}
	found = slices.DeleteFunc(found, s.isDestination)
	slices.Sort(found)
	return found, nil
}

// below are the prefixes in another one whose names match one part of a pattern.
func (s *Source) below(ctx context.Context, name, part string) ([]string, error) {
	if !strings.ContainsAny(part, `*?[\`) {
		name = path.Join(name, part)
		n := 0
		err := s.walk(ctx, s.prefix(name), "/", 1, func(p page) error { n = len(p.objects) + len(p.prefixes); return nil })
		if err != nil || n == 0 {
			return nil, err
		}
		return []string{name}, nil
	}
	in := s.prefix(name)
	begin := in + part[:strings.IndexAny(part, `*?[\`)]
	var names []string
	err := s.walk(ctx, begin, "/", 0, func(p page) error {
		for _, prefix := range p.prefixes {
			last := strings.TrimSuffix(strings.TrimPrefix(prefix, in), "/")
			hidden := strings.HasPrefix(last, ".") && !strings.HasPrefix(part, ".")
			if ok, _ := path.Match(part, last); ok && !hidden && checkPath(last) == nil {
				names = append(names, path.Join(name, last))
			}
		}
		return nil
	})
	return names, err
}

// isDestination reports whether a prefix is where objects of another one are moved.
func (s *Source) isDestination(name string) bool {
	parts := strings.Split(name, "/")
	for _, f := range s.folders() {
		if s.rooted(f, strings.TrimSuffix(s.prefix(name), "/")) {
			return true
		}
		for i := range parts {
			if isRelative(f) && f.Has(strings.Join(parts[i:], "/")) {
				return true
			}
		}
	}
	return false
}

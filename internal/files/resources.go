package files

import (
	"fmt"
	"iter"
)

// Canonical makes names canonical, one by one, and refuses two spellings of one. It returns them in their order, how each was given, and all that is
// wrong; kind and what are for the errors, like "ftp" and "directory".
func Canonical(kind, what string, resources []string, canonical func(string) (string, error)) (names []string, given map[string]string, errs []error) {
	given = make(map[string]string, len(resources))
	for _, resource := range resources {
		name, err := canonical(resource)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: resource %q: %w", kind, resource, err))
			continue
		}
		if other, ok := given[name]; ok {
			errs = append(errs, fmt.Errorf("%s: resources %q and %q are one %s; list it once", kind, other, resource, what))
			continue
		}
		given[name] = resource
		names = append(names, name)
	}
	return names, given, errs
}

// Splits are the ways to cut a path in two at a slash.
func Splits(name string) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for i, c := range name {
			if c == '/' && !yield(name[:i], name[i+1:]) {
				return
			}
		}
	}
}

// Within finds the resource for which a directory, named like a resource, is the folder: inside the resource's own directory.
func (f Folder) Within(name string, isResource func(string) bool) (string, bool) {
	for at, rest := range Splits(name) {
		if f.Is(rest) && isResource(at) {
			return at, true
		}
	}
	return ".", f.Is(name) && isResource(".")
}

// Above finds the resource for which a path is the folder, one that has a directory for each resource below it.
func (f Folder) Above(full string, isResource func(string) bool) (string, bool) {
	for at, rest := range Splits(full) {
		if f.Is(at) && isResource(rest) {
			return rest, true
		}
	}
	return ".", f.Is(full) && isResource(".")
}

package s3

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/rebalancer-go/rebalancer/internal/files"
)

// maxKey is the longest key, in bytes, by S3's own limit.
const maxKey = 1024

// Names makes the names canonical: the part of the keys between Config.Base and the name of an object, without a slash at its end. It refuses what begins with
// a slash and what has an empty part, "." or ".." in it, which S3 takes as they are and others do not; a prefix that is listed twice; with
// Config.Subtree one that is inside another; and one that is where objects of another are moved. "." is Base itself.
func (s *Source) Names(resources []string) ([]string, error) {
	names, first, errs := files.Canonical("s3", "prefix", resources, s.canonical)
	for _, name := range names {
		if outer := s.outer(name, first); outer != "" {
			errs = append(errs, fmt.Errorf("s3: resource %q is inside %q: with Subtree its objects would be worked twice", first[name], first[outer]))
		}
		if from := s.destinationOf(name, names); from != "" {
			errs = append(errs, fmt.Errorf("s3: resource %q is where objects of resource %q are moved", first[name], first[from]))
		}
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return names, nil
}

// canonical is the one spelling of a resource.
func (s *Source) canonical(name string) (string, error) {
	if name == "" {
		return "", errors.New("the name is empty; Base itself is \".\"")
	}
	if name == "." || name == "./" {
		return ".", nil
	}
	name = strings.TrimSuffix(name, "/")
	if err := checkPath(name); err != nil {
		return "", err
	}
	if len(s.prefix(name)) >= maxKey {
		return "", fmt.Errorf("no key can be so long: at most %d bytes with Base", maxKey)
	}
	return name, nil
}

// checkPath refuses what would be another prefix for S3 than for those who read paths.
func checkPath(p string) error {
	switch {
	case strings.HasPrefix(p, "/"):
		return errors.New("it begins with a slash")
	case !utf8.ValidString(p):
		return errors.New("it is not UTF-8, as all keys are")
	case strings.ContainsRune(p, 0):
		return errors.New("it contains a zero byte")
	}
	for part := range strings.SplitSeq(p, "/") {
		switch part {
		case "":
			return errors.New("it has an empty part, between two slashes or at its end")
		case ".", "..":
			return fmt.Errorf("it contains the part %q", part)
		}
	}
	return nil
}

// outer is a listed resource that a name is inside of, "" for none.
func (s *Source) outer(name string, listed map[string]string) string {
	if !s.Subtree || name == "." {
		return ""
	}
	for dir := path.Dir(name); ; dir = path.Dir(dir) {
		if _, ok := listed[dir]; ok {
			return dir
		}
		if dir == "." {
			return ""
		}
	}
}

// destinationOf is a listed resource whose objects are moved to where another one is, "" for none.
func (s *Source) destinationOf(name string, listed []string) string {
	for _, other := range listed {
		rest, inside := strings.CutPrefix(s.prefix(name), s.prefix(other))
		for _, f := range s.folders() {
			if isRelative(f) && inside && rest != "" && f.Has(strings.TrimSuffix(rest, "/")) || s.rooted(f, strings.TrimSuffix(s.prefix(name), "/")) {
				return other
			}
		}
	}
	return ""
}

// prefix is what the keys of a resource begin with.
func (s *Source) prefix(resource string) string {
	p := path.Join(s.Base, resource)
	if p == "." || p == "" {
		return ""
	}
	return p + "/"
}

const scheme = "s3://"

// folder checks a folder of MoveTo and returns its one spelling.
func (c *Config) folder(folder string) (string, error) {
	begins, rest := "", strings.TrimSuffix(folder, "/")
	if after, ok := strings.CutPrefix(folder, scheme); ok {
		bucket, in, _ := strings.Cut(strings.TrimSuffix(after, "/"), "/")
		if err := checkBucket(bucket); err != nil {
			return "", fmt.Errorf("the bucket %q: %w", bucket, err)
		}
		if bucket == c.Bucket {
			begins = "/"
		} else if begins = scheme + bucket + "/"; in == "" {
			return begins, nil
		}
		rest = in
	} else if after, ok := strings.CutPrefix(rest, "/"); ok {
		begins, rest = "/", after
	}
	if rest == "" {
		return "", errors.New("the folder must have a name")
	}
	if err := checkPath(rest); err != nil {
		return "", err
	}
	if begins == "/" && rest == c.Base {
		return "", errors.New("that is Base, objects would come again")
	}
	return begins + rest, nil
}

// folders are those to which objects are moved.
func (s *Source) folders() []files.Folder {
	var all []files.Folder
	for _, f := range []files.Folder{s.options.Success, s.options.Failed} {
		if f != "" {
			all = append(all, f)
		}
	}
	return all
}

func isRelative(f files.Folder) bool {
	return !strings.HasPrefix(string(f), "/") && !strings.HasPrefix(string(f), scheme)
}

// rooted reports whether a key is a folder that begins at the root of the bucket, or below it.
func (s *Source) rooted(f files.Folder, key string) bool {
	in, ok := strings.CutPrefix(string(f), "/")
	return ok && files.Folder(in).Has(key)
}

// target is the bucket and the prefix that a folder of a resource means, its time filled in.
func (s *Source) target(resource, folder string) (bucket, prefix string) {
	bucket = s.Bucket
	if after, ok := strings.CutPrefix(folder, scheme); ok {
		bucket, folder, _ = strings.Cut(after, "/")
	} else if after, ok := strings.CutPrefix(folder, "/"); ok {
		folder = after
	} else {
		return bucket, s.prefix(resource) + folder + "/"
	}
	if p := path.Join(folder, resource); p != "." && p != "" {
		prefix = p + "/"
	}
	return bucket, prefix
}

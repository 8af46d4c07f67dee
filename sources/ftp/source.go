package ftp

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/internal/files"
	"github.com/rebalancer-go/rebalancer/sources"
)

// Source opens directories on a server. It implements sources.Source, sources.Lagger and sources.Discoverer.
type Source struct {
	settings
	pool    *pool
	pause   func() // between a check and what it is for; tests change files there
	readers files.Readers[*place]
}

// New checks cfg, all violations at once. It does no I/O: the server need not run yet.
func New(cfg Config) (*Source, error) {
	s, err := cfg.check()
	if err != nil {
		return nil, err
	}
	return &Source{settings: s, pool: newPool(s.dial, s.connections, s.timeout), pause: func() {}}, nil
}

// at is the absolute path of a resource.
func (s *Source) at(r remote, resource string) string {
	if strings.HasPrefix(s.root, "/") {
		return path.Join(s.root, resource)
	}
	return path.Join(r.home(), s.root, resource)
}

// Names makes the names canonical: paths relative to the directory in URL, without "./", "//" and a slash at the end. It
// refuses absolute paths, ".." anywhere, bytes that a path cannot be sent with, a name that is listed twice, and a resource
// that is where another one's worked files go. What only the server knows, such as links and case, it does not see.
func (s *Source) Names(resources []string) ([]string, error) {
	names, first, errs := files.Canonical("ftp", "directory", resources, canonical)
	for _, name := range names {
		if from, ok := s.folderOf(name, func(resource string) bool { return first[resource] != "" }); ok {
			errs = append(errs, fmt.Errorf("ftp: resource %q is where files of resource %q are moved", first[name], first[from]))
		}
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return names, nil
}

// canonical is the one spelling of a resource.
func canonical(name string) (string, error) {
	switch {
	case name == "":
		return "", errors.New("the name is empty; the directory in URL itself is \".\"")
	case !carries(name):
		return "", errors.New("the name holds a zero byte, a line end or the byte 255, with which a path cannot be sent")
	case strings.HasPrefix(name, "/"):
		return "", errors.New("the name is an absolute path, must be relative to the directory in URL")
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == ".." {
			return "", errors.New("the name contains \"..\"")
		}
	}
	return path.Clean(name), nil
}

// folderOf finds the resource whose files are moved into the directory name, as far as that can be told without the server.
func (s *Source) folderOf(name string, isResource func(string) bool) (string, bool) {
	for _, folder := range []files.Folder{s.options.Success, s.options.Failed} {
		from, ok := "", false
		switch {
		case folder == "":
		case !strings.HasPrefix(string(folder), "/"):
			from, ok = folder.Within(name, isResource)
		case strings.HasPrefix(s.root, "/"): // else where the login leads is not known
			from, ok = folder.Above(path.Join(s.root, name), isResource)
		}
		if ok {
			return from, true
		}
	}
	return "", false
}

// Open starts to read a directory. It fails with ErrGone when there is none of that name.
func (s *Source) Open(ctx context.Context, c *rebalancer.Claim) (sources.Reader, error) {
	if name, err := canonical(c.Resource); err != nil || name != c.Resource {
		return nil, fmt.Errorf("ftp: open %q: not a canonical name; pass names through Names", c.Resource)
	}
	err := s.pool.do(ctx, always, func(r remote) error { return s.isDirectory(ctx, r, c.Resource) })
	if err != nil {
		return nil, fmt.Errorf("ftp: open %q: %w", c.Resource, err)
	}
	r, err := s.readers.Open(&place{source: s, resource: c.Resource}, s.options, c)
	if err != nil {
		return nil, fmt.Errorf("ftp: open %q: %w", c.Resource, err)
	}
	return r, nil
}

func (s *Source) isDirectory(ctx context.Context, r remote, resource string) error {
	e, err := r.stat(ctx, s.at(r, resource))
	if errors.Is(err, fs.ErrNotExist) { // or it may not be entered: a listing finds out
		return missing(r.list(ctx, s.at(r, resource), func([]entry) error { return nil }))
	}
	if err != nil {
		return err
	}
	if e.kind == regular {
		return &answer{what: fmt.Sprintf("look at %q", s.at(r, resource)), text: "it is not a directory", err: sources.ErrGone}
	}
	return nil
}

// DeadLetters reports whether OnFailure is set.
func (s *Source) DeadLetters() bool { return s.options.DeadLetters() }

// Lag counts the files of a directory that are messages, those in hand included. It lists the directory.
func (s *Source) Lag(ctx context.Context, resource string) (int64, error) {
	name, err := canonical(resource)
	if err != nil {
		return 0, fmt.Errorf("ftp: lag of %q: %w", resource, err)
	}
	p := &place{source: s, resource: name}
	n, err := s.options.Count(func(each func([]files.Entry) error) error { return p.List(ctx, each) })
	if err != nil {
		return 0, fmt.Errorf("ftp: lag of %q: %w", resource, err)
	}
	return n, nil
}

// Close ends all Readers, whose settlements it waits for, but not longer than a minute, and then all connections; later calls of Open fail with
// ErrClosed. Idempotent.
func (s *Source) Close() error {
	err := s.readers.Close()
	s.pool.close()
	return err
}

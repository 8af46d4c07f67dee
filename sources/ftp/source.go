package ftp

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"path"
	"strings"
	"sync"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/internal/files"
	"github.com/rebalancer-go/rebalancer/sources"
)

// Source opens directories on a server. It implements sources.Source, sources.Lagger and sources.Discoverer.
type Source struct {
	settings
	pool  *pool
	pause func() // between a check and what it is for; tests change files there

	mu      sync.Mutex
	closed  bool
	readers map[*place]*files.Reader
}

// New checks cfg, all violations at once. It does no I/O: the server need not run yet.
func New(cfg Config) (*Source, error) {
	s, err := cfg.check()
	if err != nil {
		return nil, err
	}
	return &Source{settings: s, pool: newPool(s.dial, s.connections), pause: func() {}, readers: map[*place]*files.Reader{}}, nil
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
	var errs []error
	names := make([]string, 0, len(resources))
	first := make(map[string]string, len(resources))
	for _, given := range resources {
		name, err := canonical(given)
		if err != nil {
			errs = append(errs, fmt.Errorf("ftp: resource %q: %w", given, err))
			continue
		}
		if other, ok := first[name]; ok {
			errs = append(errs, fmt.Errorf("ftp: resources %q and %q are one directory; list it once", other, given))
			continue
		}
		first[name] = given
		names = append(names, name)
	}
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
		full := name
		switch {
		case folder == "":
			continue
		case !strings.HasPrefix(string(folder), "/"):
			for at, rest := range splits(name) {
				if folder.Is(rest) && isResource(at) {
					return at, true
				}
			}
		case !strings.HasPrefix(s.root, "/"):
			continue // where the login leads is not known
		default:
			full = path.Join(s.root, name)
			for at, rest := range splits(full) {
				if folder.Is(at) && isResource(rest) {
					return rest, true
				}
			}
		}
		if folder.Is(full) && isResource(".") {
			return ".", true
		}
	}
	return "", false
}

// splits are the ways to cut a path in two at a slash.
func splits(name string) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for i, c := range name {
			if c == '/' && !yield(name[:i], name[i+1:]) {
				return
			}
		}
	}
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
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, fmt.Errorf("ftp: open %q: %w", c.Resource, sources.ErrClosed)
	}
	p := &place{source: s, resource: c.Resource}
	r := files.New(p, s.options, c)
	s.readers[p] = r
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

func (s *Source) forget(p *place) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.readers, p)
}

// DeadLetters reports whether OnFailure is set.
func (s *Source) DeadLetters() bool { return s.options.Failed != "" || s.options.FailedKeep }

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

// Close ends all Readers and all connections; later calls of Open fail with ErrClosed. Idempotent.
func (s *Source) Close() error {
	s.mu.Lock()
	s.closed = true
	readers := make([]*files.Reader, 0, len(s.readers))
	for _, r := range s.readers {
		readers = append(readers, r)
	}
	s.mu.Unlock()
	var errs []error
	for _, r := range readers {
		errs = append(errs, r.Close(context.Background()))
	}
	s.pool.close()
	return errors.Join(errs...)
}

package file

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"sync"
	"syscall"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/internal/files"
	"github.com/rebalancer-go/rebalancer/sources"
)

// pageSize is how many names of a directory are read at once.
const pageSize = 4096

// dir is a resource as a files.Place. It follows its name: when another directory takes the name, that one is worked.
type dir struct {
	source          *Source
	group, resource string

	mu     sync.Mutex // never held during I/O but that of refresh
	cur    *handle
	closed bool
	warned bool // of another group
	doubt  bool // a listing failed: the open directory may be of a share that was mounted anew
	listed bool // whole, since it was opened
}

// handle is one open directory. No path leads out of it.
type handle struct {
	root *os.Root
	self *os.File // carries the lock
	id   fs.FileInfo

	strange bool // it is on another device than at first

	users int  // of dir.mu: calls that are at work in it
	left  bool // of dir.mu: the last of them closes it
}

// open opens a directory below the root, unless the share that it was on is gone.
func (s *Source) open(resource string) (*handle, error) {
	h, err := s.openDir(resource)
	if err != nil {
		return nil, s.missingShare(resource, err)
	}
	if err := s.sameShare(resource, h); err != nil {
		h.close()
		return nil, err
	}
	return h, nil
}

// openDir opens a directory below the root, through links that stay below it.
func (s *Source) openDir(resource string) (*handle, error) {
	top, err := os.OpenRoot(s.root)
	if err != nil {
		return nil, missing(err)
	}
	defer top.Close()
	root, err := top.OpenRoot(resource)
	if err != nil {
		if fi, serr := top.Stat(resource); serr == nil && !fi.IsDir() {
			return nil, fmt.Errorf("%w: it is not a directory", sources.ErrGone)
		}
		return nil, missing(err)
	}
	self, err := root.Open(".")
	if err != nil {
		root.Close()
		return nil, missing(err)
	}
	id, err := self.Stat()
	if err != nil {
		root.Close()
		self.Close()
		return nil, err
	}
	return &handle{root: root, self: self, id: id}, nil
}

// missing says ErrGone for what does not exist or is no directory.
func missing(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return fmt.Errorf("%w: %w", sources.ErrGone, err)
	}
	return err
}

func (h *handle) close() {
	h.root.Close()
	h.self.Close()
}

// refresh makes sure that the open directory is the one that has the name now, and looks for others who work it.
func (d *dir) refresh() error {
	h, err := d.source.open(d.resource)
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		h.close()
		return sources.ErrClosed
	}
	if d.cur != nil && !d.doubt && os.SameFile(d.cur.id, h.id) {
		h.close()
		h = d.cur
	} else if err := lock(h.self, d.group, d.resource); err != nil && d.cur == nil {
		d.source.logger.Debug("directory cannot be locked; others who work it are not noticed",
			"resource", d.resource, "error", err)
	}
	sameGroup, otherGroup := others(h.self, d.group, d.resource)
	if sameGroup {
		if h != d.cur {
			h.close()
		}
		return fmt.Errorf("group %q works this directory under another name on this machine; list it once", d.group)
	}
	if otherGroup && !d.warned {
		d.source.logger.Warn("another group works this directory too: both are given the same files",
			"resource", d.resource, "group", d.group)
	}
	d.warned = otherGroup
	if h != d.cur {
		d.leave()
		d.cur = h
	}
	d.doubt = false
	return nil
}

// handle is the directory that is open now, which stays open until done, also when another one takes its place.
func (d *dir) handle() (*handle, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, sources.ErrClosed
	}
	d.cur.users++
	return d.cur, nil
}

func (d *dir) done(h *handle) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if h.users--; h.users == 0 && h.left {
		h.close()
	}
}

// leave lets go of the open directory, under mu.
func (d *dir) leave() {
	if d.cur == nil {
		return
	}
	if d.cur.left = true; d.cur.users == 0 {
		d.cur.close()
	}
}

// List passes the regular files of the directory.
func (d *dir) List(ctx context.Context, each func(page []files.Entry) error) error {
	if err := d.refresh(); err != nil {
		return err
	}
	h, err := d.handle()
	if err != nil {
		return err
	}
	defer d.done(h)
	taken, err := h.list(ctx, each)
	if err != nil {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.doubt = d.doubt || ctx.Err() == nil // a listing that was called off says nothing of the directory
		return err
	}
	d.mu.Lock()
	patience := takenFor
	if !d.listed { // what is taken now is by an earlier owner: no need to wait for its end
		patience, d.listed = 0, true
	}
	d.mu.Unlock()
	d.restore(h, taken, patience)
	return nil
}

// list passes the regular files and returns those that are taken for a deletion.
func (h *handle) list(ctx context.Context, each func(page []files.Entry) error) (taken []string, err error) {
	f, err := h.root.Open(".")
	if err != nil {
		return nil, missing(err)
	}
	defer f.Close()
	var page []files.Entry
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		some, err := f.ReadDir(pageSize)
		page = page[:0]
		for _, e := range some {
			switch {
			case !e.Type().IsRegular():
			case strings.HasPrefix(e.Name(), takenPrefix):
				taken = append(taken, e.Name())
			default:
				page = append(page, files.Entry{Name: e.Name()})
			}
		}
		if err := each(page); err != nil {
			return nil, err
		}
		if err == io.EOF {
			return taken, nil
		}
		if err != nil {
			return nil, missing(err)
		}
	}
}

// Stat observes a file; what is not a regular one does not exist.
func (d *dir) Stat(_ context.Context, name string) (files.Info, error) {
	h, err := d.handle()
	if err != nil {
		return files.Info{}, err
	}
	defer d.done(h)
	i, err := stat(h.root, name)
	return i, d.unproved(h, name, err)
}

var (
	errNotRegular = fmt.Errorf("it is not a regular file: %w", fs.ErrNotExist)
	errLink       = fmt.Errorf("it is a link: %w", rebalancer.ErrChanged)
)

func stat(root *os.Root, name string) (files.Info, error) {
	fi, err := root.Lstat(name)
	if err != nil {
		return files.Info{}, err
	}
	if !fi.Mode().IsRegular() {
		return files.Info{}, fmt.Errorf("%q: %w", name, errNotRegular)
	}
	return info(fi), nil
}

func info(fi fs.FileInfo) files.Info {
	return files.Info{Size: fi.Size(), ModTime: fi.ModTime(), Tag: inode(fi), Native: fi}
}

// Open opens a file that is the one wanted. A link or a pipe that took its name is not: a link would be followed, but its
// target is another file.
func (d *dir) Open(_ context.Context, name string, want files.Info) (files.Content, error) {
	h, err := d.handle()
	if err != nil {
		return nil, err
	}
	defer d.done(h)
	c, err := h.openFile(name)
	if err != nil {
		return nil, err
	}
	if got, err := c.Stat(); err != nil || !got.Same(want) {
		c.Close()
		if err == nil || errors.Is(err, errNotRegular) {
			err = rebalancer.ErrChanged
		}
		return nil, err
	}
	return c, nil
}

// Remove deletes a file that is the one wanted.
func (d *dir) Remove(_ context.Context, name string, want files.Info) error {
	h, err := d.handle()
	if err != nil {
		return err
	}
	defer d.done(h)
	return d.remove(h, name, want)
}

// Rename gives a file that is the one wanted another name.
func (d *dir) Rename(_ context.Context, name string, want files.Info, as string) error {
	h, err := d.handle()
	if err != nil {
		return err
	}
	defer d.done(h)
	return d.moveTaken(h, name, want, h, as)
}

// is checks that a name has the file that is wanted.
func (h *handle) is(name string, want files.Info) error {
	got, err := h.observe(name)
	if err != nil {
		return err
	}
	if !got.Same(want) {
		return rebalancer.ErrChanged
	}
	return nil
}

// Close lets go of the directory and its lock.
func (d *dir) Close() error {
	d.release()
	d.source.readers.Forget(d)
	return nil
}

func (d *dir) release() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.closed {
		d.closed = true
		d.leave()
	}
}

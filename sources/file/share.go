package file

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/rebalancer-go/rebalancer/sources"
)

// A share that is gone must not look like an empty or a missing directory: below its mount point there is then what was
// there before the mount, mostly an empty directory. The device of a directory tells. A directory that is on another
// device than before is believed when there is something in it; a missing one is believed when what is above it is
// on the device where it was.

// errShare says that a share seems to be gone.
type errShare struct{ what string }

func (e *errShare) Error() string {
	return e.what + "; the share is not mounted, as it seems: mount it again (where it was taken away for good, open the source anew)"
}

// sameShare checks a directory that was opened, and remembers its device.
func (s *Source) sameShare(resource string, h *handle) error {
	now := device(h.id)
	s.mu.Lock()
	before, known := s.devices[resource]
	s.mu.Unlock()
	if known && before != now {
		_, err := h.self.Readdirnames(1)
		if err == io.EOF {
			return &errShare{fmt.Sprintf("%q is empty and on another device than before", resource)}
		}
		if err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.devices[resource] = now
	if _, known := s.homes[resource]; !known {
		s.homes[resource] = now
	}
	h.strange = s.homes[resource] != now
	return nil
}

// unproved is the answer to a look for a file that is missing on another device than the resource was on at first, where
// what was worked is remembered by its name: it may be below the mount point of its share, with all its other files, and
// what is not known to be gone must not be forgotten.
func (d *dir) unproved(h *handle, name string, err error) error {
	o := &d.source.options
	if !h.strange || !o.Keep && !o.FailedKeep || name == o.Trigger || !errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNotRegular) {
		return err
	}
	return &errShare{fmt.Sprintf("%q is missing, and its directory is on another device than at first", name)}
}

// missingShare checks an error of opening a directory: one that is missing because its share is has not gone.
func (s *Source) missingShare(resource string, err error) error {
	s.mu.Lock()
	before, known := s.devices[resource]
	s.mu.Unlock()
	if !known || !errors.Is(err, sources.ErrGone) {
		return err
	}
	for p := filepath.Join(s.root, filepath.FromSlash(resource)); p != filepath.Dir(p); {
		p = filepath.Dir(p)
		fi, serr := os.Stat(p)
		if serr != nil {
			continue
		}
		if device(fi) != before {
			return &errShare{fmt.Sprintf("%q is missing, and %q is on another device than it was", resource, p)}
		}
		break
	}
	return err
}

// An absolute folder to which files are moved may be on a share too. What is remembered of it is where it is mounted: the
// topmost directory above the folder that is on its device.

// sameFolderShare checks a folder before it is made or opened.
func (s *Source) sameFolderShare(folder string) error {
	at, before := s.folderShare(folder)
	if at == "" {
		return nil
	}
	f, err := os.Open(at)
	if err != nil {
		return &errShare{fmt.Sprintf("%q cannot be opened any more (%v)", at, err)}
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil || device(fi) == before {
		return err
	}
	if _, err := f.Readdirnames(1); err != nil {
		return &errShare{fmt.Sprintf("%q is empty and on another device than before", at)}
	}
	return nil
}

// folderShare is where the share of a folder is mounted, as far as that is known, and its device.
func (s *Source) folderShare(folder string) (at string, dev uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for p := folder; ; p = filepath.Dir(p) {
		if dev, known := s.mounts[p]; known {
			return p, dev
		}
		if p == filepath.Dir(p) {
			return "", 0
		}
	}
}

// knowFolder remembers where a folder that was opened is mounted.
func (s *Source) knowFolder(folder string, to *handle) {
	dev := device(to.id)
	if at, before := s.folderShare(folder); at != "" && before == dev {
		return
	}
	top := folder
	for p := folder; p != filepath.Dir(p); {
		p = filepath.Dir(p)
		if fi, err := os.Stat(p); err != nil || device(fi) != dev {
			break
		}
		top = p
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mounts[top] = dev
}

// Package file is a source whose resources are directories on a local or shared disk and whose messages are the files
// in them.
//
// A file is delivered when it has not changed for a while (or when its done-file is there), in the order of the names or
// the times. Its body streams through Message.Open, in constant memory; a read ends with ErrChanged when the file is not
// the one that was delivered or changes during the read, and never ends early without an error. A file is deleted or
// moved only if it still has the size, the time and the inode that it had at its delivery.
//
// # Limits
//
// Directories are polled: no change events exist on network file systems and local ones lose them. Attempts are counted
// in memory, so Message.Attempt is a minimum after a move of the resource; with Keep they are stored. The inode is no part
// of what Keep remembers, because it may differ between machines: size and time are. Symbolic links, pipes, sockets and devices are
// no messages. A writer who changes a file in place, keeps its size and sets its time back is not noticed, nor is one who
// does so within one tick of the file system's clock. After a crash a settled file may come again, and a move to another
// device may leave a hidden .rebalancer-*.part in its folder, which nobody reads. A move to another device is a copy that
// is on the disk before the original goes; its mode and time go with it where the file system there has them. An absolute
// folder is made when it is missing, but not where the share that it was on is not mounted; that is known since the first
// file went there.
//
// A file that is being settled has a hidden name of ours for a moment (.rebalancer-taken-*). What a crash or an error leaves
// so comes again, after a crash when the directory is opened next and else after a minute, under its own name (one of more than 219 bytes loses some of its middle). On a file system
// that can neither rename without overwriting nor link, which is told to the Logger, a crash then can leave an empty file too, which
// comes as a message: set Empty where empty files are none.
// Where the answer of a network file system is lost, a file may be in the folder and come again.
//
// # Shares
//
// Polling is all that is needed on NFS and CIFS. A share that is unmounted leaves an empty directory, or none, in its place;
// the source knows that by the device and says that the share is not mounted, rather than that there are no files or no
// directory, and what is in hand stays so until the share is back. It knows the device since it first opened the
// directory: one that was not mounted then looks empty. So let resources be directories inside of the share, not its mount
// point: then an unmounted share is a missing directory, which is reported.
//
// With Keep, a directory that is on another device than at first is no proof that files which it lacks are gone, so that
// most of what was worked there is not forgotten until the share is back on its device, or the source is opened anew. Files that are
// below the mount point while the share is away are worked as what they are, and remembered: one that has the name of a file of the share
// takes its place in the memory, and that file is worked again when the share is back.
//
// Up to four files are settled at a time, since a share answers slowly.
//
// # Two groups on one directory
//
// Two groups that do not know of each other are both given the files of a directory, until one of them settles. On Linux
// a Reader puts a lock on its directory that says which group and resource it works for; the kernel frees it when the process ends. A
// Reader that finds another group's lock reports it to the Logger and works on. One that finds a lock of its own group
// under another resource name (a bind mount, a link, a file system that ignores case) refuses to work: two names for one
// directory would break the group's first promise. On file systems and systems without such locks nothing is noticed.
package file

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/internal/files"
	"github.com/rebalancer-go/rebalancer/sources"
)

// Source opens directories below its root. It implements sources.Source, sources.Lagger and sources.Discoverer.
type Source struct {
	settings
	copy  func(io.Writer, io.Reader) (int64, error) // io.Copy, or a fault in tests
	pause func()                                    // between a check and what it is for; tests change files there
	ways  ways                                      // the kernel's, or faults in tests
	dress func(*os.Root, string, fs.FileMode, time.Time) error

	readers files.Readers[*dir]

	mu      sync.Mutex
	devices map[string]uint64 // of the directories that were opened
	homes   map[string]uint64 // the first of those
	mounts  map[string]uint64 // of the shares that absolute folders are on, by where they are mounted
}

// New checks cfg, all violations at once. It does no I/O: the directories need not exist yet.
func New(cfg Config) (*Source, error) {
	s, err := cfg.check()
	if err != nil {
		return nil, err
	}
	w := kernel()
	w.weak = sync.OnceFunc(func() {
		s.options.Logger.Warn("the file system can neither rename without overwriting nor link: a crash while a file gets another name may leave an empty file beside it")
	})
	return &Source{settings: s, copy: io.Copy, pause: func() {}, ways: w, dress: dress, mounts: map[string]uint64{}, homes: map[string]uint64{},
		devices: map[string]uint64{}}, nil
}

// Names makes the names canonical: paths relative to the root, without "./", "//" and a slash at the end. It refuses
// absolute paths, ".." anywhere, a name that is listed twice, and a resource that is where another one's worked files
// go. What only the disk knows (links, mounts, case) is refused by Open.
func (s *Source) Names(resources []string) ([]string, error) {
	names, first, errs := files.Canonical("file", "directory", resources, canonical)
	for _, name := range names {
		for _, folder := range []files.Folder{s.options.Success, s.options.Failed} {
			if from, ok := s.folderOf(name, folder, func(resource string) bool { return first[resource] != "" }); ok {
				errs = append(errs, fmt.Errorf("file: resource %q is where files of resource %q are moved", first[name], first[from]))
			}
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
		return "", errors.New("the name is empty; Root itself is \".\"")
	case strings.ContainsRune(name, 0):
		return "", errors.New("the name contains a zero byte")
	case strings.HasPrefix(name, "/") || filepath.IsAbs(name):
		return "", errors.New("the name is an absolute path, must be relative to Root")
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == ".." {
			return "", errors.New("the name contains \"..\"")
		}
	}
	name = path.Clean(name)
	if !filepath.IsLocal(filepath.FromSlash(name)) {
		return "", errors.New("the name does not stay below Root")
	}
	return name, nil
}

// folderOf finds the resource whose files are moved into the directory name.
func (s *Source) folderOf(name string, folder files.Folder, isResource func(string) bool) (string, bool) {
	if folder == "" {
		return "", false
	}
	if !filepath.IsAbs(string(folder)) {
		return folder.Within(name, isResource)
	}
	return folder.Above(filepath.Join(s.root, filepath.FromSlash(name)), isResource)
}

// Open starts to read a directory. It fails with ErrGone when there is none of that name.
func (s *Source) Open(ctx context.Context, c *rebalancer.Claim) (sources.Reader, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("file: open %q: %w", c.Resource, err)
	}
	if name, err := canonical(c.Resource); err != nil || name != c.Resource {
		return nil, fmt.Errorf("file: open %q: not a canonical name; pass names through Names", c.Resource)
	}
	d := &dir{source: s, group: c.Group, resource: c.Resource}
	if err := d.refresh(); err != nil {
		return nil, fmt.Errorf("file: open %q: %w", c.Resource, err)
	}
	r, err := s.readers.Open(d, s.options, c)
	if err != nil {
		d.release()
		return nil, fmt.Errorf("file: open %q: %w", c.Resource, err)
	}
	return r, nil
}

// DeadLetters reports whether OnFailure is set.
func (s *Source) DeadLetters() bool { return s.options.DeadLetters() }

// Lag counts the files of a directory that are messages, those in hand included; where files are kept, also those that were
// worked, which only the owner of the directory knows.
func (s *Source) Lag(ctx context.Context, resource string) (int64, error) {
	name, err := canonical(resource)
	if err != nil {
		return 0, fmt.Errorf("file: lag of %q: %w", resource, err)
	}
	h, err := s.open(name)
	if err != nil {
		return 0, fmt.Errorf("file: lag of %q: %w", resource, err)
	}
	defer h.close()
	n, err := s.options.Count(func(each func([]files.Entry) error) error { _, err := h.list(ctx, each); return err })
	if err != nil {
		return 0, fmt.Errorf("file: lag of %q: %w", resource, err)
	}
	return n, nil
}

// Close ends all Readers, whose settlements it waits for, but not longer than a minute; later calls of Open fail with ErrClosed. Idempotent.
func (s *Source) Close() error { return s.readers.Close() }

// Package files is the engine of the sources whose messages are files or objects: list → stable → open → settle. It
// knows nothing of paths, sockets or servers; a Place does, and everything that needs care is here once: what is
// delivered when, in which order, what is checked before something is deleted, and what names moved files get.
package files

import (
	"context"
	"errors"
	"io"
	"time"
)

// Place is one resource: a directory, a prefix, whatever holds files under names. The engine calls List, Stat and Open
// from Fetch and from handlers while Settle calls the others, so a Place is safe for concurrent use. Close may come while
// other calls run; their contexts have ended then.
//
// A name is the bytes that the place gave, without a slash unless Options.Deep. Errors match fs.ErrNotExist for a file that is not there,
// fs.ErrExist for a target that is, and rebalancer.ErrChanged for a file that is not the one wanted.
type Place interface {
	// List passes all entries that are regular files, in pages as the place has them and in key order where it has one. A
	// page belongs to the callee until each returns; an error of each ends the listing and is returned as it is. List
	// matches sources.ErrGone when the place does not exist. An error is never an empty list.
	List(ctx context.Context, each func(page []Entry) error) error
	// Stat observes one file. What is not a regular file does not exist.
	Stat(ctx context.Context, name string) (Info, error)
	// Open opens the file if it still is want.
	Open(ctx context.Context, name string, want Info) (Content, error)
	// Remove deletes the file if it still is want.
	Remove(ctx context.Context, name string, want Info) error
	// Move puts the file into a folder under the name as, if it still is want, and never overwrites. When it fails, the
	// file is where it was.
	Move(ctx context.Context, name string, want Info, folder, as string) error
	// Put writes a new small file into a folder and never overwrites.
	Put(ctx context.Context, folder, name string, data []byte) error
	// Close frees what the place holds.
	Close() error
}

// Tagger is a Place that can give a file a tag.
type Tagger interface {
	// Tag gives the file a tag if it still is want, and leaves its other tags.
	Tag(ctx context.Context, name string, want Info, key, value string) error
}

// ErrName is matched by errors of Move and Put when the folder cannot take the name, for its characters or its length. The
// engine then tries Plain.
var ErrName = errors.New("the folder cannot take the name")

// Entry is one file of a listing.
type Entry struct {
	Name string
	Info *Info // nil when the listing does not tell, or not exactly
}

// Info is one observation of a file: its identity, as far as the place can tell.
type Info struct {
	Size    int64
	ModTime time.Time
	Tag     string // inode, ETag, version, … ; "" for none
	Native  any    // what the message carries as Native; no part of the identity
}

// Same reports whether two observations are of one unchanged file.
func (i Info) Same(o Info) bool {
	return i.Size == o.Size && i.ModTime.Equal(o.ModTime) && i.Tag == o.Tag
}

// Content is an open file. Stat observes what is open, not what has the name now.
type Content interface {
	io.ReadCloser
	Stat() (Info, error)
}

package ftp

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/rebalancer-go/rebalancer/internal/files"
)

// remote is one connection to one server, logged in. It is used by one goroutine at a time, which a pool sees to. Paths
// are absolute and clean, with slashes; they may hold any byte but zero, and the remote refuses what its protocol cannot
// carry. Every call returns in good time when the server does not answer, and at once when its context ends.
//
// An error that is a reply of the server wraps an *answer; the connection is then as good as before. After any other
// error it is discarded. Errors match fs.ErrNotExist, fs.ErrExist and fs.ErrPermission where the reply can be told.
type remote interface {
	// home is the directory that one is in after the login.
	home() string
	// list calls each with pages of the entries of a directory, in any order. A directory that is missing or cannot be
	// read is an error, never an empty list; sources.ErrGone says that it is missing. An error of each is returned as it is.
	list(ctx context.Context, dir string, each func([]entry) error) error
	// stat observes what has the path, without following a link where the server can tell.
	stat(ctx context.Context, path string) (entry, error)
	// open reads a file from an offset on. The reader is read and closed before the next call; its Close gives an error
	// unless the whole rest was read and the server said that it was all.
	open(ctx context.Context, path string, offset int64) (io.ReadCloser, error)
	// remove deletes a file.
	remove(ctx context.Context, path string) error
	// rename gives a file another path and fails with fs.ErrExist when there is one. Where the server has no such
	// operation that is a check before it: whoever writes the other path in between is overwritten.
	rename(ctx context.Context, from, to string) error
	// put writes a new small file; like rename it fails with fs.ErrExist. A file that could not be written whole is removed
	// as far as the connection allows.
	put(ctx context.Context, path string, data []byte) error
	// mkdir makes one directory; one that is there is no error.
	mkdir(ctx context.Context, path string) error
	// alive asks the server for a sign of life, which keeps the connection from being closed for idleness.
	alive(ctx context.Context) error
	// close ends the connection at once, also one that is in use. It never waits for the server.
	close() error
}

// dialer connects and logs in.
type dialer func(ctx context.Context) (remote, error)

// entry is one name in a directory.
type entry struct {
	name string
	kind kind
	info *files.Info // nil when a listing does not tell, or not exactly; never nil from stat of a file
}

// kind is what an entry is.
type kind int

const (
	regular   kind = iota // a file
	directory             // a directory
	other                 // a link, a device, …: never a message, never followed
	bogus                 // a line of a listing that has no name that can be used; name is the line
)

// answer is an error that the server gave as its reply: the connection goes on.
type answer struct {
	what string // the operation and the path, for whoever reads it
	text string // what the server said
	err  error  // fs.ErrNotExist, fs.ErrExist, fs.ErrPermission, …; nil when it cannot be told
}

// Error says what was refused and how.
func (a *answer) Error() string {
	if a.err != nil {
		return fmt.Sprintf("%s: %v: the server said %q", a.what, a.err, a.text)
	}
	return fmt.Sprintf("%s: the server said %q", a.what, a.text)
}

// Unwrap is what the reply means.
func (a *answer) Unwrap() error { return a.err }

// broken reports whether a connection is of no use after an error.
func broken(err error) bool {
	var a *answer
	return err != nil && !errors.As(err, &a)
}

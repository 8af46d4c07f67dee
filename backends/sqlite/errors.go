package sqlite

import (
	"context"
	"errors"
	"fmt"

	"github.com/rebalancer-go/rebalancer/backends"
)

// Primary result codes of SQLite.
const (
	codeError    = 1
	codePerm     = 3
	codeBusy     = 5
	codeLocked   = 6
	codeReadOnly = 8
	codeIOErr    = 10
	codeCorrupt  = 11
	codeFull     = 13
	codeAuth     = 23
	codeNotADB   = 26

	extendedMoved = 8 | 4<<8 // SQLITE_READONLY_DBMOVED
)

// code is the result code that an error carries; -1 when it carries none.
func code(err error) int {
	var coded interface{ Code() int }
	if errors.As(err, &coded) {
		return coded.Code()
	}
	return -1
}

func isCode(err error, codes ...int) bool {
	c := code(err)
	for _, want := range codes {
		if c >= 0 && c&0xff == want {
			return true
		}
	}
	return false
}

// wrap says which file an error is about and what to do; errors that no retry heals get ErrFatal.
func (s *Store) wrap(err error) error {
	switch {
	case err == nil, errors.Is(err, backends.ErrClosed):
		return err
	case s.ctx.Err() != nil && errors.Is(err, context.Canceled):
		return backends.ErrClosed
	}
	what, fatal := "", false
	switch {
	case code(err) == extendedMoved:
		what = "the file was moved: "
	case isCode(err, codeReadOnly, codePerm, codeAuth):
		what, fatal = "the file or its folder cannot be written; give this user the right to: ", true
	case isCode(err, codeCorrupt, codeNotADB):
		what, fatal = "the file is not an intact SQLite database; move it away or restore it: ", true
	case isCode(err, codeFull):
		what = "the disk is full; make room: "
	case isCode(err, codeIOErr): // also how it says that there is no room for its -shm file
		what = "the file cannot be read or written; look whether the disk is full or fails: "
	case isCode(err, codeBusy, codeLocked):
		what = "another program holds the file's lock: "
	}
	if fatal && !errors.Is(err, backends.ErrFatal) {
		return fmt.Errorf("sqlite store %s: %w: %s%w", s.path, backends.ErrFatal, what, err)
	}
	return fmt.Errorf("sqlite store %s: %s%w", s.path, what, err)
}

package ftp

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"

	"github.com/pkg/sftp"

	"github.com/rebalancer-go/rebalancer/internal/files"
	"github.com/rebalancer-go/rebalancer/sources"
)

// Types of packets, and flags of attributes, of version 3 of the protocol.
const (
	typeClose   = 4
	typeOpendir = 11
	typeReaddir = 12
	typeRemove  = 13
	typeStatus  = 101
	typeHandle  = 102
	typeName    = 104

	hasSize        = 1
	hasOwner       = 2
	hasPermissions = 4
	hasTimes       = 8
	hasExtensions  = 1 << 31
)

// list gives the pages of a directory as the server sends them, in OpenSSH's case 100 names each.
func (r *sftpRemote) list(ctx context.Context, dir string, each func([]entry) error) error {
	what := "list"
	reply, err := r.own(ctx, what, dir, typeOpendir, dir)
	if errors.Is(err, fs.ErrNotExist) {
		return &answer{what: label(what, dir), text: "no such directory", err: fmt.Errorf("%w (%w)", sources.ErrGone, fs.ErrNotExist)}
	}
	if err != nil {
		return err
	}
	f := fields{b: reply.data}
	handle := f.text()
	if f.bad || reply.kind != typeHandle {
		return r.malformed(what, dir)
	}
	for {
		reply, err := r.own(ctx, what, dir, typeReaddir, handle)
		if errors.Is(err, io.EOF) && !broken(err) {
			break
		}
		if err != nil {
			return errors.Join(err, r.closeDir(ctx, dir, handle, err))
		}
		page, ok := names(reply)
		if !ok {
			return r.malformed(what, dir)
		}
		if len(page) == 0 {
			continue
		}
		if err := each(page); err != nil {
			_ = r.closeDir(ctx, dir, handle, nil)
			return err
		}
	}
	return r.closeDir(ctx, dir, handle, nil)
}

// closeDir closes a directory, where the connection goes on.
func (r *sftpRemote) closeDir(ctx context.Context, dir, handle string, why error) error {
	if broken(why) {
		return nil
	}
	_, err := r.own(ctx, "close", dir, typeClose, handle)
	return err
}

// names reads a page of names. Names that no directory can have are left out: they would lead elsewhere.
func names(p packet) ([]entry, bool) {
	f := fields{b: p.data}
	if p.kind != typeName {
		return nil, false
	}
	count := int(f.number())
	if f.bad || count > len(f.b)/12 { // two lengths and the flags
		return nil, false
	}
	page := make([]entry, 0, count)
	for range count {
		name, long := f.text(), f.text()
		st, flags := f.attributes()
		if f.bad {
			return nil, false
		}
		if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") {
			continue
		}
		e := entry{name: name, kind: kindOf(st, flags, long)}
		if flags&hasSize != 0 && flags&hasTimes != 0 {
			e.info = sftpInfo(st)
		}
		page = append(page, e)
	}
	return page, true
}

// kindOf tells what a name is. Servers that do not say it in numbers do so in the first letter of the line that people read.
func kindOf(st *sftp.FileStat, flags uint32, long string) kind {
	switch {
	case flags&hasPermissions != 0 && st.FileMode().IsRegular(), flags&hasPermissions == 0 && strings.HasPrefix(long, "-"):
		return regular
	case flags&hasPermissions != 0 && st.FileMode().IsDir(), flags&hasPermissions == 0 && strings.HasPrefix(long, "d"):
		return directory
	}
	return other
}

func sftpInfo(st *sftp.FileStat) *files.Info {
	return &files.Info{Size: int64(st.Size), ModTime: time.Unix(int64(st.Mtime), 0), Native: st}
}

// fields reads a packet. What is missing reads as nothing and sets bad.
type fields struct {
	b   []byte
	bad bool
}

func (f *fields) number() uint32 {
	if len(f.b) < 4 {
		f.b, f.bad = nil, true
		return 0
	}
	n := binary.BigEndian.Uint32(f.b)
	f.b = f.b[4:]
	return n
}

func (f *fields) text() string {
	n := f.number()
	if uint64(n) > uint64(len(f.b)) {
		f.b, f.bad = nil, true
		return ""
	}
	s := string(f.b[:n])
	f.b = f.b[n:]
	return s
}

func (f *fields) attributes() (*sftp.FileStat, uint32) {
	st, flags := &sftp.FileStat{}, f.number()
	if flags&hasSize != 0 {
		high, low := f.number(), f.number()
		st.Size = uint64(high)<<32 | uint64(low)
		f.bad = f.bad || high >= 1<<31
	}
	if flags&hasOwner != 0 {
		st.UID, st.GID = f.number(), f.number()
	}
	if flags&hasPermissions != 0 {
		st.Mode = f.number()
	}
	if flags&hasTimes != 0 {
		st.Atime, st.Mtime = f.number(), f.number()
	}
	if flags&hasExtensions != 0 {
		for n := f.number(); n > 0 && !f.bad; n-- {
			f.text()
			f.text()
		}
	}
	return st, flags
}

package ftp

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"path"
	"strings"

	"github.com/rebalancer-go/rebalancer/internal/files"
	"github.com/rebalancer-go/rebalancer/sources"
)

const (
	// pageSize is how many entries of a listing are passed on at once.
	pageSize = 1024
	// maxLine bounds a line of a listing. A longer one is not a line of any server.
	maxLine = 64 << 10
)

// list enters the directory first: that tells whether it is there, which a listing does not on every server, and saves it
// from being taken for an option or a pattern.
func (c *ftpConn) list(ctx context.Context, dir string, each func([]entry) error) error {
	what := fmt.Sprintf("list %q", dir)
	if err := refused(what, dir); err != nil {
		return err
	}
	var stop error // what each said
	err := c.call(ctx, what, func() error {
		if err := c.enter(what, dir); err != nil {
			return err
		}
		seen, err := c.lists(func(page []entry) error {
			stop = each(page)
			return stop
		})
		if code(err) == replyFailed { // it was removed meanwhile, or may be entered and not read
			if err := c.enter(what, dir); err != nil {
				return err
			}
			return &answer{what: what, text: err.Error(), err: fs.ErrPermission}
		}
		if err != nil || seen || c.mlst || c.plain {
			return err
		}
		return c.unseen(what, dir, each)
	})
	if stop != nil && ctx.Err() == nil {
		return stop
	}
	return err
}

// enter makes dir the directory that is worked, or says why that cannot be done.
func (c *ftpConn) enter(what, dir string) error {
	err := c.lib.ChangeDir(dir)
	if err == nil {
		return nil
	}
	var given *answer
	if err = judge(what, err); !errors.As(err, &given) {
		return err
	}
	if given.err == nil || errors.Is(given.err, fs.ErrNotExist) { // proftpd says so too when one above may not be entered
		given.err = fs.ErrPermission
		if c.gone(dir) {
			given.err = fmt.Errorf("%w: %w", sources.ErrGone, fs.ErrNotExist)
		}
	}
	return given
}

// gone finds out whether a directory that cannot be entered is missing: it is not in the one above, or that is missing
// too. When in doubt it is there.
func (c *ftpConn) gone(dir string) bool {
	above, name := path.Split(path.Clean(dir))
	if above = path.Clean(above); name == "" {
		return false
	}
	if err := c.lib.ChangeDir(above); err != nil {
		return code(err) == replyFailed && c.gone(above)
	}
	any, found := false, false
	whole, err := c.lists(func(page []entry) error {
		for _, e := range page {
			any = true
			found = found || e.name == name && e.kind != regular
		}
		return nil
	})
	hidden := strings.HasPrefix(name, ".") && !c.mlst
	return err == nil && (c.mlst || whole || any) && !found && !hidden
}

// lists passes the entries of the directory that is worked. seen: the listing had a line for the directory itself, so that
// it was read.
func (c *ftpConn) lists(each func([]entry) error) (seen bool, err error) {
	page := make([]entry, 0, pageSize)
	var failed error
	c.lines = func(line []byte) error {
		e, ok := c.parse(string(line))
		switch {
		case !ok:
			return nil
		case e.name == "." || e.name == "..":
			seen = true
			return nil
		}
		if page = append(page, e); len(page) == cap(page) {
			failed = each(page)
			page = page[:0]
		}
		return failed
	}
	defer func() { c.lines = nil }()
	argument := "-a"
	if c.mlst || c.plain {
		argument = ""
	}
	if _, err = c.lib.List(argument); err != nil {
		return seen, err
	}
	c.dots = c.dots || seen
	if len(page) > 0 {
		err = each(page)
	}
	return seen, err
}

// unseen is for a listing without a line for the directory itself. On servers that show one elsewhere the directory could
// not be read, and they do not say so; on others it is listed again without an option that they do not know.
func (c *ftpConn) unseen(what, dir string, each func([]entry) error) error {
	if !c.dots {
		if err := c.lib.ChangeDir("/"); err != nil {
			return err
		}
		if _, err := c.lists(func([]entry) error { return nil }); err != nil && code(err) == 0 {
			return err
		}
	}
	if c.dots {
		if err := c.enter(what, dir); err != nil { // it was removed meanwhile
			return err
		}
		return &answer{what: what, text: "an empty listing, without the directory itself", err: fs.ErrPermission}
	}
	c.plain = true
	if err := c.enter(what, dir); err != nil {
		return err
	}
	_, err := c.lists(each)
	return err
}

// parse reads one line of a listing; not ok is one that has no entry.
func (c *ftpConn) parse(line string) (entry, bool) {
	line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
	var e entry
	ok := false
	switch {
	case c.mlst:
		e, ok = parseFacts(line, c.server.ignoreUnique)
	case line == "" || strings.HasPrefix(line, "total "):
		return entry{}, false
	default:
		e, ok = parseLS(line)
		if !ok {
			e, ok = parseDOS(line)
		}
	}
	if !ok || !carries(e.name) || strings.Contains(e.name, "/") || e.name == "" {
		return entry{name: line, kind: bogus}, true
	}
	return e, true
}

// look observes a path. The error is the server's reply as it came.
func (c *ftpConn) look(p string) (entry, error) {
	if c.mlst {
		e, err := c.mlstOf(p)
		if err != nil || e.kind != regular || e.info != nil {
			return e, err
		}
	}
	size, err := c.lib.FileSize(p)
	if code(err) == replyFailed && c.lib.ChangeDir(p) == nil {
		return entry{name: path.Base(p), kind: directory}, nil
	}
	if err != nil {
		return entry{}, err
	}
	modified, err := c.lib.GetTime(p)
	if err != nil {
		return entry{}, err
	}
	return entry{name: path.Base(p), info: &files.Info{Size: size, ModTime: modified}}, nil
}

// mlstOf reads the facts that the client library leaves out.
func (c *ftpConn) mlstOf(p string) (entry, error) {
	var err error
	reply := c.tap.during(func() { _, err = c.lib.GetEntry(p) })
	if code(err) != 0 {
		return entry{}, err
	}
	lines := strings.Split(reply, "\n")
	if len(lines) < 3 { // the connection broke
		return entry{}, errors.Join(err, io.ErrUnexpectedEOF)
	}
	for _, line := range lines[1:] { // without the command
		line = strings.TrimLeft(strings.TrimSuffix(line, "\r"), " ")
		if e, ok := parseFacts(line, c.server.ignoreUnique); ok {
			e.name = path.Base(p)
			return e, nil
		}
	}
	if err == nil {
		err = fmt.Errorf("the reply to MLST %q has no facts", p)
	}
	return entry{}, err
}

// listConn is a data connection with a listing: it is read here, line by line, and the client library sees its end alone.
// A listing of a million names so needs no memory for them.
type listConn struct {
	net.Conn
	line func([]byte) error
}

// Read reads the whole listing, and returns how it ended.
func (l *listConn) Read([]byte) (int, error) {
	r := bufio.NewReaderSize(l.Conn, maxLine)
	for {
		line, err := r.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			err = errors.New("a line of the listing has no end")
		}
		if len(bytes.TrimRight(line, "\r\n")) > 0 {
			if err := l.line(line); err != nil {
				return 0, err
			}
		}
		if err != nil {
			return 0, err
		}
	}
}

// Close closes the connection; see tlsData.
func (l *listConn) Close() error {
	_ = l.Conn.Close()
	return nil
}

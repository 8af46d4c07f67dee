package files

import (
	"bytes"
	"context"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"path"
	"strings"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/sources/pickup"
)

// mostChecksum bounds what is read of a checksum file.
const mostChecksum = 64 << 10

// checksum is what a body must have.
type checksum struct {
	hash hash.Hash
	want []byte
}

func (c *checksum) check(name string) error {
	if got := c.hash.Sum(nil); !bytes.Equal(got, c.want) {
		return fmt.Errorf("%q has the checksum %x, its checksum file says %x: %w", name, got, c.want, pickup.ErrChecksum)
	}
	return nil
}

// readChecksum reads the checksum file of a file, if it is the one that was observed with it: one that is written anew may be half
// of what it will be, and comes with the next delivery.
func (r *Reader) readChecksum(ctx context.Context, name string, beside *part) (*checksum, error) {
	text, err := r.small(ctx, beside)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w: %w", rebalancer.ErrChanged, err)
	}
	if err != nil {
		return nil, fmt.Errorf("checksum file of %q: %w", name, err)
	}
	sum, err := parseChecksum(text, name)
	if err != nil {
		return nil, fmt.Errorf("checksum file of %q: %w: %w", name, err, pickup.ErrChecksum)
	}
	return sum, nil
}

// small reads a small file.
func (r *Reader) small(ctx context.Context, p *part) (string, error) {
	if p.info.Size > mostChecksum {
		return "", fmt.Errorf("%q has %d bytes, at most %d are read: %w", p.name, p.info.Size, mostChecksum, pickup.ErrChecksum)
	}
	src, err := r.place.Open(ctx, p.name, p.info)
	if err != nil {
		return "", err
	}
	defer src.Close()
	text, err := io.ReadAll(io.LimitReader(src, mostChecksum+1))
	if err == nil && int64(len(text)) != p.info.Size {
		err = fmt.Errorf("%q: %w while it was read", p.name, rebalancer.ErrChanged)
	}
	return string(text), err
}

// parseChecksum finds the checksum of a file in what md5sum, sha256sum and their kind write.
func parseChecksum(text, name string) (*checksum, error) {
	text = strings.TrimPrefix(text, "\ufeff")
	var only string // of a line that names no file
	var base string // of a line that names a file of the name in some folder
	lines := 0
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		if strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#") {
			continue
		}
		lines++
		sum, of := splitChecksum(line)
		switch {
		case of == name:
			return newChecksum(sum)
		case of == "":
			only = sum
		case base == "" && path.Base(strings.ReplaceAll(of, `\`, "/")) == path.Base(name):
			base = sum
		}
	}
	switch {
	case base != "":
		return newChecksum(base)
	case lines == 1 && only != "":
		return newChecksum(only)
	case lines == 0:
		return nil, fmt.Errorf("it is empty")
	}
	return nil, fmt.Errorf("none of its %d lines is about %q", lines, name)
}

// splitChecksum takes a line apart; of is "" when it names no file.
func splitChecksum(line string) (sum, of string) {
	if before, after, ok := cutLast(line, ") = "); ok { // MD5 (name) = sum
		if _, name, ok := strings.Cut(before, "("); ok {
			return strings.TrimSpace(after), name
		}
	}
	escaped := strings.HasPrefix(line, `\`) // sha256sum's way to write a line break and a backslash
	line = strings.TrimPrefix(line, `\`)
	sum, of, ok := strings.Cut(strings.TrimLeft(line, " \t"), " ")
	if !ok {
		return strings.TrimSpace(sum), ""
	}
	if of != "" && (of[0] == ' ' || of[0] == '*') { // text or binary
		of = of[1:]
	}
	if escaped {
		of = strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\r`, "\r").Replace(of)
	}
	if strings.TrimSpace(of) == "" {
		of = ""
	}
	return sum, of
}

func cutLast(s, sep string) (before, after string, ok bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

func newChecksum(text string) (*checksum, error) {
	want, err := hex.DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("%.70q is no checksum in hexadecimal", text)
	}
	c := &checksum{want: want}
	switch len(want) {
	case md5.Size:
		c.hash = md5.New()
	case sha1.Size:
		c.hash = sha1.New()
	case sha256.Size:
		c.hash = sha256.New()
	case sha512.Size384:
		c.hash = sha512.New384()
	case sha512.Size:
		c.hash = sha512.New()
	default:
		return nil, fmt.Errorf("a checksum of %d bytes is of no known kind", len(want))
	}
	return c, nil
}

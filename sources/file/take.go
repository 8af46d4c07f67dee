package file

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/internal/files"
)

// A file is taken away under a name of our own before it is deleted, moved or renamed, and looked at again: a check of the
// name and a deletion of the name would lose the file of a writer who replaces it in between. What a crash leaves under
// such a name is put back by the next Reader.
const (
	takenPrefix = ".rebalancer-taken-"
	// takenFor is how long a taken name may be of a settlement that is under way here.
	takenFor = time.Minute
)

// tail is how much of the end of a long name stays in a taken name: its type, and by that which files belong together.
const tail = 40

// takenName carries the time and the name, within most bytes: a long name loses some of its middle.
func takenName(name string, now time.Time, most int) string {
	mark := takenPrefix + strconv.FormatInt(now.Unix(), 36) + "-" + rand.Text()[:10] + "-"
	if room := most - len(mark); len(name) > room {
		end := name[len(name)-tail:]
		for i := 1; i < utf8.UTFMax && !utf8.RuneStart(end[0]) && utf8.ValidString(name); i++ {
			end = end[1:]
		}
		name = files.Cut(name, room-len(end)) + end
	}
	return mark + name
}

// parseTaken undoes takenName.
func parseTaken(taken string) (name string, at time.Time, ok bool) {
	parts := strings.SplitN(strings.TrimPrefix(taken, takenPrefix), "-", 3)
	if len(parts) < 3 || parts[2] == "" {
		return "", at, false
	}
	sec, err := strconv.ParseInt(parts[0], 36, 64)
	return parts[2], time.Unix(sec, 0), err == nil
}

// take gives a file that is the one wanted a name of our own, which it returns. After an error the file has its name, or
// the error says where it is.
func (d *dir) take(h *handle, name string, want files.Info) (own string, err error) {
	if err := h.is(name, want); err != nil {
		return "", err
	}
	d.source.pause()
	own = takenName(name, time.Now(), files.MaxName)
	err = d.source.ways.over(h, name, h, own)
	if errors.Is(err, syscall.ENAMETOOLONG) { // some take less; a name as long as the file's fits
		own = takenName(name, time.Now(), max(len(name), 2*tail+len(own)-len(name)))
		err = d.source.ways.over(h, name, h, own)
	}
	if err != nil && !h.has(own) {
		return "", &os.LinkError{Op: "rename", Old: name, New: own, Err: err}
	}
	if err := h.is(own, want); err != nil { // it was replaced between the check and the rename
		if errors.Is(err, fs.ErrNotExist) && h.has(own) { // by what is no regular file
			err = rebalancer.ErrChanged
		}
		return "", d.giveBack(h, own, name, err)
	}
	return own, nil
}

// remove deletes a file that is the one wanted.
func (d *dir) remove(h *handle, name string, want files.Info) error {
	own, err := d.take(h, name, want)
	if err != nil {
		return err
	}
	if err := d.source.ways.unlink(h, own); err != nil && !h.lacks(own) {
		return d.giveBack(h, own, name, err)
	}
	return nil
}

// giveBack puts a file back after an error, which it returns. An error that says that the file has changed, or is not
// there, settles it; so it is hidden where the file could not be put back.
func (d *dir) giveBack(h *handle, own, name string, why error) error {
	as, err := d.putBack(h, own, name)
	switch {
	case err != nil:
		return fmt.Errorf("%v; then: %v", why, err)
	case as != name:
		return rebalancer.ErrChanged // another has its name: it comes again, whatever this error was
	}
	return why
}

// putBack gives a file that was taken its name again, or one like it when that has been taken meanwhile.
func (d *dir) putBack(h *handle, own, name string) (as string, err error) {
	as, err = files.Free(name, func(as string) error { return d.source.ways.place(h, own, h, as) })
	switch {
	case err != nil:
		return "", fmt.Errorf("%q is %q now, and cannot be put back: %w", name, own, err)
	case as != name:
		d.source.logger.Warn("file changed while it was worked and its name is taken; it comes again under another name",
			"resource", d.resource, "file", name, "name", as)
	}
	return as, nil
}

// restore puts back what a crash left taken, or an error for so long.
func (d *dir) restore(h *handle, taken []string, patience time.Duration) {
	for _, t := range taken {
		name, at, ok := parseTaken(t)
		if !ok || patience > 0 && time.Since(at) < patience {
			continue
		}
		if _, err := d.putBack(h, t, name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			d.source.logger.Warn("file that a crash left half deleted cannot be put back",
				"resource", d.resource, "file", t, "error", err)
		}
	}
}

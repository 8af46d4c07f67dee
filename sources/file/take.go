package file

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/internal/files"
)

// A deletion takes the file away under a name of our own first and looks at what it took: a check of the name and a
// deletion of the name would lose the file of a writer who replaces it in between. What a crash leaves under such a name
// is put back by the next Reader.
const (
	takenPrefix = ".rebalancer-taken-"
	// takenFor is how long a taken name may be somebody's deletion that is under way.
	takenFor = time.Minute
)

// takenName carries the time and the name, as far as it fits.
func takenName(name string, now time.Time) string {
	mark := takenPrefix + strconv.FormatInt(now.Unix(), 36) + "-" + rand.Text()[:10] + "-"
	return mark + files.Cut(name, files.MaxName-len(mark))
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

// remove deletes a file that is the one wanted.
func (d *dir) remove(h *handle, name string, want files.Info) error {
	if err := h.is(name, want); err != nil {
		return err
	}
	d.source.pause()
	taken := takenName(name, time.Now())
	if err := rename(h, name, h, taken); err != nil {
		return err
	}
	if h.is(taken, want) != nil {
		return errors.Join(rebalancer.ErrChanged, d.putBack(h, taken, h, name))
	}
	return h.root.Remove(taken)
}

// putBack gives a file that was taken by mistake its name again, or one like it when that has been taken meanwhile.
func (d *dir) putBack(from *handle, taken string, h *handle, name string) error {
	as, err := files.Free(name, func(as string) error { return rename(from, taken, h, as) })
	switch {
	case err != nil:
		return fmt.Errorf("%q changed, was moved to %q, and cannot be put back: %w", name, taken, err)
	case as != name:
		d.source.logger.Warn("file changed while it was worked and its name is taken; it comes again under another name",
			"resource", d.resource, "file", name, "name", as)
	}
	return nil
}

// restore puts back what a crash left taken.
func (d *dir) restore(h *handle, taken []string) {
	for _, t := range taken {
		name, at, ok := parseTaken(t)
		if !ok || time.Since(at) < takenFor {
			continue
		}
		if err := d.putBack(h, t, h, name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			d.source.logger.Warn("file that a crash left half deleted cannot be put back",
				"resource", d.resource, "file", t, "error", err)
		}
	}
}

package file

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// A network file system may carry a change of a name out and answer with an error all the same, when the answer is lost
// and the request sent again. So names are changed in two steps, of which only the first touches a name that others know:
// a plain rename to a random name of our own, which overwrites nothing; then, when what was taken is the file wanted, a
// change from there to its last name. Whatever fails on the way, nothing is removed that may be the only copy: at worst
// the file stays under our own name, which the next listings give back.

// ways are what a file system is asked for when names change. Tests put faults there.
type ways struct {
	over   func(from *handle, name string, to *handle, as string) error // overwrites
	fresh  func(from *handle, name string, to *handle, as string) error // never does; many file systems cannot
	link   func(from *handle, name string, to *handle, as string) error
	unlink func(h *handle, name string) error
	weak   func() // is told that an empty file has to keep the place; nil: nobody is
}

// place gives a file that has a name of our own its last one, and fails with fs.ErrExist rather than overwrite. Where the
// file system cannot do that in one step, a second link to the file takes the new name; where it has no links either, an
// empty file does.
func (w *ways) place(from *handle, own string, to *handle, as string) error {
	err := w.fresh(from, own, to, as)
	if unsupported(err) {
		err = w.byLink(from, own, to, as)
	}
	if err != nil && from.lacks(own) && to.has(as) {
		return nil // it was carried out
	}
	if unsupported(err) {
		if w.weak != nil {
			w.weak()
		}
		err = w.overEmpty(from, own, to, as)
	}
	if err != nil {
		return &os.LinkError{Op: "rename", Old: own, New: as, Err: err}
	}
	return nil
}

// byLink takes the new name away again only where the old one certainly is the file still: after an answer that leaves
// that open, both stay.
func (w *ways) byLink(from *handle, own string, to *handle, as string) error {
	if err := w.link(from, own, to, as); err != nil && !sameFile(from, own, to, as) {
		return err
	}
	err := w.unlink(from, own)
	if err == nil {
		return nil
	}
	err, refused := fmt.Errorf("remove %q after linking it to %q: %v", own, as, err), refused(err)
	if refused && sameFile(from, own, to, as) {
		return errors.Join(err, w.unlink(to, as))
	}
	return err
}

func (w *ways) overEmpty(from *handle, own string, to *handle, as string) error {
	f, err := to.root.OpenFile(as, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	empty, err := f.Stat()
	if err != nil {
		return err
	}
	err = w.over(from, own, to, as)
	if err == nil {
		return nil
	}
	now, lerr := to.root.Lstat(as)
	switch {
	case lerr != nil:
	case os.SameFile(now, empty):
		return errors.Join(err, w.unlink(to, as))
	case from.lacks(own):
		return nil // it was carried out
	}
	return err
}

// lacks reports that there certainly is no such name.
func (h *handle) lacks(name string) bool {
	_, err := h.root.Lstat(name)
	return errors.Is(err, fs.ErrNotExist)
}

func (h *handle) has(name string) bool {
	_, err := h.root.Lstat(name)
	return err == nil
}

func sameFile(a *handle, name string, b *handle, as string) bool {
	fa, err := a.root.Lstat(name)
	if err != nil {
		return false
	}
	fb, err := b.root.Lstat(as)
	return err == nil && os.SameFile(fa, fb)
}

// unsupported says that the file system cannot do it this way. EPERM is what some answer to a link.
func unsupported(err error) bool {
	return isAny(err, syscall.EINVAL, syscall.ENOSYS, syscall.EOPNOTSUPP, syscall.EPERM, syscall.EMLINK, errors.ErrUnsupported)
}

// refused says that an error is an answer of the file system, so that nothing was carried out.
func refused(err error) bool {
	return isAny(err, syscall.EPERM, syscall.EACCES, syscall.EROFS, syscall.EBUSY)
}

func isAny(err error, any ...error) bool {
	for _, e := range any {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

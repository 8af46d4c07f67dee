package file

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/internal/files"
)

// folder opens where files are moved, and makes it when it is missing.
func (d *dir) folder(h *handle, folder string) (to *handle, err error) {
	var root *os.Root
	if filepath.IsAbs(folder) {
		p := filepath.Join(folder, filepath.FromSlash(d.resource))
		if err = d.source.sameFolderShare(p); err == nil {
			err = os.MkdirAll(p, 0o755)
		}
		if err == nil {
			root, err = os.OpenRoot(p)
		}
	} else if err = h.root.MkdirAll(folder, 0o755); err == nil {
		root, err = h.root.OpenRoot(folder)
	}
	if err != nil {
		return nil, elsewhere(folder, err)
	}
	to = &handle{root: root}
	if to.self, err = root.Open("."); err == nil {
		to.id, err = to.self.Stat()
	}
	if err != nil {
		root.Close()
		return nil, elsewhere(folder, err)
	}
	if os.SameFile(h.id, to.id) {
		to.close()
		return nil, fmt.Errorf("folder %q is the directory itself, files would come again", folder)
	}
	if filepath.IsAbs(folder) {
		d.source.knowFolder(filepath.Join(folder, filepath.FromSlash(d.resource)), to)
	}
	return to, nil
}

// elsewhere keeps an error about the folder from being taken for one about the file.
func elsewhere(folder string, err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("folder %q: %v", folder, err)
	}
	return fmt.Errorf("folder %q: %w", folder, err)
}

// unfit says ErrName for what file systems answer to a name that they cannot take.
func unfit(err error) error {
	for _, e := range []error{syscall.EINVAL, syscall.EILSEQ, syscall.ENAMETOOLONG} {
		if errors.Is(err, e) {
			return fmt.Errorf("%w: %w", files.ErrName, err)
		}
	}
	return err
}

// Move puts a file that is the one wanted into a folder.
func (d *dir) Move(ctx context.Context, name string, want files.Info, folder, as string) error {
	h, err := d.handle()
	if err != nil {
		return err
	}
	defer d.done(h)
	if err := h.is(name, want); err != nil { // before a folder is made
		return err
	}
	to, err := d.folder(h, folder)
	if err != nil {
		return err
	}
	defer to.close()
	err = d.moveTaken(h, name, want, to, as)
	if errors.Is(err, syscall.EXDEV) {
		return d.copyOver(ctx, h, name, want, to, as)
	}
	return err
}

// moveTaken takes a file and gives it another name, or its own one back.
func (d *dir) moveTaken(h *handle, name string, want files.Info, to *handle, as string) error {
	if to.has(as) {
		return fs.ErrExist // before it is taken
	}
	own, err := d.take(h, name, want)
	if err != nil {
		return err
	}
	err = d.source.ways.place(h, own, to, as)
	if err == nil {
		return nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = elsewhere(to.root.Name(), err)
	}
	return d.giveBack(h, own, name, unfit(err))
}

// copyOver moves a file to another device: a copy that is whole and on the disk gets its name, then the original goes.
func (d *dir) copyOver(ctx context.Context, h *handle, name string, want files.Info, to *handle, as string) error {
	if _, err := to.root.Lstat(as); err == nil {
		return fs.ErrExist // before a long copy
	}
	temp := ".rebalancer-" + rand.Text() + ".part"
	if err := d.copyTo(ctx, name, want, to, temp); err != nil {
		_ = to.root.Remove(temp)
		return err
	}
	if err := d.source.ways.place(to, temp, to, as); err != nil {
		_ = to.root.Remove(temp)
		return unfit(err)
	}
	err := to.self.Sync()
	if err == nil {
		err = d.remove(h, name, want)
	}
	if err != nil && (errors.Is(err, rebalancer.ErrChanged) || h.is(name, want) == nil) {
		_ = to.root.Remove(as) // the original stays, so the copy goes; where that is not certain, both may be there
	}
	return err
}

func (d *dir) copyTo(ctx context.Context, name string, want files.Info, to *handle, temp string) (err error) {
	src, err := d.Open(ctx, name, want)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := to.root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return elsewhere(to.root.Name(), err)
	}
	defer func() { err = errors.Join(err, dst.Close()) }()
	n, err := d.source.copy(dst, &withContext{ctx, src})
	if err != nil {
		return err
	}
	if now, err := src.Stat(); err != nil || n != want.Size || !now.Same(want) {
		return errors.Join(err, rebalancer.ErrChanged)
	}
	mode := fs.FileMode(0o600)
	if fi, ok := want.Native.(fs.FileInfo); ok {
		mode = fi.Mode().Perm()
	}
	if err := d.source.dress(to.root, temp, mode, want.ModTime); err != nil { // not all file systems have them
		d.source.logger.Debug("mode and time of a file that was moved to another device cannot be set",
			"resource", d.resource, "file", name, "error", err)
	}
	return dst.Sync()
}

// dress gives a copy the mode and the time of its original.
func dress(root *os.Root, name string, mode fs.FileMode, at time.Time) error {
	return errors.Join(root.Chmod(name, mode), root.Chtimes(name, at, at))
}

// withContext ends a long copy with its context.
type withContext struct {
	ctx context.Context
	r   io.Reader
}

func (w *withContext) Read(p []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	return w.r.Read(p)
}

// Put writes a new file into a folder.
func (d *dir) Put(_ context.Context, folder, name string, data []byte) (err error) {
	h, err := d.handle()
	if err != nil {
		return err
	}
	defer d.done(h)
	to, err := d.folder(h, folder)
	if err != nil {
		return err
	}
	defer to.close()
	f, err := to.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return unfit(err)
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		_ = to.root.Remove(name)
	}
	return err
}

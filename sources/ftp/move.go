package ftp

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/internal/files"
)

// folder is the absolute path of where files are moved.
func (p *place) folder(r remote, folder string) string {
	if strings.HasPrefix(folder, "/") {
		return path.Join(folder, p.resource)
	}
	return path.Join(p.dir(r), folder)
}

// Move puts a file that is the one wanted into a folder. When the connection breaks before the server has answered, the
// other end tells what became of it.
func (p *place) Move(ctx context.Context, name string, want files.Info, folder, as string) error {
	asked := false
	return p.source.pool.do(ctx, always, func(r remote) error {
		from := path.Join(p.dir(r), name)
		to := path.Join(p.folder(r, folder), as)
		if err := is(ctx, r, from, want); err != nil {
			if asked && errors.Is(err, fs.ErrNotExist) && is(ctx, r, to, want) == nil {
				return nil
			}
			return err
		}
		if err := p.makeFolder(ctx, r, folder); err != nil {
			return err
		}
		p.source.pause()
		asked = true
		if err := r.rename(ctx, from, to); err != nil {
			p.unmake(folder, err)
			return err
		}
		return p.moved(ctx, r, from, to, want)
	})
}

// moved puts a file back that took the name between the check and the move.
func (p *place) moved(ctx context.Context, r remote, from, to string, want files.Info) error {
	err := is(ctx, r, to, want)
	if !errors.Is(err, rebalancer.ErrChanged) {
		if errors.Is(err, fs.ErrNotExist) { // somebody took it from the folder: it has been there
			return nil
		}
		return err
	}
	if back := r.rename(ctx, to, from); back != nil {
		return fmt.Errorf("%q changed, was moved to %q, and cannot be put back: %w", from, to, back)
	}
	return err
}

// Put writes a new file into a folder.
func (p *place) Put(ctx context.Context, folder, name string, data []byte) error {
	return p.source.pool.do(ctx, nil, func(r remote) error {
		if err := p.makeFolder(ctx, r, folder); err != nil {
			return err
		}
		err := r.put(ctx, path.Join(p.folder(r, folder), name), data)
		if err != nil {
			p.unmake(folder, err)
		}
		return err
	})
}

// makeFolder makes the folder when it is missing. Its errors are of the folder and not to be taken for ones of the file.
func (p *place) makeFolder(ctx context.Context, r remote, folder string) error {
	p.mu.Lock()
	done := p.made[folder]
	p.mu.Unlock()
	if done {
		return nil
	}
	full := p.folder(r, folder)
	if full == p.dir(r) {
		return &answer{what: fmt.Sprintf("move into %q", folder), text: "(not asked)", err: errors.New("that is the directory itself, files would come again")}
	}
	if err := makeAll(ctx, r, full); err != nil {
		if broken(err) {
			return err
		}
		return elsewhere(folder, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.made == nil || len(p.made) > 1000 { // folders with the time in their names
		p.made = map[string]bool{}
	}
	p.made[folder] = true
	return nil
}

// unmake forgets that a folder exists, when something in it failed.
func (p *place) unmake(folder string, err error) {
	if errors.Is(err, fs.ErrExist) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.made, folder)
}

// makeAll makes a directory and those above it.
func makeAll(ctx context.Context, r remote, dir string) error {
	e, err := r.stat(ctx, dir)
	switch {
	case broken(err):
		return err
	case err == nil && e.kind != regular: // a link may lead to a directory
		return nil
	case err == nil:
		return &answer{what: fmt.Sprintf("make the directory %q", dir), text: "(not asked)", err: errors.New("a file has its name")}
	}
	if above := path.Dir(dir); above != dir {
		if err := makeAll(ctx, r, above); err != nil {
			return err
		}
	}
	return r.mkdir(ctx, dir)
}

// elsewhere keeps an answer about the folder from being taken for one about the file.
func elsewhere(folder string, err error) error {
	a := &answer{what: fmt.Sprintf("folder %q", folder), text: err.Error()}
	if errors.Is(err, fs.ErrPermission) {
		a.err = fs.ErrPermission
	}
	return a
}

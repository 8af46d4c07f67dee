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

// Move puts a file that is the one wanted into a folder.
func (p *place) Move(ctx context.Context, name string, want files.Info, folder, as string) error {
	return p.rename(ctx, name, want, func(r remote) (string, error) {
		return path.Join(p.folder(r, folder), as), p.makeFolder(ctx, r, folder)
	}, func(err error) { p.unmake(folder, err) })
}

// Rename gives a file that is the one wanted another name.
func (p *place) Rename(ctx context.Context, name string, want files.Info, as string) error {
	return p.rename(ctx, name, want, func(r remote) (string, error) { return path.Join(p.dir(r), as), nil }, func(error) {})
}

// rename renames a file that is the one wanted. When the connection breaks before the server has answered, what has which
// name then tells what became of it.
func (p *place) rename(ctx context.Context, name string, want files.Info, target func(remote) (string, error), failed func(error)) error {
	asked := false
	return p.source.pool.do(ctx, always, func(r remote) error {
		from := path.Join(p.dir(r), name)
		err := is(ctx, r, from, want)
		if err != nil && !(asked && errors.Is(err, fs.ErrNotExist)) {
			return err
		}
		to, folder := target(r)
		switch {
		case err != nil:
			if there := is(ctx, r, to, want); !errors.Is(there, fs.ErrNotExist) { // as asked for, or what had taken its name
				return p.moved(ctx, r, from, to, want)
			}
			return err
		case folder != nil:
			return folder
		}
		p.source.pause()
		asked = true
		if err := r.rename(ctx, from, to); err != nil {
			failed(err)
			return err
		}
		return p.moved(ctx, r, from, to, want)
	})
}

// moved puts a file back that took the name between the check and the rename.
func (p *place) moved(ctx context.Context, r remote, from, to string, want files.Info) error {
	err := is(ctx, r, to, want)
	switch {
	case errors.Is(err, fs.ErrNotExist): // somebody has taken it from there
		return nil
	case !errors.Is(err, rebalancer.ErrChanged):
		return err
	}
	if back := r.rename(ctx, to, from); broken(back) {
		return back
	} else if back != nil { // what it is must not be taken for what became of the file that was worked
		return &answer{what: fmt.Sprintf("move %q", from), text: fmt.Sprintf("it was replaced meanwhile; what replaced it is %q now, and cannot be put back: %v", to, back)}
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

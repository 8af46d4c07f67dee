package main

import (
	"context"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/sources/file"
	"github.com/rebalancer-go/rebalancer/sources/pickup"
)

// fileSource opens file:///root: each directory below root is a resource, each file in it a message.
func fileSource() sourceDriver {
	return sourceDriver{scheme: "file", form: "file:///root", open: openFileSource}
}

func openFileSource(_ context.Context, u *url.URL, o sourceOptions) (*openSource, error) {
	root, err := localPath(u)
	if err != nil {
		return nil, err
	}
	switch fi, err := os.Stat(root); {
	case errors.Is(err, fs.ErrNotExist):
		return nil, &kindError{errNotFound, "--source: there is no directory " + root}
	case err != nil:
		return nil, err
	case !fi.IsDir():
		return nil, usagef("--source: %s is not a directory", root)
	}
	c := file.Config{Root: root, Policy: pickup.Policy{OnSuccess: pickup.Delete(), Logger: o.logger}}
	if o.success.action == "move" {
		c.OnSuccess = pickup.MoveTo(o.success.folder)
	}
	if o.failure.action == "move" {
		c.OnFailure = pickup.MoveTo(o.failure.folder)
	}
	s, err := file.New(c)
	if err != nil {
		return nil, &kindError{errUsage, err.Error()}
	}
	return &openSource{
		Source: s, close: s.Close, notLocal: networkDisk(root),
		path: func(m *rebalancer.Message) string { return filepath.Join(root, filepath.FromSlash(m.Resource), m.Key) },
	}, nil
}

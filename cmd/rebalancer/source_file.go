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
)

// fileSource opens file:///root?done_file=*.done: each directory below root is a resource, each file in it a message.
func fileSource() sourceDriver {
	return sourceDriver{scheme: "file", form: "file:///root", open: openFileSource}
}

func openFileSource(_ context.Context, u *url.URL, o sourceOptions) (*openSource, error) {
	query := u.Query()
	bare := *u
	bare.RawQuery, bare.ForceQuery = "", false
	root, err := localPath(&bare)
	if err != nil {
		return nil, err
	}
	policy, rest, err := pickupPolicy(query, o)
	if err = errors.Join(err, unknownParameters(rest)); err != nil {
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
	s, err := file.New(file.Config{Root: root, Policy: policy})
	if err != nil {
		return nil, &kindError{errUsage, err.Error()}
	}
	doctor := &fileDoctor{root: root, policy: policy}
	return &openSource{
		Source: s, close: s.Close, examine: doctor.place, examineResource: doctor.directory,
		notLocal: networkDisk(root),
		path:     func(m *rebalancer.Message) string { return filepath.Join(root, filepath.FromSlash(m.Resource), m.Key) },
	}, nil
}

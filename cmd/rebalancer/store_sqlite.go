package main

import (
	"context"
	"errors"
	"io/fs"
	"net/url"
	"os"

	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/backends/sqlite"
)

// sqliteStore opens sqlite:///path: a file for the processes of one machine.
func sqliteStore() storeDriver {
	return storeDriver{scheme: "sqlite", form: "sqlite:///path", open: openSQLite}
}

func openSQLite(_ context.Context, u *url.URL, existing bool) (backends.Store, error) {
	path, err := localPath(u)
	if err != nil {
		return nil, err
	}
	if existing { // looking must not make a file
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return nil, &kindError{errNotFound, "there is no store " + path}
		}
	}
	return sqlite.Open(path)
}

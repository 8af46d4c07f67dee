package main

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
)

// defaultStore is the URL of the store that is used when none is named: a file of this user on this machine. Its folder is made
// unless the store must exist already: looking makes nothing.
func (p *program) defaultStore(existing bool) (string, error) {
	dir, ok := p.lookup("XDG_STATE_HOME")
	if !ok || !filepath.IsAbs(dir) { // a relative one is to be ignored, says its specification
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("no place for the default store: %w: give --store", err)
		}
		dir = filepath.Join(home, ".local", "state")
	}
	dir = filepath.Join(dir, "rebalancer")
	if !existing {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return "", fmt.Errorf("make the folder of the default store: %w: give --store", err)
		}
	}
	return (&url.URL{Scheme: "sqlite", Path: filepath.Join(dir, "rebalancer.db")}).String(), nil
}

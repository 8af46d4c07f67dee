//go:build !linux

package main

import "os"

// watchOutput does nothing: the next write says that nobody reads.
func watchOutput(*os.File, func()) (stop func(), err error) { return func() {}, nil }

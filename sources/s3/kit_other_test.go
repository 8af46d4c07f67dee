//go:build !linux

package s3

import "go.uber.org/goleak"

var leftovers []goleak.Option

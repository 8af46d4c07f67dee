//go:build !linux

package sqs

import "go.uber.org/goleak"

var leftovers []goleak.Option

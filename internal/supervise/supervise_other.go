//go:build !linux

package supervise

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"
)

// Moment is a time that all processes of the machine share.
type Moment int64

// In returns the moment of t.
func In(time.Time) (Moment, error) { return 0, ErrUnsupported }

// Config says how supervisors are started.
type Config struct {
	Args   []string
	Exe    string
	Stdout *os.File
	Stderr io.Writer
}

// Pool runs commands.
type Pool struct{}

// New fails with ErrUnsupported.
func New(Config) (*Pool, error) { return nil, ErrUnsupported }

// Trust does nothing.
func (*Pool) Trust(Moment) {}

// Run fails with ErrUnsupported.
func (*Pool) Run(context.Context, Job) (Result, error) { return Result{}, ErrUnsupported }

// Close does nothing.
func (*Pool) Close(context.Context) error { return nil }

// Main is the life of a supervisor.
func Main() int {
	fmt.Fprintln(os.Stderr, "rebalancer:", ErrUnsupported)
	return 1
}

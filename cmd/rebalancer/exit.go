package main

import (
	"errors"
	"fmt"

	"github.com/rebalancer-go/rebalancer/admin"
	"github.com/rebalancer-go/rebalancer/group"
)

// The exit codes, part of the command line's contract.
const (
	codeDone     = 0
	codeFailed   = 1
	codeUsage    = 2
	codeNotFound = 3
	codeRefused  = 4
	codeStuck    = 5
)

var (
	errUsage    = errors.New("wrong usage")
	errNotFound = errors.New("not found")
	errRefused  = errors.New("refused")
)

// kindError is an error of one of these kinds whose text does not repeat the kind.
type kindError struct {
	kind error
	text string
}

func (e *kindError) Error() string        { return e.text }
func (e *kindError) Is(target error) bool { return target == e.kind }

func usagef(format string, args ...any) error {
	return &kindError{errUsage, fmt.Sprintf(format, args...)}
}

// exitCode is the code that an error ends the program with.
func exitCode(err error) int {
	for _, c := range []struct {
		err  error
		code int
	}{
		{errUsage, codeUsage}, {group.ErrInvalid, codeUsage}, {admin.ErrInvalid, codeUsage},
		{errNotFound, codeNotFound}, {admin.ErrNotFound, codeNotFound},
		{errRefused, codeRefused}, {admin.ErrRefused, codeRefused},
		{group.ErrMismatch, codeRefused}, {group.ErrSuperseded, codeRefused}, {group.ErrDeleted, codeRefused},
		{group.ErrStuck, codeStuck},
	} {
		if errors.Is(err, c.err) {
			return c.code
		}
	}
	return codeFailed
}

// Package names says which names groups, nodes and resources may have: one rule for the runtime, for operators and for the
// command line.
package names

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// MaxGroup is the greatest length of the name of a group or node, in bytes.
	MaxGroup = 128
	// MaxResource is the greatest length of the name of a resource, in bytes.
	MaxResource = 512
)

// Group says what is wrong with the name of a group or node; "" when nothing is.
func Group(name string) string {
	switch {
	case name == "":
		return "it is empty"
	case len(name) > MaxGroup:
		return "it is longer than 128 bytes"
	case !utf8.ValidString(name):
		return "it is not UTF-8"
	case strings.Contains(name, "/"):
		return "it contains \"/\""
	case strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }):
		return "it contains a character that cannot be printed"
	}
	return ""
}

// Resource says what is wrong with the name of a resource; "" when nothing is.
func Resource(name string) string {
	switch {
	case name == "":
		return "it is empty"
	case len(name) > MaxResource:
		return "it is longer than 512 bytes"
	case !utf8.ValidString(name):
		return "it is not UTF-8"
	case strings.Contains(name, "\x00"):
		return "it contains a NUL"
	}
	return ""
}

//go:build linux

package testserver

import "testing"

// No port is given twice while a test has it, although nothing listens there.
func TestPortsAreKept(t *testing.T) {
	t.Parallel()
	const many = 800 // of those that are found by chance, several would be the same
	seen := map[int]bool{}
	for range many {
		port := Port(t)
		if seen[port] {
			t.Fatalf("%d was given twice", port)
		}
		seen[port] = true
	}
}

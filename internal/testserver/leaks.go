//go:build linux

package testserver

import (
	"fmt"
	"os"
	"time"

	"go.uber.org/goleak"
)

// ExitCode is that of a suite whose tests ended with code: 1 when they passed but goroutines are left after patience. Clients of servers that were cut
// off give up only when a dial has timed out.
func ExitCode(code int, patience time.Duration) int {
	for end := time.Now().Add(patience); code == 0; {
		err := goleak.Find(Leftovers()...)
		if err == nil {
			return 0
		}
		if time.Now().After(end) {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return code
}

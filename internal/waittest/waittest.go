// Package waittest is how tests wait for what they cannot be told of.
package waittest

import (
	"testing"
	"time"
)

const (
	every    = 10 * time.Millisecond
	patience = time.Minute
)

// Until looks again and again until something holds, and ends the test when it does not within a minute.
func Until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for late := time.After(patience); !ok(); {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}

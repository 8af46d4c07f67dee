//go:build linux

package testserver

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Clock is the wall clock of a server of its own, which a test steps: the server runs with libfaketime, of Debian's package. Its other clocks, by which
// it sleeps and times out, run on as they are. Redis and Valkey cannot be run so: their allocator asks for the time before the library is ready.
type Clock struct {
	t      testing.TB
	dir    string
	offset time.Duration
}

// NewClock makes a clock that shows the right time.
func NewClock(t testing.TB) *Clock {
	t.Helper()
	c := &Clock{t: t, dir: Dir(t)}
	c.Step(0)
	return c
}

// Step sets the clock on by d, or back where d is negative, at once.
func (c *Clock) Step(d time.Duration) {
	c.t.Helper()
	c.offset += d
	file := c.file()
	err := os.WriteFile(file+".new", fmt.Appendf(nil, "%+.6f\n", c.offset.Seconds()), 0o644)
	if err == nil {
		err = os.Rename(file+".new", file) // the server reads it whenever it looks at the clock
	}
	if err != nil {
		c.t.Fatal(err)
	}
}

func (c *Clock) file() string { return filepath.Join(c.dir, "offset") }

// env is the environment of a server that goes by this clock. It must not run below a Root.
func (c *Clock) env() []string {
	c.t.Helper()
	library := Need(c.t, "", "/usr/lib/*/faketime/libfaketimeMT.so.1")
	return []string{"LD_PRELOAD=" + library, "FAKETIME_TIMESTAMP_FILE=" + c.file(), "FAKETIME_NO_CACHE=1", "FAKETIME_DONT_FAKE_MONOTONIC=1"}
}

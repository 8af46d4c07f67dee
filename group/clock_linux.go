package group

import (
	"time"

	"golang.org/x/sys/unix"
)

// readBoot reads CLOCK_BOOTTIME, which goes on while the machine is suspended.
func readBoot() (int64, bool) { return readClock(unix.CLOCK_BOOTTIME) }

func readClock(id int32) (int64, bool) {
	var ts unix.Timespec
	if err := unix.ClockGettime(id, &ts); err != nil {
		return 0, false
	}
	return ts.Nano(), true
}

// virtualTime tells whether Go's clock is not the machine's, as inside a testing/synctest bubble: the machine's clocks then
// say nothing about this program's time. A wall clock that is stepped between two readings looks the same, so it looks again.
func virtualTime() bool {
	for range 3 {
		real, ok := readClock(unix.CLOCK_REALTIME)
		if !ok {
			return false
		}
		if d := time.Since(time.Unix(0, real)); d > -time.Minute && d < time.Minute {
			return false
		}
	}
	return true
}

package supervise

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// Moment is a time on CLOCK_BOOTTIME in nanoseconds. It means the same in every process of the machine, stands still for
// nothing, and cannot be set. The zero Moment is in the past.
type Moment int64

// Now reads the clock.
func Now() (Moment, error) {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return 0, fmt.Errorf("read CLOCK_BOOTTIME: %w", err)
	}
	return Moment(ts.Nano()), nil
}

// In returns the moment at which the monotonic clock of this process will show t, or an earlier one. It is to be called soon
// after t was decided: time for which the machine sleeps between the two would be added.
func In(t time.Time) (Moment, error) {
	now, err := Now() // before time.Until: what passes between the two makes the answer earlier, never later
	if err != nil {
		return 0, err
	}
	return now + Moment(time.Until(t)), nil
}

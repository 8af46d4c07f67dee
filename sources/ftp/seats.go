package ftp

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
)

// seats are the room for files that are read at once. Handlers that open several files can take them all and wait for each other for
// ever. Nobody can tell from a handler that takes its time, unless by that: while one waits, nothing is read of any file, and none is
// closed. When that has lasted for the patience, one of those who wait is turned away, so that what it has goes back, and the others
// have as much patience again.
type seats struct {
	room     chan struct{}
	patience time.Duration
	began    time.Time
	moved    *atomic.Int64 // when, since began, something was last read, or a seat taken or given
}

func newSeats(n int, patience time.Duration) seats {
	return seats{room: make(chan struct{}, n), patience: patience, began: time.Now(), moved: new(atomic.Int64)}
}

// busyError says that handlers wait for each other. It is no error of a connection.
type busyError struct {
	seats int
	after time.Duration
}

// Error says what is to be done.
func (e *busyError) Error() string {
	return fmt.Sprintf("all %d connections for reading are taken, and nothing was read over any of them for %v: handlers that open several "+
		"files may wait for each other; let them close one before they open the next, or raise Connections", e.seats, e.after)
}

// take waits for a seat.
func (s *seats) take(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	timer := time.NewTimer(s.patience)
	defer timer.Stop()
	for {
		select {
		case s.room <- struct{}{}:
			s.stir()
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
		}
		left, stuck := s.still()
		if stuck {
			return &busyError{cap(s.room), s.patience}
		}
		timer.Reset(left)
	}
}

// still tells for how long at least there is reason to wait. stuck: for no longer, which is said to one at a time.
func (s *seats) still() (left time.Duration, stuck bool) {
	now, moved := time.Since(s.began), s.moved.Load()
	if left = s.patience - (now - time.Duration(moved)); left > 0 {
		return left, false
	}
	if s.moved.CompareAndSwap(moved, int64(now)) {
		return 0, true
	}
	return s.patience, false
}

// stir notes that something goes on.
func (s *seats) stir() { s.moved.Store(int64(time.Since(s.began))) }

// give gives a seat back.
func (s *seats) give() {
	s.stir()
	<-s.room
}

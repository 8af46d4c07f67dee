package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// echoTime is how long the same signal again is taken for an echo: timeout(1) and others that start programs pass on what the
// terminal, or they themselves, have sent to the whole group.
const echoTime = 100 * time.Millisecond

// echo tells echoes from signals.
type echo struct {
	last os.Signal
	at   time.Time
}

func (e *echo) is(s os.Signal, now time.Time) bool {
	if s == e.last && now.Sub(e.at) < echoTime {
		return true
	}
	e.last, e.at = s, now
	return false
}

// signals returns a context that ends at the first SIGTERM or Ctrl-C. A second one ends the process at once; then, as when
// it is killed, its supervisors kill their commands. stop gives the signals back.
func signals(stderr io.Writer, exit func(int)) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	got := make(chan os.Signal, 2)
	signal.Notify(got, os.Interrupt, syscall.SIGTERM)
	// A closed standard output is an error of a write, not the end of the process, and no command inherits the choice.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	done := make(chan struct{})
	go func() {
		var e echo
		for n := 0; ; {
			select {
			case <-done:
				return
			case s := <-got:
				if e.is(s, time.Now()) {
					continue
				}
				if n++; n > 1 {
					fmt.Fprintf(stderr, "rebalancer: %v again: ends at once\n", s)
					exit(codeFailed)
				}
				fmt.Fprintf(stderr, "rebalancer: %v: finishes what is in hand and leaves; once more ends at once\n", s)
				cancel()
			}
		}
	}()
	return ctx, func() {
		signal.Stop(got)
		close(done)
		cancel()
	}
}

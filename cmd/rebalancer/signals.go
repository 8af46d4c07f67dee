package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

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
		for n := 0; ; n++ {
			select {
			case <-done:
				return
			case s := <-got:
				if n > 0 {
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

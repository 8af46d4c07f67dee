package main

import (
	"fmt"
	"io"
	"time"

	"github.com/rebalancer-go/rebalancer/bench/measure"
)

// watched shows what metrics and traces add to a message.
func watched(w io.Writer, quick bool) error {
	rounds := 11
	if quick {
		rounds = 3
	}
	fmt.Fprintln(w, "Metrics and traces: cost per message beside the same without telemetry, in turns in the same run. The messages come from a source that costs nothing.")
	fmt.Fprintln(w, "\n| handler | telemetry | message | ratio | ratios of the rounds | allocations per message |\n|---|---|---|---|---|---|")
	for _, work := range []time.Duration{0, 20 * time.Microsecond} {
		n := 300_000
		if work > 0 {
			n = 20_000
		}
		if quick {
			n /= 5
		}
		costs, err := measure.Watched(work, rounds, n)
		if err != nil {
			return err
		}
		for _, c := range costs {
			fmt.Fprintf(w, "| %v | %s | %v | %.3f | %.3f–%.3f | %.2f |\n", work, c.Name, c.Message, c.Ratio, c.Low, c.High, c.Allocs)
		}
	}
	return nil
}

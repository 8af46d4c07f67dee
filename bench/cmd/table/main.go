// Command table measures and prints the tables of bench/README.md in Markdown. It exits 1 when a measurement fails, or when
// -check is given and a bound of the design does not hold.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/rebalancer-go/rebalancer/backends"
	stores "github.com/rebalancer-go/rebalancer/backends/memory"
	"github.com/rebalancer-go/rebalancer/backends/sqlite"
	"github.com/rebalancer-go/rebalancer/bench/measure"
	"github.com/rebalancer-go/rebalancer/coord"
)

// The bounds that -check looks at.
const (
	maxRatio  = 3.0
	maxAllocs = 1.0
)

func main() {
	quick := flag.Bool("quick", false, "fewer rounds: for a look, not for figures")
	check := flag.Bool("check", false, "exit 1 when a bound of the design does not hold")
	flag.Parse()
	ok, err := tables(os.Stdout, *quick)
	if err != nil {
		fmt.Fprintln(os.Stderr, "table:", err)
		os.Exit(1)
	}
	if *check && !ok {
		os.Exit(1)
	}
}

func tables(w io.Writer, quick bool) (ok bool, err error) {
	fmt.Fprintf(w, "%s %s/%s, %d CPUs.\n\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
	if ok, err = messages(w, quick); err != nil {
		return ok, err
	}
	for _, table := range []func(io.Writer, bool) error{watched, handOver, steps, plans, peers} {
		fmt.Fprintln(w)
		if err := table(w, quick); err != nil {
			return ok, err
		}
	}
	return ok, nil
}

func messages(w io.Writer, quick bool) (ok bool, err error) {
	rounds, n := 11, 1_000_000
	if quick {
		rounds, n = 3, 200_000
	}
	ok = true
	fmt.Fprintf(w, "Cost per message (handler that does nothing, messages with a Body) beside one hop over an unbuffered channel: medians of %d\n"+
		"rounds of %d messages, hop and runtime in turns.\n\n", rounds, n)
	fmt.Fprintln(w, "| setting | hop | message | ratio | ratios of the rounds | allocations per message | bound (ratio ≤ 3, allocations ≤ 1) |")
	fmt.Fprintln(w, "|---|---|---|---|---|---|---|")
	for _, s := range measure.Settings() {
		r, err := measure.Compare(s, rounds, n)
		if err != nil {
			return false, err
		}
		verdict := "none asked for"
		if s.Required {
			verdict = "holds"
			if r.Ratio > maxRatio || r.Allocs > maxAllocs {
				verdict, ok = "**does not hold**", false
			}
		}
		fmt.Fprintf(w, "| %s | %v | %v | %.2f | %.2f–%.2f | %.2f | %s |\n", s.Name, r.Hop, r.Message, r.Ratio, r.Low, r.High, r.Allocs, verdict)
	}
	return ok, nil
}

func handOver(w io.Writer, _ bool) error {
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	inMemory := stores.New()
	slow := stores.New(stores.WithLatency(10 * time.Millisecond))
	var opened []backends.Store
	defer func() {
		for _, s := range opened {
			_ = s.Close()
		}
	}()
	kinds := []struct {
		name string
		ttl  time.Duration
		open func(string) (backends.Store, error)
	}{
		{"memory", 30 * time.Second, func(string) (backends.Store, error) { return inMemory, nil }},
		{"memory, 10 ms a call", 30 * time.Second, func(string) (backends.Store, error) { return slow, nil }},
		{"sqlite, a file opened by each node", 3 * time.Second, func(string) (backends.Store, error) {
			s, err := sqlite.Open(filepath.Join(dir, "group.db"))
			if err == nil {
				opened = append(opened, s)
			}
			return s, err
		}},
	}
	fmt.Fprintln(w, "Hand-over when one of four nodes with 100 resources leaves: from the last settlement of the old owner to the first message of the new one.")
	fmt.Fprintln(w, "\n| store | resources moved | least | median | longest |\n|---|---|---|---|---|")
	for _, k := range kinds {
		i, err := measure.HandOver(k.name, k.ttl, k.open)
		if err != nil {
			return fmt.Errorf("hand-over over %s: %w", k.name, err)
		}
		fmt.Fprintf(w, "| %s | %d | %v | %v | %v |\n", i.Store, i.Moved, round(i.Least), round(i.Median), round(i.Longest))
	}
	return nil
}

func steps(w io.Writer, _ bool) error {
	fmt.Fprintln(w, "Steps of the protocol's machine, all nodes together, without the store; round trips as they follow one another.")
	fmt.Fprintln(w, "\n| barrier | resources | phase | steps | time | longest step | per resource moved | round trips |\n|---|---|---|---|---|---|---|---|")
	for _, mode := range []coord.Mode{coord.ResourceBarrier, coord.GlobalBarrier} {
		for _, n := range []int{1000, 10000} {
			phases, err := measure.Machine(mode, n)
			if err != nil {
				return err
			}
			for _, p := range phases {
				each, trips := "–", "–"
				if p.Moved > 0 {
					each = round(p.Total / time.Duration(p.Moved)).String()
					trips = fmt.Sprintf("%.0f", p.Trips)
				}
				fmt.Fprintf(w, "| %s | %d | %s | %d | %v | %v | %s | %s |\n", mode, n, p.Name, p.Count, round(p.Total), round(p.Longest), each, trips)
			}
		}
	}
	return nil
}

func plans(w io.Writer, quick bool) error {
	rounds := 11
	if quick {
		rounds = 3
	}
	fmt.Fprintln(w, "Plans: median time of one, what it allocates, how many resources it takes from a live node, and how far counts differ.")
	fmt.Fprintln(w, "\n| planner | resources × nodes | change | time | MB | allocations | moves | spread |\n|---|---|---|---|---|---|---|---|")
	for _, p := range measure.Planners() {
		for _, size := range [][2]int{{24104, 100}, {100000, 1000}} {
			costs, err := measure.Plans(p, size[0], size[1], rounds)
			if err != nil {
				return err
			}
			for _, c := range costs {
				fmt.Fprintf(w, "| %s | %d × %d | %s | %v | %.1f | %d | %d | %d |\n", c.Planner, c.Resources, c.Nodes, c.Change, round(c.Time),
					float64(c.Bytes)/1e6, c.Allocs, c.Moves, c.Spread)
			}
		}
	}
	return nil
}

// peers compares the plans with another library's.
func peers(w io.Writer, quick bool) error {
	if quick {
		return measure.AssignTable(w, 3)
	}
	return measure.AssignTable(w, 11)
}

// round leaves three digits or so.
func round(d time.Duration) time.Duration {
	switch {
	case d >= time.Second:
		return d.Round(10 * time.Millisecond)
	case d >= 10*time.Millisecond:
		return d.Round(100 * time.Microsecond)
	case d >= time.Millisecond:
		return d.Round(10 * time.Microsecond)
	case d >= time.Microsecond:
		return d.Round(10 * time.Nanosecond)
	}
	return d
}

package queues

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// Result is one round of one loop.
type Result struct {
	PerSecond float64       // messages, from the first that was handled to the last
	Client    time.Duration // CPU time of this process per message
	Broker    time.Duration // CPU time of the broker's processes per message
}

// Round lets loop handle the n messages that are in the queues, and measures that.
func Round(ctx context.Context, loop Loop, w Work, n int, brokerGroup int) (Result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var handled atomic.Int64
	var first, last time.Time
	var cpu, cpuEnd, broker, brokerEnd time.Duration
	all := make(chan struct{})
	w.Handle = func() {
		switch handled.Add(1) {
		case 1:
			first, cpu, broker = time.Now(), ownCPU(), groupCPU(brokerGroup)
		case int64(n):
			last, cpuEnd, brokerEnd = time.Now(), ownCPU(), groupCPU(brokerGroup)
			close(all)
		}
	}
	ended := make(chan error, 1)
	go func() { ended <- loop(ctx, w) }()
	select {
	case <-all:
	case err := <-ended:
		return Result{}, fmt.Errorf("the loop ended after %d of %d messages: %w", handled.Load(), n, err)
	case <-time.After(5 * time.Minute):
		return Result{}, fmt.Errorf("%d of %d messages were handled in five minutes", handled.Load(), n)
	}
	cancel()
	if err := <-ended; err != nil {
		return Result{}, err
	}
	each := func(d time.Duration) time.Duration { return d / time.Duration(n) }
	return Result{float64(n-1) / last.Sub(first).Seconds(), each(cpuEnd - cpu), each(brokerEnd - broker)}, nil
}

func ownCPU() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// tick is that of /proc on Linux, whatever the kernel's own is.
const tick = 10 * time.Millisecond

// groupCPU is the CPU time of all processes of a process group; 0 is none.
func groupCPU(group int) time.Duration {
	if group == 0 { // there is no broker
		return 0
	}
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	var sum time.Duration
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			continue // it has ended
		}
		// After the name in brackets: state, parent, process group, …, and as 12th and 13th the times in user and system mode.
		fields := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
		if len(fields) < 13 || fields[2] != strconv.Itoa(group) {
			continue
		}
		user, _ := strconv.Atoi(fields[11])
		system, _ := strconv.Atoi(fields[12])
		sum += time.Duration(user+system) * tick
	}
	return sum
}

// Median of what f gives for the results.
func Median(rs []Result, f func(Result) float64) float64 {
	xs := make([]float64, len(rs))
	for i, r := range rs {
		xs[i] = f(r)
	}
	slices.Sort(xs)
	return xs[len(xs)/2]
}

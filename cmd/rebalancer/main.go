// Command rebalancer lets any set of resources be worked by a group of processes: each resource by one of them at a time.
// See `rebalancer help`.
package main

import (
	"os"

	"github.com/rebalancer-go/rebalancer/internal/supervise"
)

// superviseMode is the hidden first argument that makes this program the supervisor of a command.
const superviseMode = "__supervise"

func main() {
	if len(os.Args) > 1 && os.Args[1] == superviseMode {
		os.Exit(supervise.Main())
	}
	p := &program{
		stdout: os.Stdout, stderr: os.Stderr, lookup: os.LookupEnv,
		stores: storeDrivers(), sources: sourceDrivers(), supervisor: []string{superviseMode},
	}
	ctx, stop := signals(os.Stderr, os.Exit)
	code := p.run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rebalancer-go/rebalancer/admin"
	"github.com/rebalancer-go/rebalancer/backends"
)

const nodesEvictLong = `A node that is evicted can renew and claim nothing any more. One that is well drains, gives everything back and ends with exit code 4; what a wedged
one holds is free when its session ends, within one ttl, and goes to other nodes then, never before. A handler that goes on without heeding that it
was cancelled may still run then, as after any loss of the connection to the store; only the fence tells. A node that is started again joins again:
drain it to keep it away. With --wait the command ends when the nodes are members no more.`

// pollEvery is how often a command that waits looks again.
const pollEvery = 250 * time.Millisecond

func nodesEvictCommand() command {
	return command{
		name: "nodes evict", args: "GROUP NODE…", short: "end the membership of nodes, also of wedged ones", long: nodesEvictLong, min: 2, max: -1,
		setup: func(f *flags) action {
			var o operatorFlags
			var wait time.Duration
			o.define(f)
			f.DurationVar(&wait, "wait", 0, "how long to wait until they have gone. Defaults to not at all.")
			f.explain("wait", "DURATION")
			return func(ctx context.Context, p *program, args, _ []string) error {
				return p.withOperator(ctx, o, true, func(s backends.Store) error {
					evicted, err := admin.Evict(ctx, s, args[0], args[1:]...)
					if err != nil {
						return err
					}
					p.tell(args[1:], evicted, "evicted", "is no member")
					if wait <= 0 || len(evicted) == 0 {
						return nil
					}
					ctx, cancel := context.WithTimeoutCause(ctx, wait, errors.New("evicted nodes are members still"))
					defer cancel()
					return gone(ctx, s, args[0], evicted)
				})
			}
		},
	}
}

// gone waits until none of the nodes is a member.
func gone(ctx context.Context, s backends.Store, group string, nodes []string) error {
	for tick := time.NewTicker(pollEvery); ; {
		d, err := admin.Describe(ctx, s, group)
		if err == nil && !slices.ContainsFunc(d.Nodes, func(n admin.Node) bool { return slices.Contains(nodes, n.Name) }) {
			tick.Stop()
			return nil
		}
		select {
		case <-ctx.Done():
			tick.Stop()
			return fmt.Errorf("wait for evicted nodes: %w", errors.Join(context.Cause(ctx), err))
		case <-tick.C:
		}
	}
}

func stepDownCommand() command {
	return command{
		name: "step-down", args: "GROUP", short: "have another node coordinate", min: 1, max: 1,
		long: "The coordinator loses its office, and another node is elected; what nodes hold stays as it is. Where there is no other node, or the store gives\n" +
			"no hints, the same one may be elected again. It writes the name of the node that coordinated.",
		setup: func(f *flags) action {
			var o operatorFlags
			o.define(f)
			return func(ctx context.Context, p *program, args, _ []string) error {
				return p.withOperator(ctx, o, true, func(s backends.Store) error {
					node, err := admin.StepDown(ctx, s, args[0])
					if err != nil {
						return err
					}
					if node == "" {
						fmt.Fprintln(p.stderr, "no node coordinated")
						return nil
					}
					return writeLines(p.stdout, []string{node})
				})
			}
		},
	}
}
